package client

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/seed-a893640b/tae/dprf"
)

const (
	// penalty is how long a node that failed is asked last.
	penalty = 2 * time.Second

	firstHedge = 150 * time.Millisecond // before anything is known
	minHedge   = 10 * time.Millisecond
	maxHedge   = 2 * time.Second
)

// health remembers how the nodes did lately, to ask the quick ones first. It is
// advice only: every node is asked when no other is left. Safe for concurrent use.
type health struct {
	mu    sync.Mutex
	nodes [dprf.MaxNodes + 1]nodeHealth
	mean  time.Duration // of finished operations
	dev   time.Duration
}

type nodeHealth struct {
	rtt    time.Duration // moving average, 0 unknown
	failed time.Time
}

// note records one call.
func (h *health) note(node int, took time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := &h.nodes[node]
	switch {
	case err != nil:
		n.failed = time.Now()
	case n.rtt == 0:
		n.rtt = took
	default:
		n.rtt += (took - n.rtt) / 8
	}
}

// finished records how long an operation took, for the hedging delay.
func (h *health) finished(took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mean == 0 {
		h.mean, h.dev = took, took/2
		return
	}
	diff := took - h.mean
	h.mean += diff / 8
	h.dev += (max(diff, -diff) - h.dev) / 4
}

// hedgeDelay is how long to wait for an answer before others are asked as well:
// four mean deviations above the mean, as TCP sets its retransmission timer (RFC
// 6298).
func (h *health) hedgeDelay() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mean == 0 {
		return firstHedge
	}
	return min(max(h.mean+4*h.dev, minHedge), maxHedge)
}

// choose picks size nodes of 1..n outside avoid, the quickest first and those that
// failed lately last; 0 when there are not enough.
func (h *health) choose(n, size int, avoid dprf.Set) (q dprf.Set) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	type candidate struct {
		node   int
		failed bool
		rtt    int // as a power of two: lesser differences do not matter, or one node would serve all
	}
	var list []candidate
	for _, i := range rand.Perm(n) { // equals are asked in turn
		if !avoid.Has(i + 1) {
			s := h.nodes[i+1]
			list = append(list, candidate{i + 1, now.Sub(s.failed) < penalty, bits.Len64(uint64(s.rtt))})
		}
	}
	if len(list) < size {
		return 0
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		if a.failed != b.failed {
			if b.failed {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.rtt, b.rtt)
	})
	for _, c := range list[:size] {
		q |= dprf.SetOf(c.node)
	}
	return q
}
