package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// tempSuffix marks a file that is being written. There is one for each name, so
// that a crash leaves at most one behind and the next write replaces it.
const tempSuffix = ".tmp"

// A handle is an open file.
type handle interface {
	Write(b []byte) (int, error)
	Sync() error
	Close() error
}

// primitives are the single steps that files are made of. A crash may come
// between any two, and no step but Sync and syncDir makes anything durable.
type primitives interface {
	create(name string, perm fs.FileMode) (handle, error)               // new and empty; fails if it exists
	open(name string, perm fs.FileMode, appending bool) (handle, error) // at its end or, existing, at its start
	rename(from, to string) error
	unlink(name string) error
	mkdir(name string, perm fs.FileMode) error
	syncDir(dir string) error
	read(name string) ([]byte, error)
	list(dir string) ([]string, error)
	size(name string) (n int64, isDir bool, err error)
}

// files implements FS over primitives.
type files struct {
	p  primitives
	mu sync.Mutex // serialises writers, since a name has one temporary file
}

// ReadFile implements FS.
func (f *files) ReadFile(name string) ([]byte, error) {
	if err := checkName("read", name); err != nil {
		return nil, err
	}
	return f.p.read(name)
}

// WriteFileAtomic implements FS.
func (f *files) WriteFileAtomic(name string, data []byte, perm fs.FileMode) error {
	if err := checkName("write", name); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	temp := name + tempSuffix
	if err := f.p.unlink(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.writeTemp(temp, data, perm); err != nil {
		return errors.Join(err, f.discard(temp))
	}
	if err := f.p.rename(temp, name); err != nil {
		return errors.Join(err, f.discard(temp))
	}
	return f.p.syncDir(path.Dir(name))
}

// writeTemp writes and syncs a new file.
func (f *files) writeTemp(temp string, data []byte, perm fs.FileMode) error {
	h, err := f.p.create(temp, perm)
	if err != nil {
		return err
	}
	return finish(h, data)
}

// finish writes data to h, syncs and closes it; the first error wins.
func finish(h handle, data []byte) error {
	_, err := h.Write(data)
	if err == nil {
		// Before the rename: else the new name may come to stand for an empty file.
		err = h.Sync()
	}
	if cerr := h.Close(); err == nil {
		err = cerr
	}
	return err
}

// discard removes a temporary file after a failed write.
func (f *files) discard(temp string) error {
	if err := f.p.unlink(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("and its temporary file stays: %w", err)
	}
	return nil
}

// AppendFile implements FS.
func (f *files) AppendFile(name string, data []byte, perm fs.FileMode) error {
	if err := checkName("append", name); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _, err := f.p.size(name)
	isNew := errors.Is(err, fs.ErrNotExist)
	if err != nil && !isNew {
		return err
	}
	h, err := f.p.open(name, perm, true)
	if err != nil {
		return err
	}
	if err := finish(h, data); err != nil {
		return err
	}
	if isNew {
		return f.p.syncDir(path.Dir(name))
	}
	return nil
}

// Remove implements FS.
func (f *files) Remove(name string) error {
	if err := checkName("remove", name); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, isDir, err := f.p.size(name)
	if err != nil {
		return err
	}
	if !isDir {
		// Best effort: a file that cannot be overwritten is removed all the same.
		if h, err := f.p.open(name, 0, false); err == nil {
			_ = finish(h, make([]byte, n))
		}
	}
	if err := f.p.unlink(name); err != nil {
		return err
	}
	return f.p.syncDir(path.Dir(name))
}

// List implements FS.
func (f *files) List(dir string) ([]string, error) {
	if dir != "." {
		if err := checkName("list", dir); err != nil {
			return nil, err
		}
	}
	names, err := f.p.list(dir)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(s string) bool { return strings.HasSuffix(s, tempSuffix) })
	slices.Sort(names)
	return names, nil
}

// MkdirAll implements FS.
func (f *files) MkdirAll(dir string, perm fs.FileMode) error {
	if dir == "." {
		return nil
	}
	if err := checkName("mkdir", dir); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	parts := strings.Split(dir, "/")
	for i := range parts {
		name := strings.Join(parts[:i+1], "/")
		err := f.p.mkdir(name, perm)
		if errors.Is(err, fs.ErrExist) {
			if _, isDir, serr := f.p.size(name); serr == nil && isDir {
				err = nil
			}
		}
		if err != nil {
			return err
		}
		// An existing directory too: a crash may have come between the two steps.
		if err := f.p.syncDir(path.Dir(name)); err != nil {
			return err
		}
	}
	return nil
}

// checkName refuses names that leave the root or belong to temporary files.
func checkName(op, name string) error {
	if name == "." || !fs.ValidPath(name) || strings.ContainsAny(name, "\\\x00") || strings.HasSuffix(name, tempSuffix) {
		return &fs.PathError{Op: op, Path: name, Err: ErrName}
	}
	return nil
}
