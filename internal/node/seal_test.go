package node

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/seed-a893640b/tae/internal/disk"
	"github.com/seed-a893640b/tae/internal/secret"
)

var cheap = SealCost{Time: 1, MemoryKiB: 8, Threads: 1}

func pass(s string) secret.Bytes { return secret.Copy([]byte(s)) }

func newSealed(t testing.TB) (*disk.Sim, *Sealer) {
	t.Helper()
	d := disk.NewSim()
	s, err := NewSealer(d, pass("right"), cheap)
	if err != nil {
		t.Fatal(err)
	}
	return d, s
}

func TestSealRoundTrip(t *testing.T) {
	d, s := newSealed(t)
	if err := s.Write("a", pass("content")); err != nil {
		t.Fatal(err)
	}
	again, err := OpenSealer(d, pass("right"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.Read("a")
	if err != nil || !got.Equal(pass("content")) {
		t.Errorf("%v", err)
	}
	if b, _ := d.ReadFile("a"); bytes.Contains(b, []byte("content")) {
		t.Error("the content lies in the clear")
	}
	if _, err := NewSealer(d, pass("other"), cheap); err == nil {
		t.Error("an existing seal was replaced")
	}
}

func TestWrongPassphrase(t *testing.T) {
	d, _ := newSealed(t)
	if _, err := OpenSealer(d, pass("wrong")); !errors.Is(err, ErrPassphrase) {
		t.Errorf("got %v", err)
	}
}

// Every bit of a sealed file and of the seal counts, and damage is told from a
// foreign file.
func TestSealedFileDamage(t *testing.T) {
	d, s := newSealed(t)
	if err := s.Write("a", pass("content")); err != nil {
		t.Fatal(err)
	}
	good, _ := d.ReadFile("a")
	put := func(b []byte) error {
		if err := d.WriteFileAtomic("a", b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := s.Read("a")
		if err == nil || got.Len() != 0 {
			t.Error("damaged file accepted")
		}
		return err
	}
	for bit := range 8 * len(good) {
		b := bytes.Clone(good)
		b[bit/8] ^= 1 << (bit % 8)
		if err := put(b); !errors.Is(err, ErrDamaged) {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
	for n := range len(good) {
		if err := put(good[:n]); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "a:") {
			t.Fatalf("cut to %d: %v", n, err)
		}
	}
	if err := s.Write("b", pass("other")); err != nil {
		t.Fatal(err)
	}
	other, _ := d.ReadFile("b")
	if err := put(other); !errors.Is(err, ErrForeign) {
		t.Errorf("a swapped file: %v", err)
	}
	d2, s2 := newSealed(t)
	if err := s2.Write("a", pass("x")); err != nil {
		t.Fatal(err)
	}
	foreign, _ := d2.ReadFile("a")
	if err := put(foreign); !errors.Is(err, ErrForeign) {
		t.Errorf("another directory's file: %v", err)
	}
	seal, _ := d.ReadFile(sealFile)
	for bit := range 8 * len(seal) {
		b := bytes.Clone(seal)
		b[bit/8] ^= 1 << (bit % 8)
		d.WriteFileAtomic(sealFile, b, 0o600)
		if _, err := OpenSealer(d, pass("right")); err == nil {
			t.Fatalf("seal with bit %d flipped opens", bit)
		}
	}
}

func FuzzSealedFile(f *testing.F) {
	d, s := newSealed(f)
	if err := s.Write("a", pass("content")); err != nil {
		f.Fatal(err)
	}
	good, _ := d.ReadFile("a")
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		d.WriteFileAtomic("a", b, 0o600)
		if got, err := s.Read("a"); err == nil && !bytes.Equal(b, good) {
			t.Errorf("a forged file opens to %d bytes", got.Len())
		}
	})
}

func FuzzExchange(f *testing.F) {
	f.Add((&exchange{have: [][32]byte{{1}}, phase: 3}).append(1, 32)[2:])
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := readExchange(b)
		if err != nil {
			return
		}
		if again := e.append(0, 0)[2:]; !bytes.Equal(again, b) {
			t.Errorf("not canonical")
		}
	})
}
