// Package disk writes files that must survive a crash: key shares, certificates,
// policy and audit logs.
//
// A write is complete when WriteFileAtomic returns nil, and until then the old
// file stands. The sequence is temp file, write, fsync, rename, fsync of the
// directory; it is written once, in files.go, over the primitive operations that
// a real disk (OS) and a simulated one (Sim) provide, so that the sequence tests
// crash is the one that runs.
package disk

import (
	"errors"
	"io/fs"
)

var (
	// ErrCrashed is what every operation of a Sim returns from its crash on.
	ErrCrashed = errors.New("disk: simulated crash")
	// ErrLocked says that another process holds a lock file.
	ErrLocked = errors.New("disk: locked by another process")
	// ErrName says that a name is not a plain relative path below the root.
	ErrName = errors.New("disk: bad file name")
)

// An FS is a directory tree with durable writes. Names are slash-separated and
// relative to its root; a name that leaves the root, or ends in ".tmp", is
// refused with ErrName. A missing file is fs.ErrNotExist. It is safe for
// concurrent use within one process; Lock keeps other processes out.
type FS interface {
	// ReadFile returns a file's content.
	ReadFile(name string) ([]byte, error)
	// WriteFileAtomic replaces or creates a file: after a crash it is wholly old or
	// wholly new. On an error the old file stands, unless only the last step, the
	// directory's fsync, failed: then the new one is visible but may not last.
	WriteFileAtomic(name string, data []byte, perm fs.FileMode) error
	// AppendFile adds data to a file, created if missing, and syncs it. After a
	// crash any prefix of data may have been added.
	AppendFile(name string, data []byte, perm fs.FileMode) error
	// Remove deletes a file durably. It first overwrites the content with zeros, as
	// far as that reaches: journals, copy on write and flash may keep old blocks. A
	// crash in between may leave the name with part of its content zeroed.
	Remove(name string) error
	// List returns the sorted names in a directory, "." for the root. It leaves out
	// temporary files that a crash left behind.
	List(dir string) ([]string, error)
	// MkdirAll creates a directory and its parents durably.
	MkdirAll(dir string, perm fs.FileMode) error
}
