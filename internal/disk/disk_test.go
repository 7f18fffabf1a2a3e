package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
)

// both runs a test on the real and on the simulated disk.
func both(t *testing.T, f func(t *testing.T, d FS)) {
	t.Run("os", func(t *testing.T) { f(t, openRoot(t, t.TempDir())) })
	t.Run("sim", func(t *testing.T) { f(t, NewSim()) })
}

func openRoot(t *testing.T, dir string) *Root {
	t.Helper()
	r, err := OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFiles(t *testing.T) {
	both(t, func(t *testing.T, d FS) {
		if _, err := d.ReadFile("a"); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		must(t, d.MkdirAll("x/y", 0o700))
		must(t, d.MkdirAll("x/y", 0o700))
		for _, name := range []string{"b", "a", "x/y/c"} {
			must(t, d.WriteFileAtomic(name, []byte("one"), 0o600))
			must(t, d.WriteFileAtomic(name, []byte("second"), 0o600))
			got, err := d.ReadFile(name)
			if err != nil || string(got) != "second" {
				t.Fatalf("%s: %q, %v", name, got, err)
			}
		}
		must(t, d.AppendFile("log", []byte("1\n"), 0o600))
		must(t, d.AppendFile("log", []byte("2\n"), 0o600))
		if got, _ := d.ReadFile("log"); string(got) != "1\n2\n" {
			t.Fatalf("%q", got)
		}
		names, err := d.List(".")
		if err != nil || !slices.Equal(names, []string{"a", "b", "log", "x"}) {
			t.Fatal(names, err)
		}
		must(t, d.Remove("a"))
		if err := d.Remove("a"); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err := d.Remove("x"); err == nil {
			t.Fatal("removed a directory that is not empty")
		}
		if err := d.WriteFileAtomic("nowhere/f", nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err := d.MkdirAll("b/sub", 0o700); err == nil {
			t.Fatal("made a directory inside a file")
		}
		if err := d.WriteFileAtomic("x", []byte("f"), 0o600); err == nil {
			t.Fatal("replaced a directory by a file")
		}
	})
}

func TestBadNames(t *testing.T) {
	both(t, func(t *testing.T, d FS) {
		for _, name := range []string{"", ".", "..", "../x", "/etc/passwd", "a/../../b", "a//b", "a/", "a\\b", "x.tmp", "a\x00b"} {
			_, err := d.ReadFile(name)
			errs := []error{err, d.WriteFileAtomic(name, nil, 0o600), d.AppendFile(name, nil, 0o600), d.Remove(name)}
			for i, err := range errs {
				if !errors.Is(err, ErrName) {
					t.Errorf("%q, operation %d: %v", name, i, err)
				}
			}
		}
	})
}

func TestNoEscape(t *testing.T) {
	outside, inside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("s"), 0o600))
	must(t, os.Symlink(outside, filepath.Join(inside, "link")))
	d := openRoot(t, inside)
	if _, err := d.ReadFile("link/secret"); err == nil {
		t.Fatal("read through a symbolic link")
	}
	if err := d.WriteFileAtomic("link/new", nil, 0o600); err == nil {
		t.Fatal("wrote through a symbolic link")
	}
}

func TestPermAndLeftovers(t *testing.T) {
	dir := t.TempDir()
	d := openRoot(t, dir)
	// what a crash of an earlier run may have left
	must(t, os.WriteFile(filepath.Join(dir, "key.tmp"), []byte("torn"), 0o644))
	if names, err := d.List("."); err != nil || len(names) != 0 {
		t.Fatal(names, err)
	}
	must(t, d.WriteFileAtomic("key", []byte("k"), 0o600))
	st, err := os.Stat(filepath.Join(dir, "key"))
	must(t, err)
	if runtime.GOOS != "windows" && st.Mode().Perm() != 0o600 {
		t.Fatal(st.Mode())
	}
	if _, err := os.Stat(filepath.Join(dir, "key.tmp")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

func TestLock(t *testing.T) {
	d := openRoot(t, t.TempDir())
	release, err := d.Lock("lock")
	must(t, err)
	if _, err := d.Lock("lock"); !errors.Is(err, ErrLocked) {
		t.Fatal(err)
	}
	must(t, release())
	release, err = d.Lock("lock")
	must(t, err)
	must(t, release())
}

func TestENOSPC(t *testing.T) {
	d := NewSim()
	must(t, d.WriteFileAtomic("f", []byte("old"), 0o600))
	d.SetCapacity(10)
	if err := d.WriteFileAtomic("f", []byte("much too long"), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if got, _ := d.ReadFile("f"); string(got) != "old" {
		t.Fatalf("%q", got)
	}
	must(t, d.WriteFileAtomic("f", []byte("shorter"), 0o600)) // the temporary file is gone
	must(t, d.Remove("f"))
	must(t, d.WriteFileAtomic("g", []byte("0123456789"), 0o600))
}

// Every step failing alone, without a crash: an error, and the old file stands
// unless only the last step failed.
func TestStepFails(t *testing.T) {
	eio := syscall.EIO
	for k := 1; ; k++ {
		d := NewSim()
		must(t, d.WriteFileAtomic("f", []byte("old"), 0o600))
		before := d.Steps()
		d.FailAfter(k, eio)
		err := d.WriteFileAtomic("f", []byte("new"), 0o600)
		if err == nil {
			if n := d.Steps() - before; k != n+1 || n != 5 {
				t.Fatalf("%d steps failed, %d taken", k-1, n)
			}
			return
		}
		got, rerr := d.ReadFile("f")
		if !errors.Is(err, eio) || rerr != nil || (string(got) != "old" && k < 5) {
			t.Fatalf("step %d: %q, %v, %v", k, got, err, rerr)
		}
		if k < 5 {
			if names, _ := d.d.list("."); len(names) != 1 {
				t.Fatalf("step %d left %v", k, names)
			}
		}
	}
}

const seeds = 200

// crashes runs op on a disk made by setup, crashing at every step, and checks
// what every seed leaves. done is false if op did not return nil.
func crashes(t *testing.T, setup, op func(FS) error, check func(d *Sim, done bool) error) error {
	t.Helper()
	for k := 1; ; k++ {
		d := NewSim()
		must(t, setup(d))
		d.CrashAfter(k)
		err := op(d)
		if err != nil && !errors.Is(err, ErrCrashed) {
			t.Fatalf("step %d: %v", k, err)
		}
		for seed := range uint64(seeds) {
			if cerr := check(d.Restart(seed), err == nil); cerr != nil {
				return fmt.Errorf("crash at step %d, seed %d: %w", k, seed, cerr)
			}
		}
		if err == nil {
			if k < 3 {
				t.Fatalf("only %d steps", k-1)
			}
			return nil
		}
	}
}

var (
	oldData = bytes.Repeat([]byte("old "), 20)
	newData = bytes.Repeat([]byte("fresh"), 30)
)

func setupOld(d FS) error { return d.WriteFileAtomic("f", oldData, 0o600) }

// oldOrNew checks the property that all of this exists for.
func oldOrNew(d *Sim, done bool) error {
	got, err := d.ReadFile("f")
	switch {
	case err != nil:
		return err
	case bytes.Equal(got, newData):
		return nil
	case bytes.Equal(got, oldData) && !done:
		return nil
	}
	return fmt.Errorf("content %q, write complete: %v", got, done)
}

func TestCrashReplace(t *testing.T) {
	op := func(d FS) error { return d.WriteFileAtomic("f", newData, 0o600) }
	seen := map[bool]int{}
	must(t, crashes(t, setupOld, op, func(d *Sim, done bool) error {
		got, _ := d.ReadFile("f")
		seen[bytes.Equal(got, newData)]++
		if err := oldOrNew(d, done); err != nil {
			return err
		}
		// the leftover does not prevent the next write
		if err := d.WriteFileAtomic("f", newData, 0o600); err != nil {
			return err
		}
		return oldOrNew(d.Restart(1), true)
	}))
	if seen[true] == 0 || seen[false] == 0 {
		t.Fatal("the simulation never left one of the two outcomes", seen)
	}
}

func TestCrashCreate(t *testing.T) {
	op := func(d FS) error {
		if err := d.MkdirAll("k/e", 0o700); err != nil {
			return err
		}
		return d.WriteFileAtomic("k/e/f", newData, 0o600)
	}
	must(t, crashes(t, func(FS) error { return nil }, op, func(d *Sim, done bool) error {
		got, err := d.ReadFile("k/e/f")
		if errors.Is(err, fs.ErrNotExist) && !done {
			return op(d) // it can be made up for
		}
		if err != nil || !bytes.Equal(got, newData) {
			return fmt.Errorf("%q, %w", got, err)
		}
		return nil
	}))
}

func TestCrashRemove(t *testing.T) {
	op := func(d FS) error { return d.Remove("f") }
	must(t, crashes(t, setupOld, op, func(d *Sim, done bool) error {
		if _, err := d.ReadFile("f"); err == nil && done {
			return errors.New("removed file is back")
		}
		return nil
	}))
}

func TestCrashAppend(t *testing.T) {
	setup := func(d FS) error { return d.AppendFile("f", oldData, 0o600) }
	op := func(d FS) error { return d.AppendFile("f", newData, 0o600) }
	must(t, crashes(t, setup, op, func(d *Sim, done bool) error {
		got, err := d.ReadFile("f")
		if err != nil || !bytes.HasPrefix(got, oldData) || len(got) > len(oldData)+len(newData) {
			return fmt.Errorf("%q, %w", got, err)
		}
		if done && !bytes.Equal(got[len(oldData):], newData) {
			return errors.New("synced record lost")
		}
		return nil
	}))
}

// The controls: every shortcut that people take is caught by the simulation.
func TestCrashControls(t *testing.T) {
	for name, op := range map[string]func(primitives) error{
		"in place": func(p primitives) error {
			h, err := p.open("f", 0, false)
			if err != nil {
				return err
			}
			return finish(h, newData)
		},
		"no file sync":      func(p primitives) error { return naive(p, false, true) },
		"no directory sync": func(p primitives) error { return naive(p, true, false) },
	} {
		t.Run(name, func(t *testing.T) {
			err := crashes(t, setupOld, func(d FS) error { return op(d.(*Sim).d) }, oldOrNew)
			if err == nil {
				t.Fatal("not caught")
			}
			t.Log("caught:", err)
		})
	}
}

// naive is WriteFileAtomic without one of its syncs.
func naive(p primitives, syncFile, syncDir bool) error {
	h, err := p.create("f.tmp", 0o600)
	if err != nil {
		return err
	}
	if _, err := h.Write(newData); err != nil {
		return err
	}
	if syncFile {
		if err := h.Sync(); err != nil {
			return err
		}
	}
	if err := p.rename("f.tmp", "f"); err != nil {
		return err
	}
	if syncDir {
		return p.syncDir(path.Dir("f"))
	}
	return nil
}

func TestRestartIsDeterministic(t *testing.T) {
	make1 := func() *Sim {
		d := NewSim()
		for i := range 10 {
			must(t, d.WriteFileAtomic(fmt.Sprint("f", i), oldData, 0o600))
		}
		d.CrashAfter(3)
		_ = d.WriteFileAtomic("f3", newData, 0o600)
		return d
	}
	for seed := range uint64(50) {
		a, b := make1().Restart(seed), make1().Restart(seed)
		for name, node := range a.d.names {
			if other := b.d.names[name]; other == nil || !bytes.Equal(node.data, other.data) {
				t.Fatalf("seed %d: %s differs", seed, name)
			}
		}
	}
}
