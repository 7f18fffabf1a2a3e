package netsim

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"
)

// call carries one request: there, the handler, and back.
func (n *Network) call(ctx context.Context, from Caller, to int, req []byte) ([]byte, error) {
	n.mu.Lock()
	n.counts.Calls++
	nd := n.nodes[to]
	n.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, ended(to, err)
	}
	if nd == nil || nd.isDown() {
		return nil, n.unreachable(to)
	}
	req = slices.Clone(req)
	if from.Node == to && to != 0 {
		return slices.Clone(nd.handler(ctx, from, req)), nil
	}
	c := &flight{net: n, from: from, to: to, node: nd, fate: n.draw(from, to, nd, req)}
	return c.run(ctx, req)
}

// A flight is one call under way.
type flight struct {
	net  *Network
	from Caller
	to   int
	node *node
	fate fate
}

func (c *flight) run(ctx context.Context, req []byte) ([]byte, error) {
	if c.fate.duplicate {
		c.net.count(func(k *Counts) { k.Duplicates++ })
		go c.duplicate(slices.Clone(req))
	}
	if err := c.sleep(ctx, c.fate.there); err != nil {
		return nil, err
	}
	if c.net.cut(c.from.Node, c.to) {
		return nil, c.wait(ctx, DetectAfter)
	}
	if c.fate.loseRequest {
		c.net.count(func(k *Counts) { k.LostRequests++ })
		return nil, c.wait(ctx, 0)
	}
	if c.fate.flipRequest && len(req) > 0 {
		c.net.count(func(k *Counts) { k.CorruptedRequests++ })
		flip(req, c.fate.requestBit)
	}
	resp, err := c.handle(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := c.sleep(ctx, c.fate.back); err != nil {
		return nil, err
	}
	if c.net.cut(c.from.Node, c.to) {
		return nil, c.wait(ctx, DetectAfter)
	}
	if c.fate.loseAnswer {
		c.net.count(func(k *Counts) { k.LostAnswers++ })
		return nil, c.wait(ctx, 0)
	}
	if c.fate.flipAnswer && len(resp) > 0 {
		c.net.count(func(k *Counts) { k.CorruptedAnswers++ })
		flip(resp, c.fate.answerBit)
	}
	return resp, nil
}

// handle runs the handler. The caller does not wait for one that ignores its
// context.
func (c *flight) handle(ctx context.Context, req []byte) ([]byte, error) {
	if c.fate.slow > 0 {
		c.net.count(func(k *Counts) { k.Slowed++ })
		if err := c.sleep(ctx, c.fate.slow); err != nil {
			return nil, err
		}
	}
	hctx, cancel := context.WithCancel(ctx)
	done := make(chan []byte, 1)
	go func() { done <- c.invoke(hctx, req) }()
	defer cancel()
	select {
	case resp := <-done:
		return resp, c.late(ctx)
	case <-ctx.Done():
		return nil, ended(c.to, ctx.Err())
	case <-c.node.down:
		return nil, c.net.unreachable(c.to)
	}
}

// invoke calls the handler and, for a lying node, replaces its answer.
func (c *flight) invoke(ctx context.Context, req []byte) []byte {
	asked := req
	if c.fate.lie != nil {
		asked = slices.Clone(req) // the handler owns its own
	}
	resp := slices.Clone(c.node.handler(ctx, c.from, asked))
	if c.fate.lie == nil {
		return resp
	}
	lied := c.fate.lie(req, slices.Clone(resp))
	if !bytes.Equal(lied, resp) {
		c.net.count(func(k *Counts) { k.Lies++ })
	}
	return slices.Clone(lied)
}

// duplicate delivers the request a second time; nobody sees the answer. It may
// come after the caller has given up, but not after the node has crashed.
func (c *flight) duplicate(req []byte) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if c.sleep(ctx, c.fate.again) != nil || c.node.isDown() || c.net.cut(c.from.Node, c.to) {
		return
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = c.invoke(ctx, req) }()
	select {
	case <-done:
	case <-c.node.down:
	}
}

// sleep waits for d, or less if the context ends or the node crashes.
func (c *flight) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return c.late(ctx)
	case <-ctx.Done():
		return ended(c.to, ctx.Err())
	case <-c.node.down:
		return c.net.unreachable(c.to)
	}
}

// late returns the timeout of a context whose deadline is this very instant, where
// a select would choose at random.
func (c *flight) late(ctx context.Context) error {
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
		return ended(c.to, context.DeadlineExceeded)
	}
	return nil
}

// wait is the end of a call whose message is lost: the context's, the node's, or
// after limit, if that is not 0, an unreachable node.
func (c *flight) wait(ctx context.Context, limit time.Duration) error {
	var expired <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		expired = t.C
	}
	select {
	case <-expired:
		return &Error{c.to, ErrUnreachable, errors.New("no sign of life")}
	case <-ctx.Done():
		return ended(c.to, ctx.Err())
	case <-c.node.down:
		return c.net.unreachable(c.to)
	}
}

func (nd *node) isDown() bool {
	select {
	case <-nd.down:
		return true
	default:
		return false
	}
}

func (n *Network) unreachable(to int) error {
	n.count(func(c *Counts) { c.Unreachable++ })
	return &Error{to, ErrUnreachable, errors.New("connection refused")}
}

// ended makes a context's error a call's.
func ended(to int, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{to, ErrTimeout, err}
	}
	return &Error{to, err, nil}
}
