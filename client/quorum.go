package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/seed-a893640b/tae/dprf"
)

const (
	// maxRounds bounds the quorums asked at once: the first and two hedges.
	maxRounds = 3
	// Retries, for nodes that are busy or out of reach, wait firstPause and then
	// twice as long each time, with jitter.
	maxRetries = 4
	firstPause = 50 * time.Millisecond
)

// round is one quorum being asked.
type round interface {
	Quorum() dprf.Set
	Add(node int, answer []byte) error
	Done() bool
}

// extender is a round whose answers do not depend on who else is asked (TAE3): it
// grows by a node where another fails or is slow.
type extender interface{ Extend(q dprf.Set) }

// accuser is a round that may find, with one node's answer, that others have lied.
type accuser interface{ Lies() map[int]error }

// An operation asks quorums until one has answered in full. It is the one place
// that decides whom to ask first, when to give a node up, and when to ask others
// as well. An answer of a TAE1 node depends on the quorum, so a hedge is a new
// round with the same secrets, to a quorum that leaves the slow nodes out.
type operation[R round] struct {
	c       *Client
	t, n    int
	size    int // nodes of a quorum: t, or 2t-1 to cross-check
	start   func(q dprf.Set) (R, error)
	request func(r R, node int) []byte

	rounds  []R
	failed  dprf.Set // nodes that cannot help any more
	again   dprf.Set // among them, those that may later
	replied dprf.Set
	results map[int]error
	events  chan event
	pending int // requests under way
	begun   time.Time
}

type event struct {
	round  int
	node   int
	answer []byte
	err    error
	took   time.Duration
}

func newOperation[R round](c *Client, p dprf.Params, size int, start func(dprf.Set) (R, error), request func(R, int) []byte) *operation[R] {
	return &operation[R]{c: c, t: p.T, n: p.N, size: size, start: start, request: request, results: map[int]error{}}
}

// run returns the first round that is complete, or a *QuorumError.
func (o *operation[R]) run(ctx context.Context) (R, error) {
	var none R
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the answers of other rounds are not needed any more
	o.begun = time.Now()
	pause := firstPause
	for try := 0; ; try++ {
		// Buffered for everything that can be under way: a late answer blocks nobody.
		o.events = make(chan event, maxRounds*o.n)
		o.rounds, o.pending = nil, 0
		if err := o.launch(ctx, 0); err != nil {
			return none, err
		}
		r, ok, err := o.collect(ctx)
		if ok || err != nil {
			return r, err
		}
		if o.again == 0 || try == maxRetries || !sleep(ctx, pause/2+rand.N(pause)) {
			return none, o.fail(ctx)
		}
		pause *= 2
		o.failed &^= o.again
		o.again = 0
	}
}

// collect waits for a round to finish; ok is false when no quorum is left.
func (o *operation[R]) collect(ctx context.Context) (r R, ok bool, err error) {
	hedge := time.NewTimer(o.c.health.hedgeDelay())
	defer hedge.Stop()
	for o.live() > 0 {
		select {
		case <-ctx.Done():
			for _, node := range o.awaited().Nodes() {
				if o.results[node] == nil && !o.replied.Has(node) {
					o.results[node] = ctx.Err()
				}
			}
			return r, false, o.fail(ctx)
		case <-hedge.C:
			if len(o.rounds) < maxRounds { // an extender has one round, and as many hedges as nodes
				_ = o.launch(ctx, o.awaited()) // no spare quorum: keep waiting
				hedge.Reset(2 * o.c.health.hedgeDelay())
			}
		case e := <-o.events:
			o.pending--
			if o.take(e) {
				o.c.health.finished(time.Since(o.begun))
				return o.rounds[e.round], true, nil
			}
			if o.live() == 0 || o.pending == 0 {
				_ = o.launch(ctx, 0)
			}
			if _, extends := any(o.rounds[e.round]).(extender); extends && o.pending == 0 && o.replied.Size() >= o.size {
				// All nodes have answered, and what is undecided stays so.
				return o.rounds[e.round], true, nil
			}
		}
	}
	return r, false, nil
}

// launch starts a round with nodes that have not failed and are not in avoid.
func (o *operation[R]) launch(ctx context.Context, avoid dprf.Set) error {
	if len(o.rounds) == 1 {
		if x, ok := any(o.rounds[0]).(extender); ok {
			q := o.c.health.choose(o.n, 1, o.failed|o.rounds[0].Quorum())
			x.Extend(q)
			o.ask(ctx, 0, q)
			return nil
		}
	}
	q := o.c.health.choose(o.n, o.size, o.failed|avoid)
	if q == 0 {
		return nil
	}
	r, err := o.start(q)
	if err != nil {
		return err
	}
	o.rounds = append(o.rounds, r)
	o.ask(ctx, len(o.rounds)-1, q)
	return nil
}

// ask sends a round's request to nodes.
func (o *operation[R]) ask(ctx context.Context, index int, q dprf.Set) {
	r, events := o.rounds[index], o.events
	for _, node := range q.Nodes() {
		o.pending++
		req := o.request(r, node)
		go func() {
			begun := time.Now()
			answer, err := o.c.transport.Call(ctx, node, req)
			events <- event{index, node, answer, err, time.Since(begun)}
		}()
	}
}

// take adds an answer to its round and reports whether the round is complete.
func (o *operation[R]) take(e event) bool {
	err := e.err
	if err == nil {
		err = o.rounds[e.round].Add(e.node, e.answer)
	}
	o.c.health.note(e.node, e.took, e.err)
	if a, ok := any(o.rounds[e.round]).(accuser); ok {
		for node, err := range a.Lies() {
			o.lost(node, err)
		}
	}
	if err != nil {
		o.lost(e.node, err)
		return o.rounds[e.round].Done()
	}
	o.replied |= dprf.SetOf(e.node)
	delete(o.results, e.node)
	return o.rounds[e.round].Done()
}

// lost records that a node did not help.
func (o *operation[R]) lost(node int, err error) {
	if o.results[node] == nil {
		o.c.accuse(err)
	}
	o.results[node] = err
	o.failed |= dprf.SetOf(node)
	o.replied &^= dprf.SetOf(node)
	if passing(err) {
		o.again |= dprf.SetOf(node)
	}
	o.c.learn(err)
}

// live counts the rounds that can still finish.
func (o *operation[R]) live() (count int) {
	for _, r := range o.rounds {
		_, extends := any(r).(extender)
		if r.Quorum()&o.failed == 0 || extends && (r.Quorum()&^o.failed).Size() >= o.size {
			count++
		}
	}
	return count
}

// awaited are the nodes that have been asked and have said nothing yet.
func (o *operation[R]) awaited() (s dprf.Set) {
	for _, r := range o.rounds {
		s |= r.Quorum()
	}
	return s &^ (o.replied | o.failed)
}

// fail says why no quorum could serve, with a line for every node asked.
func (o *operation[R]) fail(ctx context.Context) error {
	e := &QuorumError{Kind: ErrQuorum, Need: o.size, Have: o.replied.Size()}
	votes := map[error]int{}
	for node := 1; node <= o.n; node++ {
		err, asked := o.results[node]
		if !asked && !o.replied.Has(node) {
			continue
		}
		e.Nodes = append(e.Nodes, NodeResult{Index: node, Name: o.c.name(node), Err: err})
		if err != nil {
			votes[kindOf(err)]++
		}
	}
	// More than n-size nodes that say the same leave no quorum.
	for kind, count := range votes {
		if count > o.n-o.size {
			e.Kind = kind
		}
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Canceled
	}
	return e
}

// sleep waits unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
