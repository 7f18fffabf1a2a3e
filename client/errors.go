package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-a893640b/tae/internal/p2p"
	"github.com/seed-a893640b/tae/protocol"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrAuthentication: the object was altered, or the associated data differ.
	// Retrying does not help.
	ErrAuthentication = protocol.ErrAuthentication
	// ErrNotObject: the bytes are not an object of this format.
	ErrNotObject = protocol.ErrNotObject
	// ErrVersion: an object or peer of a version that this program does not speak.
	ErrVersion = protocol.ErrObjectVersion
	// ErrTooLarge: a message over MaxMessage; use a stream.
	ErrTooLarge = protocol.ErrTooLarge
	// ErrQuorum: fewer than t nodes could answer. It is a *QuorumError.
	ErrQuorum = errors.New("quorum unavailable")
	// ErrDenied: so many nodes denied the operation that no quorum is left.
	ErrDenied = errors.New("denied by policy")
	// ErrUnknownKeyset: no node that answered knows the keyset, or the object belongs
	// to another one.
	ErrUnknownKeyset = errors.New("unknown keyset")
	// ErrEpoch: the object's epoch is retired, destroyed or not known.
	ErrEpoch = errors.New("epoch retired or unknown")
	// ErrBusy: the nodes ask to come back later.
	ErrBusy = errors.New("nodes are busy")
	// ErrDispute: nodes gave different values, and it cannot be told who is wrong.
	ErrDispute = errors.New("nodes disagree")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("client is closed")
)

// A NodeResult is what came of asking one node.
type NodeResult struct {
	Index int
	Name  string
	Err   error // nil: it answered
}

func (r NodeResult) String() string {
	if r.Err == nil {
		return r.Name + ": ok"
	}
	text := r.Err.Error()
	// The transport names the node already.
	if !strings.HasPrefix(text, r.Name+" ") && !strings.HasPrefix(text, r.Name+":") {
		text = r.Name + ": " + text
	}
	return text
}

// A QuorumError says that no quorum could serve an operation, with one line per
// node. It matches the sentinel in Kind, and the errors of the nodes.
type QuorumError struct {
	Kind  error // ErrQuorum, ErrDenied, ErrUnknownKeyset, ErrEpoch, ErrBusy or ErrVersion
	Need  int   // nodes needed
	Have  int   // nodes that answered
	Nodes []NodeResult
}

func (e *QuorumError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %d of the %d nodes needed answered", e.Kind, e.Have, e.Need)
	for _, n := range e.Nodes {
		b.WriteString("\n  " + n.String())
	}
	return b.String()
}

// Unwrap returns the kind and the nodes' errors.
func (e *QuorumError) Unwrap() []error {
	list := []error{e.Kind}
	for _, n := range e.Nodes {
		if n.Err != nil {
			list = append(list, n.Err)
		}
	}
	return list
}

// A DisputeError reports nodes that gave different values for the same key. Liars
// are the nodes that are proven wrong; it is empty when too few nodes answered to
// tell. An honest node is never among them while at most t-1 nodes lie.
type DisputeError struct {
	Liars  []string
	Detail error
}

func (e *DisputeError) Error() string { return fmt.Sprintf("%v: %v", ErrDispute, e.Detail) }

// Unwrap makes errors.Is(err, ErrDispute) hold.
func (e *DisputeError) Unwrap() []error { return []error{ErrDispute, e.Detail} }

// Retryable reports whether the same call may succeed later without any change.
func Retryable(err error) bool {
	switch {
	case errors.Is(err, ErrAuthentication), errors.Is(err, ErrDenied), errors.Is(err, ErrNotObject), errors.Is(err, ErrVersion),
		errors.Is(err, ErrUnknownKeyset), errors.Is(err, ErrEpoch), errors.Is(err, ErrTooLarge), errors.Is(err, ErrClosed):
		return false
	}
	return errors.Is(err, ErrQuorum) || errors.Is(err, ErrBusy) || errors.Is(err, context.DeadlineExceeded)
}

// kindOf sorts what a node said into the kinds of QuorumError.
func kindOf(err error) error {
	var r *protocol.Refusal
	if errors.As(err, &r) {
		switch r.Code {
		case protocol.CodeDenied:
			return ErrDenied
		case protocol.CodeUnknownKeyset:
			return ErrUnknownKeyset
		case protocol.CodeUnknownEpoch, protocol.CodeEpochRetired, protocol.CodeGeneration:
			return ErrEpoch
		case protocol.CodeBusy:
			return ErrBusy
		case protocol.CodeVersion, protocol.CodeMode:
			return ErrVersion
		}
		return ErrQuorum
	}
	if errors.Is(err, p2p.ErrBusy) {
		return ErrBusy
	}
	return ErrQuorum
}

// passing reports whether asking the node again soon may help: it was busy,
// starting, or out of reach, rather than unwilling or somebody else.
func passing(err error) bool {
	var r *protocol.Refusal
	if errors.As(err, &r) {
		return r.Code == protocol.CodeBusy || r.Code == protocol.CodeNotServing
	}
	for _, final := range []error{p2p.ErrIdentity, p2p.ErrUnknownNode, p2p.ErrFrame, p2p.ErrClosed, protocol.ErrAnswer, context.Canceled} {
		if errors.Is(err, final) {
			return false
		}
	}
	return true
}
