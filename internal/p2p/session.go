package p2p

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// inlineLimit bounds the unanswered request bytes up to which a Call writes from
// its own goroutine. It is below the smallest flow-control window (256 KiB), so
// that such a write cannot wait for a node that stopped reading.
const inlineLimit = 128 << 10

// maxAbandoned bounds the cancelled requests that a node leaves unanswered.
const maxAbandoned = 4096

var errTooManyOwed = errors.New("too many cancelled requests left unanswered")

type reply struct {
	kind byte
	body []byte
}

// A pending request. A node answers each one exactly once, cancelled or not, so
// the entry stays until then: its size is what may still be in the stream.
type pending struct {
	ch   chan reply
	size int
}

// A session is the caller's end of one stream to one node.
type session struct {
	stream network.Stream
	in     *frameReader
	out    *outbox
	done   chan struct{} // closed when the session ends

	mu        sync.Mutex
	err       error // why it ended
	lastID    uint64
	calls     map[uint64]pending
	unacked   int // bytes of the requests in calls
	abandoned int

	live liveness
}

func newSession(s network.Stream, cfg *Config, pool *sync.Pool) *session {
	c := &session{
		stream: s,
		in:     newFrameReader(s, cfg.MaxFrame, cfg.FrameTimeout),
		done:   make(chan struct{}),
		calls:  make(map[uint64]pending),
	}
	c.in.progress = c.live.heard
	c.out = newOutbox(s, pool, c.end)
	return c
}

// end closes the session; the first reason wins.
func (c *session) end(reason error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = reason
	close(c.done)
	c.mu.Unlock()
	c.out.close()
	_ = c.stream.Reset()
}

// ended reports whether the session is over.
func (c *session) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// reason returns why the session ended; only valid after done.
func (c *session) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// read delivers answers until the stream ends.
func (c *session) read() {
	for {
		f, err := c.in.next()
		if err != nil {
			c.end(err)
			return
		}
		c.live.heard()
		switch f.kind {
		case kindAnswer, kindBusy, kindFailed:
			err = c.deliver(&f)
		case kindPong:
			c.live.pong(f.id)
		case kindPing:
			c.out.add(&frame{kind: kindPong, id: f.id}, false)
		default:
			err = fmt.Errorf("%w: kind %d from a node", ErrFrame, f.kind)
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

func (c *session) deliver(f *frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.calls[f.id]
	if !ok {
		return fmt.Errorf("%w: answer to no request", ErrFrame)
	}
	delete(c.calls, f.id)
	c.unacked -= p.size
	if p.ch == nil {
		c.abandoned--
		return nil
	}
	p.ch <- reply{f.kind, f.body}
	return nil
}

// errNotSent says that the session ended before the request entered it.
var errNotSent = errors.New("not sent")

// call sends one request and waits for its reply. The error is ctx's, the
// session's, or errNotSent.
func (c *session) call(ctx context.Context, req []byte) (reply, error) {
	f := frame{kind: kindRequest, body: req}
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		if left <= 0 {
			return reply{}, context.DeadlineExceeded
		}
		f.millis = uint32(min(int64((left+time.Millisecond-1)/time.Millisecond), math.MaxUint32))
	}
	ch := make(chan reply, 1)
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return reply{}, errNotSent
	}
	c.lastID++
	f.id = c.lastID
	c.calls[f.id] = pending{ch, f.size()}
	c.unacked += f.size()
	inline := c.unacked <= inlineLimit
	c.mu.Unlock()

	c.out.add(&f, inline)
	select {
	case r := <-ch:
		return r, nil
	case <-ctx.Done():
		c.abandon(f.id)
		return reply{}, ctx.Err()
	case <-c.done:
		select { // the answer may have come just before the end
		case r := <-ch:
			return r, nil
		default:
			return reply{}, c.reason()
		}
	}
}

// abandon tells the node that nobody waits for id any more.
func (c *session) abandon(id uint64) {
	c.mu.Lock()
	p, ok := c.calls[id]
	if !ok {
		c.mu.Unlock()
		return
	}
	p.ch = nil
	c.calls[id] = p
	c.abandoned++
	over := c.abandoned > maxAbandoned
	c.mu.Unlock()
	if over {
		c.end(errTooManyOwed)
		return
	}
	c.out.add(&frame{kind: kindCancel, id: id}, false)
}
