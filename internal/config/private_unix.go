//go:build unix

package config

import (
	"fmt"
	"io"
	"os"
	"strconv"
)

// checkPrivate refuses a secret file that others may read.
func checkPrivate(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s: others may access it (mode %04o); run chmod 600 on it", file, info.Mode().Perm())
	}
	return nil
}

// readDescriptor reads the inherited descriptor whose number the variable holds.
func readDescriptor(variable string) ([]byte, error) {
	fd, err := strconv.Atoi(os.Getenv(variable))
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("fd_env %s: the variable does not hold the number of an inherited file descriptor", variable)
	}
	f := os.NewFile(uintptr(fd), variable)
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 4096))
}
