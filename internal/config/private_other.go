//go:build !unix

package config

import "errors"

// checkPrivate cannot tell who may read a file here.
func checkPrivate(string) error { return nil }

func readDescriptor(string) ([]byte, error) {
	return nil, errors.New("fd_env is not supported on this system")
}
