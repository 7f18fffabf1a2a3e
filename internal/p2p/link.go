package p2p

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	ma "github.com/multiformats/go-multiaddr"
	mss "github.com/multiformats/go-multistream"
	"go.uber.org/zap"
)

const (
	redialMin = 50 * time.Millisecond
	redialMax = time.Second
	// staleFailure is how long a failed attempt answers later calls, so that a busy
	// caller of a stopped node does not dial in a tight loop.
	staleFailure = 20 * time.Millisecond
)

// An attempt is one try to connect, which any number of calls wait for.
type attempt struct {
	wanted chan struct{} // closed when a call needs it now
	hurry  bool          // wanted is closed
	done   chan struct{} // closed when it ended; sess and err are set then
	sess   *session
	err    error
}

func newAttempt() *attempt {
	return &attempt{wanted: make(chan struct{}), done: make(chan struct{})}
}

// A link keeps one session to one node: it redials for ever, since libp2p's own
// dial backoff would hide a restarted node for minutes.
type link struct {
	host  *Host
	peer  Peer
	id    peer.ID
	addrs []ma.Multiaddr
	slots chan struct{} // bounds the calls in flight

	mu      sync.Mutex
	cur     *session
	next    *attempt
	lastErr error
	failed  time.Time // when the last attempt failed
}

// get returns the live session, or the outcome of an attempt that ends after it
// was asked for.
func (l *link) get(ctx context.Context) (*session, error) {
	l.mu.Lock()
	if l.cur != nil && !l.cur.ended() {
		defer l.mu.Unlock()
		return l.cur, nil
	}
	if l.lastErr != nil && time.Since(l.failed) < staleFailure {
		defer l.mu.Unlock()
		return nil, l.lastErr
	}
	a := l.next
	if !a.hurry {
		a.hurry = true
		close(a.wanted)
	}
	l.mu.Unlock()
	select {
	case <-a.done:
		return a.sess, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.host.ctx.Done():
		return nil, ErrClosed
	}
}

// run dials, serves the session until it ends, and dials again.
func (l *link) run() {
	ctx := l.host.ctx
	wait := redialMin
	for ctx.Err() == nil {
		s, err := l.connect(ctx)
		l.publish(s, err)
		if err == nil {
			began := time.Now()
			l.serve(s)
			if time.Since(began) > redialMax {
				wait = redialMin
				continue
			}
		}
		l.pause(wait)
		wait = min(2*wait, redialMax)
	}
	l.publish(nil, ErrClosed)
}

// publish hands an attempt's outcome to those who wait and sets up the next one.
func (l *link) publish(s *session, err error) {
	l.mu.Lock()
	a := l.next
	a.sess, a.err = s, err
	l.next = newAttempt()
	l.cur = s
	if err != nil {
		if l.host.ctx.Err() == nil && (l.lastErr == nil || l.lastErr.Error() != err.Error()) {
			l.host.log.Info("cannot reach node", zap.String("node", l.peer.Name), zap.Error(err))
		}
		l.lastErr, l.failed = err, time.Now()
	} else {
		l.lastErr = nil
	}
	l.mu.Unlock()
	close(a.done)
}

// serve runs a session until it ends.
func (l *link) serve(s *session) {
	var wg sync.WaitGroup
	wg.Go(func() { s.out.run(s.done) })
	l.host.log.Debug("connected", zap.String("node", l.peer.Name), zap.Stringer("addr", s.stream.Conn().RemoteMultiaddr()))
	stop := context.AfterFunc(l.host.ctx, func() { s.end(ErrClosed) })
	if id, _ := s.live.check(time.Now(), 0, l.host.cfg.PingTimeout); id != 0 {
		s.out.add(&frame{kind: kindPing, id: id}, false) // the first round trip to show
	}
	s.read()
	stop()
	wg.Wait()
	err := s.reason()
	l.mu.Lock()
	l.cur = nil
	l.lastErr = l.fail(ErrUnreachable, "", err)
	l.failed = time.Time{} // the next call may dial at once
	l.mu.Unlock()
	if errors.Is(err, errSilent) {
		_ = s.stream.Conn().Close()
	}
	if l.host.ctx.Err() == nil {
		l.host.log.Info("connection ended", zap.String("node", l.peer.Name), zap.Error(err))
	}
}

// pause waits between d/2 and d, less if a call wants the connection.
func (l *link) pause(d time.Duration) {
	l.mu.Lock()
	wanted := l.next.wanted
	l.mu.Unlock()
	t := time.NewTimer(d/2 + rand.N(d/2))
	defer t.Stop()
	select {
	case <-t.C:
	case <-wanted:
	case <-l.host.ctx.Done():
	}
}

// connect makes one attempt at all configured addresses.
func (l *link) connect(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, l.host.cfg.DialTimeout)
	defer cancel()
	// Resolved addresses must not outlive the attempt: a name may move.
	ps := l.host.swarm.Peerstore()
	ps.ClearAddrs(l.id)
	ps.AddAddrs(l.id, l.addrs, peerstore.PermanentAddrTTL)
	conn, err := l.host.swarm.DialPeer(network.WithForceDirectDial(ctx, "configured peer"), l.id)
	if err != nil {
		return nil, l.dialError(err)
	}
	stream, err := l.open(ctx, conn)
	if err != nil {
		_ = conn.Close()
		return nil, l.openError(conn.RemoteMultiaddr().String(), err)
	}
	return newSession(stream, &l.host.cfg, &l.host.buffers), nil
}

// open starts the stream on a connection.
func (l *link) open(ctx context.Context, conn network.Conn) (network.Stream, error) {
	s, err := conn.NewStream(ctx)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = s.SetDeadline(deadline)
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Reset() })
	_, err = mss.SelectOneOf([]string{ProtocolID}, s)
	if err == nil {
		err = s.SetProtocol(ProtocolID)
	}
	if !stop() || err != nil {
		_ = s.Reset()
		return nil, errors.Join(err, ctx.Err())
	}
	_ = s.SetDeadline(time.Time{})
	return s, nil
}
