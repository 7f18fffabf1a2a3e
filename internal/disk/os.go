package disk

import (
	"io/fs"
	"os"
	"runtime"
)

// A Root is an FS on the operating system's disk, confined to one directory: no
// name and no symbolic link leads out of it.
type Root struct {
	files
	root *os.Root
}

var _ FS = (*Root)(nil)

// OS opens the directory root, which must exist. Close releases it.
func OS(root string) (*Root, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	return &Root{files: files{p: osPrimitives{r}}, root: r}, nil
}

// Close releases the directory. Files already written stay.
func (r *Root) Close() error { return r.root.Close() }

// Lock takes an exclusive lock on a lock file, created if missing, and returns
// the function that releases it. It fails at once with ErrLocked while another
// process, or another Lock in this one, holds it. The lock ends with the
// process, however that dies, so a stale file does not lock anybody out.
func (r *Root) Lock(name string) (release func() error, err error) {
	if err := checkName("lock", name); err != nil {
		return nil, err
	}
	f, err := r.root.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		_ = f.Close()
		return nil, &fs.PathError{Op: "lock", Path: r.root.Name() + "/" + name, Err: err}
	}
	return f.Close, nil
}

// osPrimitives are the single steps on a real disk.
type osPrimitives struct{ r *os.Root }

func (p osPrimitives) create(name string, perm fs.FileMode) (handle, error) {
	return p.file(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
}

func (p osPrimitives) open(name string, perm fs.FileMode, appending bool) (handle, error) {
	if appending {
		return p.file(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, perm)
	}
	return p.file(name, os.O_WRONLY, perm)
}

// file avoids a typed nil in the interface.
func (p osPrimitives) file(name string, flag int, perm fs.FileMode) (handle, error) {
	f, err := p.r.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (p osPrimitives) rename(from, to string) error              { return p.r.Rename(from, to) }
func (p osPrimitives) unlink(name string) error                  { return p.r.Remove(name) }
func (p osPrimitives) mkdir(name string, perm fs.FileMode) error { return p.r.Mkdir(name, perm) }
func (p osPrimitives) read(name string) ([]byte, error)          { return p.r.ReadFile(name) }

func (p osPrimitives) syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // a directory cannot be synced there
	}
	d, err := p.r.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

func (p osPrimitives) list(dir string) ([]string, error) {
	d, err := p.r.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

func (p osPrimitives) size(name string) (int64, bool, error) {
	st, err := p.r.Lstat(name)
	if err != nil {
		return 0, false, err
	}
	return st.Size(), st.IsDir(), nil
}
