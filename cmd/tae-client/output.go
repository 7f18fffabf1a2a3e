package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// writeFile lets write fill a temporary file beside name and puts it in name's
// place when it is complete and on disk. On any error name is as it was.
func writeFile(name string, write func(*os.File) error) (err error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file; write to standard output instead", name)
	}
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, "."+filepath.Base(name)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			err = errors.Join(err, removed(os.Remove(f.Name())))
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil // the file is complete; only its name's durability is not confirmed
	}
	defer d.Close()
	_ = d.Sync()
	return nil
}

func removed(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
