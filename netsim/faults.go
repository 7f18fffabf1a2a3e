package netsim

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"time"
)

// Faults are the delays and fault rates of messages to a node. The zero value is
// a perfect, immediate network. Rates are probabilities in [0, 1].
type Faults struct {
	Latency        time.Duration // one way
	Jitter         time.Duration // added to each way, uniform in [0, Jitter); reorders
	LoseRequest    float64       // the handler never sees the request; the caller waits
	LoseAnswer     float64       // the handler runs, its answer is lost; the caller waits
	Duplicate      float64       // the handler sees the request a second time, maybe late
	CorruptRequest float64       // one bit of the request flips
	CorruptAnswer  float64       // one bit of the answer flips
}

// Counts says how often something happened since New.
type Counts struct {
	Calls             int
	LostRequests      int
	LostAnswers       int
	Duplicates        int
	CorruptedRequests int
	CorruptedAnswers  int
	Lies              int // answers that a Lie changed
	Slowed            int
	Partitioned       int // messages that met a partition
	Unreachable       int // calls that met a crashed or unknown node
}

// SetFaults replaces the faults of messages to every node without its own.
func (n *Network) SetFaults(f Faults) { n.mu.Lock(); defer n.mu.Unlock(); n.faults = f }

// SetNodeFaults replaces the faults of messages to one node.
func (n *Network) SetNodeFaults(index int, f Faults) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.byNode[index] = f
}

// Slow makes a node's handler start d late, until it is replaced.
func (n *Network) Slow(index int, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if nd := n.nodes[index]; nd != nil {
		nd.slow = d
	}
}

// Lie passes a node's answers through f, until the node is replaced or f is nil.
// f may be called from many goroutines at once and owns resp.
func (n *Network) Lie(index int, f func(req, resp []byte) []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if nd := n.nodes[index]; nd != nil {
		nd.lie = f
	}
}

// Partition separates groups of member indexes, where 0 stands for all clients:
// messages between two groups are lost, those already under way too. Whoever is
// in no group reaches everybody. It replaces an earlier partition.
func (n *Network) Partition(groups ...[]int) {
	m := make(map[int]int)
	for g, members := range groups {
		for _, i := range members {
			m[i] = g
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.groups = m
}

// Heal ends a partition.
func (n *Network) Heal() { n.Partition() }

// cut reports, and counts, that a partition separates two ends.
func (n *Network) cut(a, b int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	ga, oka := n.groups[a]
	gb, okb := n.groups[b]
	if !oka || !okb || ga == gb {
		return false
	}
	n.counts.Partitioned++
	return true
}

// Counts returns the counters.
func (n *Network) Counts() Counts { n.mu.Lock(); defer n.mu.Unlock(); return n.counts }

// Attempts returns the number of different requests seen and how many of them
// were sent more than once.
func (n *Network) Attempts() (distinct, repeated int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for v := range maps.Values(n.attempts) {
		if distinct++; v > 1 {
			repeated++
		}
	}
	return distinct, repeated
}

// A fate is everything random about one call, drawn before it starts.
type fate struct {
	there, back, again      time.Duration // delays: request, answer, duplicate
	loseRequest, loseAnswer bool
	duplicate               bool
	flipRequest, flipAnswer bool
	requestBit, answerBit   uint64
	slow                    time.Duration
	lie                     func(req, resp []byte) []byte
}

// draw decides the fate of a call. All draws happen whatever the rates are, so
// that changing one rate leaves the other faults where they were.
func (n *Network) draw(from Caller, to int, nd *node, req []byte) fate {
	var b bytes.Buffer
	b.Write(from.Key[:])
	for _, v := range []uint64{n.seed, uint64(from.Node), uint64(to)} {
		_ = binary.Write(&b, binary.BigEndian, v)
	}
	b.Write(req)
	id := sha256.Sum256(b.Bytes())

	n.mu.Lock()
	defer n.mu.Unlock()
	attempt := n.attempts[id]
	n.attempts[id]++
	f, own := n.byNode[to]
	if !own {
		f = n.faults
	}
	rng := rand.New(rand.NewPCG(binary.BigEndian.Uint64(id[:]), binary.BigEndian.Uint64(id[8:])+attempt))
	delay := func() time.Duration { return f.Latency + time.Duration(rng.Float64()*float64(f.Jitter)) }
	t := fate{there: delay(), back: delay(), slow: nd.slow, lie: nd.lie}
	t.again = t.there + 2*delay()
	t.loseRequest = rng.Float64() < f.LoseRequest
	t.loseAnswer = rng.Float64() < f.LoseAnswer
	t.duplicate = rng.Float64() < f.Duplicate
	t.flipRequest = rng.Float64() < f.CorruptRequest
	t.flipAnswer = rng.Float64() < f.CorruptAnswer
	t.requestBit, t.answerBit = rng.Uint64(), rng.Uint64()
	return t
}

// count runs f on the counters.
func (n *Network) count(f func(c *Counts)) { n.mu.Lock(); defer n.mu.Unlock(); f(&n.counts) }

// flip inverts one bit of b.
func flip(b []byte, bit uint64) {
	if len(b) > 0 {
		bit %= uint64(len(b)) * 8
		b[bit/8] ^= 1 << (bit % 8)
	}
}
