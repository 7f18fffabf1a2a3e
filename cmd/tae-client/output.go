package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-a893640b/tae/internal/cli"
	"github.com/seed-a893640b/tae/internal/exit"
)

// writeFile lets write fill a temporary file beside name and puts it in name's
// place when it is complete and on disk. On any error name is as it was.
func writeFile(ctx context.Context, name string, write func(*os.File) error) (err error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return exit.With(exit.Input, fmt.Errorf("%s is not a regular file; leave -o away and redirect standard output to it", name))
	}
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, "."+filepath.Base(name)+".*.tmp")
	if err != nil {
		return err
	}
	defer cli.OnInterrupt(ctx, func() { _ = os.Remove(f.Name()) })()
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
