package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	mss "github.com/multiformats/go-multistream"
	"go.uber.org/zap"
)

// outboxLimit is how many answer bytes may wait for a slow reader before its
// further requests are no longer read.
const outboxLimit = 1 << 20

// quota bounds what one peer has in progress here, over all its streams.
type quota struct {
	mu       sync.Mutex
	requests int
	bytes    int

	turns chan struct{} // bounds the handlers running at once for this peer
}

// take reserves a request of n bytes; extra counts answers not yet sent.
func (q *quota) take(n, extra, maxRequests, maxBytes int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.requests >= maxRequests || q.bytes+n+extra > maxBytes {
		return false
	}
	q.requests++
	q.bytes += n
	return true
}

func (q *quota) give(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests--
	q.bytes -= n
}

// An inbound is the node's end of one stream.
type inbound struct {
	host   *Host
	from   Caller
	quota  *quota
	stream network.Stream
	in     *frameReader
	out    *outbox
	ctx    context.Context // ends with the stream
	cancel context.CancelFunc

	drained atomic.Bool // the peer has received all that was sent before Drain's probe

	mu      sync.Mutex
	running map[uint64]context.CancelFunc
}

// accept is called by libp2p, in its own goroutine, for every stream a peer opens.
func (h *Host) accept(s network.Stream) {
	if !h.enter() {
		_ = s.Reset()
		return
	}
	defer h.wg.Done()
	from, ok := h.gate.caller(s.Conn().RemotePeer())
	if !ok {
		_ = s.Reset()
		return
	}
	_ = s.SetDeadline(time.Now().Add(h.cfg.FrameTimeout))
	_, _, err := h.mux.Negotiate(s)
	if err == nil {
		err = s.SetProtocol(ProtocolID)
	}
	if err != nil {
		_ = s.Reset()
		h.log.Info("no common protocol", zap.String("identity", identity(s.Conn().RemotePeer())), zap.Error(err))
		return
	}
	_ = s.SetDeadline(time.Time{})

	ctx, cancel := context.WithCancel(h.ctx)
	st := &inbound{host: h, from: from, quota: h.quotaOf(from), stream: s, ctx: ctx, cancel: cancel,
		in: newFrameReader(s, h.cfg.MaxFrame, h.cfg.FrameTimeout), running: make(map[uint64]context.CancelFunc)}
	st.out = newOutbox(s, &h.buffers, func(error) { st.close() })
	if old := h.track(st); old != nil {
		old.close() // one stream per connection: the peer opened a new one
	}
	st.serve()
	h.untrack(st)
}

// newMux negotiates the only stream protocol there is.
func newMux() *mss.MultistreamMuxer[string] {
	m := mss.NewMultistreamMuxer[string]()
	m.AddHandler(ProtocolID, nil)
	return m
}

// close ends the stream and all its handlers' contexts.
func (st *inbound) close() {
	st.cancel()
	st.out.close()
	_ = st.stream.Reset()
}

// serve reads requests until the stream ends, then waits for its handlers.
func (st *inbound) serve() {
	var wg sync.WaitGroup
	wg.Go(func() { st.out.run(st.ctx.Done()) })
	stop := context.AfterFunc(st.ctx, func() { st.close() })
	err := st.read(&wg)
	stop()
	if errors.Is(err, ErrFrame) {
		st.host.log.Warn("stream reset: broken framing", zap.String("identity", identity(st.stream.Conn().RemotePeer())),
			zap.Stringer("addr", st.stream.Conn().RemoteMultiaddr()), zap.Error(err))
	}
	if errors.Is(err, io.EOF) {
		_ = st.stream.Close()
	}
	st.close()
	wg.Wait()
}

func (st *inbound) read(wg *sync.WaitGroup) error {
	cfg := &st.host.cfg
	for {
		st.out.waitBelow(outboxLimit)
		f, err := st.in.next()
		if err != nil {
			return err
		}
		switch f.kind {
		case kindRequest:
			st.host.unanswered.Add(1) // before drain is read, so that Drain sees the one or we the other
			if st.host.drain.Load() || !st.quota.take(len(f.body), st.out.buffered(), cfg.MaxInFlight, cfg.MaxPeerBytes) {
				st.host.unanswered.Add(-1)
				st.out.add(&frame{kind: kindBusy, id: f.id}, false)
				continue
			}
			ctx, err := st.begin(&f)
			if err != nil {
				st.host.unanswered.Add(-1)
				st.quota.give(len(f.body))
				return err
			}
			wg.Go(func() { st.handle(ctx, f) })
		case kindCancel:
			st.mu.Lock()
			if cancel := st.running[f.id]; cancel != nil {
				cancel()
			}
			st.mu.Unlock()
		case kindPing:
			st.out.add(&frame{kind: kindPong, id: f.id}, false)
		case kindPong:
			st.drained.Store(f.id == drainPing)
		default:
			return fmt.Errorf("%w: kind %d from a caller", ErrFrame, f.kind)
		}
	}
}

// begin registers a request and returns the context of its handler.
func (st *inbound) begin(f *frame) (context.Context, error) {
	var ctx context.Context
	var cancel context.CancelFunc
	if f.millis != 0 {
		ctx, cancel = context.WithTimeout(st.ctx, time.Duration(f.millis)*time.Millisecond)
	} else {
		ctx, cancel = context.WithCancel(st.ctx)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if _, dup := st.running[f.id]; dup {
		cancel()
		return nil, fmt.Errorf("%w: request id used twice", ErrFrame)
	}
	st.running[f.id] = cancel
	return ctx, nil
}

// handle runs one request. Every request gets exactly one reply.
func (st *inbound) handle(ctx context.Context, f frame) {
	defer st.host.unanswered.Add(-1)
	reply := frame{kind: kindFailed, id: f.id, body: []byte("cancelled or late before it began")}
	if acquire(ctx, st.quota.turns) {
		if acquire(ctx, st.host.workers) {
			reply = st.host.answer(ctx, st.from, f)
			<-st.host.workers // before the write, which may wait for a slow reader
		}
		<-st.quota.turns
	}
	st.mu.Lock()
	cancel := st.running[f.id]
	delete(st.running, f.id)
	st.mu.Unlock()
	cancel()
	// Before the answer: a caller that keeps to the bound may send its next request
	// on receiving it.
	st.quota.give(len(f.body))
	st.out.add(&reply, true)
}

// acquire takes a place in sem unless ctx ends first.
func acquire(ctx context.Context, sem chan struct{}) bool {
	select {
	case sem <- struct{}{}:
		if ctx.Err() == nil {
			return true
		}
		<-sem
	case <-ctx.Done():
	}
	return false
}

// answer calls the handler and makes its result a frame.
func (h *Host) answer(ctx context.Context, from Caller, f frame) (reply frame) {
	defer func() {
		if v := recover(); v != nil {
			h.log.Error("handler panicked", zap.Any("panic", v), zap.Stack("stack"))
			reply = frame{kind: kindFailed, id: f.id, body: []byte("internal error")}
		}
	}()
	if h.cfg.Handler == nil {
		return frame{kind: kindFailed, id: f.id, body: []byte("this host answers no requests")}
	}
	reply = frame{kind: kindAnswer, id: f.id, body: h.cfg.Handler(ctx, from, f.body)}
	if n := reply.size(); n > h.cfg.MaxFrame {
		h.log.Error("answer too large", zap.Int("bytes", n), zap.Int("limit", h.cfg.MaxFrame))
		reply = frame{kind: kindFailed, id: f.id, body: fmt.Appendf(nil, "answer of %d bytes exceeds the frame limit %d", n, h.cfg.MaxFrame)}
	}
	return reply
}
