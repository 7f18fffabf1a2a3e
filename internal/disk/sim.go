package disk

import (
	"io/fs"
	"maps"
	"path"
	"sync"
	"syscall"
)

// A Sim is an FS on a simulated disk that forgets what was not synced. It has a
// volatile state, which operations see, and a durable one, which a crash leaves
// together with any part of what was under way; Restart returns that.
//
// Directories and files live by the rules of a journaling file system at its
// least helpful: a synced file has its content but its name only once the
// directory is synced; unsynced names and renames survive independently of each
// other, each wholly or not at all; unsynced content may be old, empty, torn or
// padded with zeros. It is safe for concurrent use.
type Sim struct {
	files
	d *simDisk
}

var _ FS = (*Sim)(nil)

// NewSim returns an empty simulated disk.
func NewSim() *Sim {
	return newSim(&simDisk{names: map[string]*inode{".": {dir: true}}, durable: map[string]*inode{".": {dir: true}}, capacity: -1})
}

func newSim(d *simDisk) *Sim { return &Sim{files: files{p: d}, d: d} }

// An inode is a file's content or a directory. data is what operations see,
// synced what the last sync made durable.
type inode struct {
	dir    bool
	data   []byte
	synced []byte
}

// A change is an unsynced operation on a directory: the names that come to stand
// for an inode, or for nothing.
type change struct {
	dir  string
	sets map[string]*inode
}

type simDisk struct {
	mu       sync.Mutex
	names    map[string]*inode // volatile
	durable  map[string]*inode // what a crash leaves for certain
	pending  []change          // between the two, in order
	steps    int
	crashAt  int // step that fails and all after it; 0: none
	failAt   int // step that fails alone; 0: none
	failWith error
	crashed  bool
	capacity int64 // bytes; negative: unlimited
}

// Steps returns the number of primitive steps taken so far. Reads are not steps.
func (s *Sim) Steps() int { s.d.mu.Lock(); defer s.d.mu.Unlock(); return s.d.steps }

// CrashAfter makes the k-th primitive step from now, 1 for the next, and every
// operation after it fail with ErrCrashed. Whether the failing step reached the
// disk is for Restart's seed to say.
func (s *Sim) CrashAfter(k int) { s.d.mu.Lock(); defer s.d.mu.Unlock(); s.d.crashAt = s.d.steps + k }

// FailAfter makes the k-th primitive step from now, 1 for the next, fail with err
// and without effect, once.
func (s *Sim) FailAfter(k int, err error) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.d.failAt, s.d.failWith = s.d.steps+k, err
}

// SetCapacity bounds the bytes of all files; a write beyond is cut short and
// fails with syscall.ENOSPC. A negative capacity is no bound.
func (s *Sim) SetCapacity(n int64) { s.d.mu.Lock(); defer s.d.mu.Unlock(); s.d.capacity = n }

// Crashed reports whether the crash that CrashAfter set has happened.
func (s *Sim) Crashed() bool { s.d.mu.Lock(); defer s.d.mu.Unlock(); return s.d.crashed }

// step counts a primitive step and returns how it is to fail. crash means that
// it may have taken effect, as an unsynced operation.
func (d *simDisk) step() (crash bool, err error) {
	if d.crashed {
		return false, ErrCrashed
	}
	d.steps++
	if d.crashAt > 0 && d.steps >= d.crashAt {
		d.crashed = true
		return true, ErrCrashed
	}
	if d.failAt > 0 && d.steps == d.failAt {
		return false, d.failWith
	}
	return false, nil
}

// set applies a change to the volatile state and remembers it as unsynced.
func (d *simDisk) set(dir string, sets map[string]*inode) {
	apply(d.names, sets)
	d.pending = append(d.pending, change{dir, sets})
}

func apply(names, sets map[string]*inode) {
	for name, node := range sets {
		if node == nil {
			delete(names, name)
		} else {
			names[name] = node
		}
	}
}

func pathErr(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// parent returns an error unless name's directory exists.
func (d *simDisk) parent(op, name string) error {
	if p := d.names[path.Dir(name)]; p == nil || !p.dir {
		return pathErr(op, name, fs.ErrNotExist)
	}
	return nil
}

func (d *simDisk) create(name string, _ fs.FileMode) (handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.parent("create", name); err != nil && !d.crashed {
		return nil, err
	}
	if d.names[name] != nil && !d.crashed {
		return nil, pathErr("create", name, fs.ErrExist)
	}
	return d.add(name)
}

// add is the step that makes an empty file.
func (d *simDisk) add(name string) (handle, error) {
	crash, err := d.step()
	node := &inode{}
	if err == nil || crash {
		d.set(path.Dir(name), map[string]*inode{name: node})
	}
	if err != nil {
		return nil, pathErr("create", name, err)
	}
	return &simFile{d: d, name: name, node: node}, nil
}

func (d *simDisk) open(name string, _ fs.FileMode, appending bool) (handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.crashed {
		return nil, pathErr("open", name, ErrCrashed)
	}
	node := d.names[name]
	if node == nil {
		if !appending {
			return nil, pathErr("open", name, fs.ErrNotExist)
		}
		if err := d.parent("open", name); err != nil {
			return nil, err
		}
		return d.add(name)
	}
	f := &simFile{d: d, name: name, node: node}
	if appending {
		f.at = len(node.data)
	}
	return f, nil
}

func (d *simDisk) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.names[from]
	if node == nil && !d.crashed {
		return pathErr("rename", from, fs.ErrNotExist)
	}
	if old := d.names[to]; old != nil && old.dir && !d.crashed {
		return pathErr("rename", to, syscall.EISDIR)
	}
	crash, err := d.step()
	if err == nil || crash {
		d.set(path.Dir(to), map[string]*inode{from: nil, to: node})
	}
	if err != nil {
		return pathErr("rename", to, err)
	}
	return nil
}

func (d *simDisk) unlink(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.names[name]
	if node == nil && !d.crashed {
		return pathErr("remove", name, fs.ErrNotExist)
	}
	if node != nil && node.dir && !d.crashed && len(d.children(name)) > 0 {
		return pathErr("remove", name, syscall.ENOTEMPTY)
	}
	crash, err := d.step()
	if err == nil || crash {
		d.set(path.Dir(name), map[string]*inode{name: nil})
	}
	if err != nil {
		return pathErr("remove", name, err)
	}
	return nil
}

func (d *simDisk) mkdir(name string, _ fs.FileMode) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.parent("mkdir", name); err != nil && !d.crashed {
		return err
	}
	if d.names[name] != nil && !d.crashed {
		return pathErr("mkdir", name, fs.ErrExist)
	}
	crash, err := d.step()
	if err == nil || crash {
		d.set(path.Dir(name), map[string]*inode{name: {dir: true}})
	}
	if err != nil {
		return pathErr("mkdir", name, err)
	}
	return nil
}

// syncDir makes the names of one directory durable. Crashing in it leaves that
// to chance, like anything unsynced.
func (d *simDisk) syncDir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.step(); err != nil {
		return pathErr("sync", dir, err)
	}
	rest := d.pending[:0:0]
	for _, c := range d.pending {
		if c.dir == dir {
			apply(d.durable, c.sets)
		} else {
			rest = append(rest, c)
		}
	}
	d.pending = rest
	return nil
}

func (d *simDisk) read(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.names[name]
	switch {
	case d.crashed:
		return nil, pathErr("read", name, ErrCrashed)
	case node == nil:
		return nil, pathErr("read", name, fs.ErrNotExist)
	case node.dir:
		return nil, pathErr("read", name, syscall.EISDIR)
	}
	return append([]byte{}, node.data...), nil
}

func (d *simDisk) list(dir string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch node := d.names[dir]; {
	case d.crashed:
		return nil, pathErr("list", dir, ErrCrashed)
	case node == nil:
		return nil, pathErr("list", dir, fs.ErrNotExist)
	case !node.dir:
		return nil, pathErr("list", dir, syscall.ENOTDIR)
	}
	return d.children(dir), nil
}

func (d *simDisk) children(dir string) (out []string) {
	for name := range maps.Keys(d.names) {
		if name != "." && path.Dir(name) == dir {
			out = append(out, path.Base(name))
		}
	}
	return out
}

func (d *simDisk) size(name string) (int64, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.names[name]
	switch {
	case d.crashed:
		return 0, false, pathErr("stat", name, ErrCrashed)
	case node == nil:
		return 0, false, pathErr("stat", name, fs.ErrNotExist)
	}
	return int64(len(node.data)), node.dir, nil
}
