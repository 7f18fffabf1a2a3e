// Package exit maps errors to the exit codes of the commands. They are part of the
// interface: scripts depend on them.
package exit

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/seed-a893640b/tae/client"
	"github.com/seed-a893640b/tae/internal/armor"
	"github.com/seed-a893640b/tae/internal/config"
	"github.com/seed-a893640b/tae/internal/p2p"
	"github.com/seed-a893640b/tae/protocol"
)

// The exit codes.
const (
	OK             = 0
	Generic        = 1
	Usage          = 2
	Input          = 3   // input or output failed, or the input is not a well-formed object
	Config         = 4   // configuration, key file, passphrase
	Quorum         = 10  // too few nodes answered
	Denied         = 11  // by so many nodes that no quorum is left
	Authentication = 12  // well formed, but does not verify
	Epoch          = 13  // epoch or keyset retired or unknown
	Throttled      = 14  // the nodes ask to come back later
	Version        = 15  // an object or a peer of another version
	Dispute        = 16  // nodes gave wrong values
	Partial        = 20  // some items of a batch failed
	Interrupted    = 130 // by a signal
)

// An Error carries an exit code of its own.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// With gives err an exit code.
func With(code int, err error) error {
	if err == nil {
		return nil
	}
	return &Error{code, err}
}

// Code is the exit code of err.
func Code(err error) int {
	var own *Error
	if err == nil {
		return OK
	}
	if errors.As(err, &own) {
		return own.Code
	}
	for _, c := range []struct {
		is   error
		code int
	}{
		{context.Canceled, Interrupted},
		{config.ErrConfig, Config},
		{p2p.ErrConfig, Config},
		{protocol.ErrName, Usage},
		{syscall.EADDRINUSE, Input},
		{client.ErrDispute, Dispute},
		{client.ErrAuthentication, Authentication},
		{client.ErrVersion, Version},
		{client.ErrDenied, Denied},
		{client.ErrUnknownKeyset, Epoch},
		{client.ErrEpoch, Epoch},
		{client.ErrBusy, Throttled},
		{client.ErrQuorum, Quorum},
		{client.ErrNotObject, Input},
		{client.ErrTooLarge, Input},
		{armor.ErrArmor, Input},
	} {
		if errors.Is(err, c.is) {
			return c.code
		}
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return Input
	}
	return Generic
}
