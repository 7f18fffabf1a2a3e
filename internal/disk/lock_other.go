//go:build !unix || solaris || aix

package disk

import (
	"errors"
	"os"
)

// lockFile has no implementation here, and a node must not run unlocked.
func lockFile(*os.File) error { return errors.ErrUnsupported }
