package p2p

import (
	"errors"
	"fmt"
)

// The kinds of failure of a Call, for errors.Is. The error itself is an *Error
// that names the node. Timeouts also match context.DeadlineExceeded, and a call
// whose context was cancelled matches context.Canceled.
var (
	ErrUnreachable = errors.New("unreachable")                 // no connection, or it ended; may be retried
	ErrTimeout     = errors.New("no answer in time")           // the context's deadline passed
	ErrIdentity    = errors.New("wrong identity")              // the address belongs to another key
	ErrRefused     = errors.New("refused the connection")      // the node may not list our key; also ErrUnreachable
	ErrBusy        = errors.New("busy")                        // over the node's bounds; may be retried
	ErrFailed      = errors.New("node could not answer")       // the node's handler failed
	ErrFrame       = errors.New("malformed or oversize frame") // a message outside the framing's limits
	ErrClosed      = errors.New("transport closed")            // this host was closed
	ErrUnknownNode = errors.New("not a node of this cluster")  // no such index in the configuration
	ErrConfig      = errors.New("bad transport configuration")
)

// An Error is the failure of one call or connection.
type Error struct {
	Node   int    // member index
	Name   string // configured name
	Addr   string // address, when one is known
	Kind   error  // one of the package's sentinel errors
	Detail error  // what happened; may be nil
}

// Error names the node first, since a user sees one such line per node.
func (e *Error) Error() string {
	s := fmt.Sprintf("node %s", e.Name)
	if e.Addr != "" {
		s += " at " + e.Addr
	}
	if e.Kind == ErrIdentity && e.Detail != nil {
		return s + " " + e.Detail.Error()
	}
	s += ": " + e.Kind.Error()
	if e.Detail != nil {
		s += ": " + e.Detail.Error()
	}
	return s
}

// Unwrap returns the kind and the detail.
func (e *Error) Unwrap() []error {
	if e.Detail == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Detail}
}
