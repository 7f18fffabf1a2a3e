// Package netsim is an in-memory network with seeded faults. It carries opaque
// requests and answers as the real transport does, for tests, demos and
// benchmarks.
//
//	n := netsim.New(seed)
//	n.AddNode(1, key, handler)
//	n.SetFaults(netsim.Faults{Latency: 10 * time.Millisecond, LoseAnswer: 0.1})
//	answer, err := n.Dial(netsim.Caller{Key: clientKey}).Call(ctx, 1, request)
//
// A call sleeps for the simulated latency and then invokes the handler. Inside a
// testing/synctest bubble the sleep is virtual; outside it is real.
//
// Every random fault is a pure function of the seed, the two ends, the request's
// bytes and how often those bytes were sent before - never of scheduling - so
// that a run with many concurrent operations repeats exactly. The one exception
// is a caller that sends identical bytes to one node from several goroutines at
// the same instant: which of them is the first attempt is up to the scheduler.
package netsim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// The kinds of failure of a Call, for errors.Is; the error itself is an *Error.
// They mean what the real transport's errors of these names mean.
var (
	// ErrUnreachable says that there is no connection: the node is unknown or
	// crashed (at once), or partitioned off (after DetectAfter). May be retried.
	ErrUnreachable = errors.New("unreachable")
	// ErrTimeout says that the context's deadline passed without an answer; it also
	// matches context.DeadlineExceeded.
	ErrTimeout = errors.New("no answer in time")
)

// DetectAfter is how long a caller waits before it takes a silent node, one
// beyond a partition, for unreachable.
const DetectAfter = 5 * time.Second

// An Error is the failure of one call.
type Error struct {
	Node   int
	Kind   error // ErrUnreachable, ErrTimeout or context.Canceled
	Detail error // may be nil
}

func (e *Error) Error() string {
	s := fmt.Sprintf("node %d: %v", e.Node, e.Kind)
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

// A Caller is the authenticated origin of a request.
type Caller struct {
	Key  [32]byte // Ed25519 public key
	Node int      // member index, 0 for a client
}

// A Handler answers requests; it owns req. ctx ends when the caller gives up or
// the node crashes. It may be called from many goroutines at once.
type Handler = func(ctx context.Context, from Caller, req []byte) []byte

// A Network connects simulated nodes. It is safe for concurrent use.
type Network struct {
	seed uint64

	mu       sync.Mutex
	nodes    map[int]*node
	faults   Faults
	byNode   map[int]Faults
	groups   map[int]int // partition: member index (0: clients) to group
	attempts map[[32]byte]uint64
	counts   Counts
}

// A node is one life of a node: a restart makes a new one.
type node struct {
	key     [32]byte
	handler Handler
	down    chan struct{} // closed by Crash
	slow    time.Duration
	lie     func(req, resp []byte) []byte
}

// New returns a network without nodes and without faults.
func New(seed uint64) *Network {
	return &Network{seed: seed, nodes: make(map[int]*node), byNode: make(map[int]Faults), attempts: make(map[[32]byte]uint64)}
}

// AddNode starts a node, or replaces one together with its Lie and Slow.
func (n *Network) AddNode(index int, key [32]byte, h Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old := n.nodes[index]; old != nil {
		old.stop()
	}
	n.nodes[index] = &node{key: key, handler: h, down: make(chan struct{})}
}

func (nd *node) stop() {
	select {
	case <-nd.down:
	default:
		close(nd.down)
	}
}

// Crash stops a node: calls in flight and later ones fail with ErrUnreachable,
// and the contexts of its handlers end.
func (n *Network) Crash(index int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if nd := n.nodes[index]; nd != nil {
		nd.stop()
	}
}

// Restart starts a crashed node again with the same key and a new handler.
func (n *Network) Restart(index int, h Handler) {
	n.mu.Lock()
	nd := n.nodes[index]
	n.mu.Unlock()
	if nd != nil {
		n.AddNode(index, nd.key, h)
	}
}

// Dial returns the connection of one caller. It does not fail: an unreachable
// node shows in the calls.
func (n *Network) Dial(from Caller) *Conn { return &Conn{n, from} }

// A Conn sends the requests of one caller. It is safe for concurrent use.
type Conn struct {
	net  *Network
	from Caller
}

// Call sends a copy of req to node to and returns its answer, which the caller
// owns. A call to the caller's own index meets no fault.
func (c *Conn) Call(ctx context.Context, to int, req []byte) ([]byte, error) {
	return c.net.call(ctx, c.from, to, req)
}
