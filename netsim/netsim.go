// Package netsim is an in-memory network with seeded faults. It carries opaque
// requests and answers as the real transport does, for tests, demos and
// benchmarks.
//
// A call sleeps for the simulated latency and then invokes the handler. Inside a
// testing/synctest bubble the sleep is virtual; outside it is real.
//
// Every fault is a pure function of the seed, the two ends, the request's bytes
// and how often those bytes were sent before - never of scheduling - so that a
// run with many concurrent operations repeats exactly. Operations that send
// identical bytes between the same ends at the same time share one attempt
// counter and are the one exception.
package netsim

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrUnreachable says that there is no path to the node: crashed, partitioned or
	// unknown. It comes at once and may be retried.
	ErrUnreachable = errors.New("netsim: unreachable")
	// ErrTimeout says that the context's deadline passed without an answer.
	ErrTimeout = errors.New("netsim: no answer in time")
)

// A Caller is the authenticated origin of a request.
type Caller struct {
	Key  [32]byte // Ed25519 public key
	Node int      // member index, 0 for a client
}

// A Handler answers requests; it owns req. ctx ends with the caller's.
type Handler = func(ctx context.Context, from Caller, req []byte) []byte

// Faults are the rates and delays of a link. The zero value is a perfect, immediate link.
type Faults struct {
	Latency     time.Duration // one way
	Jitter      time.Duration // added to Latency, uniform in [0, Jitter); reorders
	LoseRequest float64       // probability that the handler never sees the request
	LoseAnswer  float64       // probability that the handler runs and its answer is lost
	Duplicate   float64       // probability that the handler sees the request twice
	CorruptReq  float64       // probability that one bit of the request flips
	CorruptResp float64       // probability that one bit of the answer flips
}
