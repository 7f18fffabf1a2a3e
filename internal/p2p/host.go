package p2p

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
	mss "github.com/multiformats/go-multistream"
	"go.uber.org/zap"
)

// A Host is this process's end of the cluster's connections. It is safe for
// concurrent use.
type Host struct {
	cfg      Config
	log      *zap.Logger
	self     Caller
	selfName string
	gate     *gate
	stack    *stack
	swarm    *swarm.Swarm
	mux      *mss.MultistreamMuxer[string]
	links    map[int]*link
	workers  chan struct{} // bounds the handlers running at once
	ctx      context.Context
	cancel   context.CancelFunc

	mu         sync.Mutex
	closed     bool
	unanswered atomic.Int64 // requests accepted whose answer is not queued
	drain      atomic.Bool  // further requests are answered busy
	wg         sync.WaitGroup
	inbound    map[network.Conn]*inbound
	quotas     map[[32]byte]*quota
	buffers    sync.Pool // of *[]byte, for outboxes
}

// New starts a host: it listens, and keeps a connection to every other node. It
// does not wait for the connections. Errors match ErrConfig, or are those of an
// address that cannot be listened on.
func New(cfg Config) (*Host, error) {
	withDefaults(&cfg)
	h := &Host{cfg: cfg, log: cfg.Logger, mux: newMux(), links: make(map[int]*link),
		workers: make(chan struct{}, cfg.Workers), inbound: make(map[network.Conn]*inbound), quotas: make(map[[32]byte]*quota)}
	if len(cfg.Key) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("%w: own key: %w", ErrConfig, errKeyType)
	}
	if cfg.MaxFrame < 1024 || int64(cfg.MaxFrame) > 1<<30 {
		return nil, fmt.Errorf("%w: frame limit of %d bytes", ErrConfig, cfg.MaxFrame)
	}
	key, err := crypto.UnmarshalEd25519PrivateKey(cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("%w: own key: %w", ErrConfig, err)
	}
	h.self = Caller{Key: [32]byte(cfg.Key.Public().(ed25519.PublicKey)), Node: cfg.Self}
	h.gate = &gate{log: h.log, maxConns: cfg.MaxConns, nodes: make(map[peer.ID]Caller)}
	if _, err := h.gate.setClients(cfg.Clients); err != nil {
		return nil, err
	}
	if err := h.addNodes(); err != nil {
		return nil, err
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	if h.stack, err = newStack(key, &h.cfg, h.gate); err != nil {
		h.cancel()
		return nil, fmt.Errorf("p2p: %w", err)
	}
	h.swarm = h.stack.swarm
	h.gate.conns = func(id peer.ID) int { return len(h.swarm.ConnsToPeer(id)) }
	h.swarm.SetStreamHandler(h.accept)
	if err := errors.Join(h.checkDialable(), h.listen()); err != nil {
		_ = h.Close()
		return nil, err
	}
	for _, l := range h.links {
		h.wg.Go(l.run)
	}
	h.wg.Go(h.watch)
	return h, nil
}

func withDefaults(c *Config) {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	span := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&c.MaxFrame, 4<<20)
	def(&c.MaxInFlight, 128)
	def(&c.MaxPeerBytes, 4*c.MaxFrame)
	def(&c.MaxConns, 64)
	def(&c.Workers, 8*runtime.GOMAXPROCS(0))
	span(&c.DialTimeout, 5*time.Second)
	span(&c.FrameTimeout, 10*time.Second)
	span(&c.PingInterval, 2*time.Second)
	span(&c.PingTimeout, 10*time.Second)
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	c.Nodes = slices.Clone(c.Nodes)
}

// addNodes checks the configured nodes and makes a link to each other one.
func (h *Host) addNodes() error {
	for i := range h.cfg.Nodes {
		p := h.cfg.Nodes[i]
		if p.Name == "" {
			p.Name = strconv.Itoa(p.Index)
		}
		bad := func(format string, args ...any) error {
			return fmt.Errorf("%w: node %s (%d): %w", ErrConfig, p.Name, p.Index, fmt.Errorf(format, args...))
		}
		id, err := peerID(p.Key)
		if err != nil {
			return bad("key: %w", err)
		}
		if p.Index < 1 {
			return bad("index must be 1 or more")
		}
		if _, dup := h.gate.nodes[id]; dup {
			return bad("key used twice")
		}
		h.gate.nodes[id] = Caller{Key: [32]byte(p.Key), Node: p.Index}
		if own := p.Key.Equal(h.cfg.Key.Public()); own != (p.Index == h.cfg.Self) {
			return bad("own index is %d, but the own key says otherwise", h.cfg.Self)
		} else if own {
			h.selfName = p.Name
			continue
		}
		if h.links[p.Index] != nil {
			return bad("index used twice")
		}
		l := &link{host: h, peer: p, id: id, slots: make(chan struct{}, h.cfg.MaxInFlight), next: newAttempt()}
		for _, a := range p.Addrs {
			m, err := ma.NewMultiaddr(a)
			if err != nil {
				return bad("address %q: %w", a, err)
			}
			if _, err := m.ValueForProtocol(ma.P_P2P); err == nil {
				return bad("address %q must not contain /p2p", a)
			}
			l.addrs = append(l.addrs, m)
		}
		if len(l.addrs) == 0 {
			return bad("no address")
		}
		h.links[p.Index] = l
	}
	return nil
}

// checkDialable refuses a node that no transport in use can reach.
func (h *Host) checkDialable() error {
	ok := func(a ma.Multiaddr) bool {
		_, last := ma.SplitLast(a)
		return last.Code() == ma.P_TCP || (last.Code() == ma.P_QUIC_V1 && h.cfg.QUIC)
	}
	for _, l := range h.links {
		if !slices.ContainsFunc(l.addrs, ok) {
			return fmt.Errorf("%w: node %s (%d): no transport for any of its addresses (QUIC: %v)", ErrConfig, l.peer.Name, l.peer.Index, h.cfg.QUIC)
		}
	}
	return nil
}

// listen opens every configured address; one that fails is an error.
func (h *Host) listen() error {
	for _, a := range h.cfg.Listen {
		m, err := ma.NewMultiaddr(a)
		if err != nil {
			return fmt.Errorf("%w: listen address %q: %w", ErrConfig, a, err)
		}
		if err := h.swarm.AddListenAddr(m); err != nil {
			return fmt.Errorf("p2p: listen on %s: %w", a, err)
		}
	}
	return nil
}

// Call sends req to node to and returns its answer, which the caller owns. It
// waits for a connection and for one of MaxInFlight places; a node that refuses
// the connection fails the call at once. Errors are *Error, see ErrUnreachable
// and the following. After ErrUnreachable or ErrTimeout the node may have handled
// the request or not. Calls to the own index run the handler directly.
func (h *Host) Call(ctx context.Context, to int, req []byte) ([]byte, error) {
	l := h.links[to]
	if l == nil {
		return h.callSelf(ctx, to, req)
	}
	if n := requestHeader + len(req); n > h.cfg.MaxFrame {
		return nil, l.fail(ErrFrame, "", fmt.Errorf("request of %d bytes, limit %d", n, h.cfg.MaxFrame))
	}
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return nil, l.callError(ctx.Err(), "waiting for earlier requests")
	case <-h.ctx.Done():
		return nil, l.fail(ErrClosed, "", nil)
	}
	for {
		s, err := l.get(ctx)
		if err != nil {
			return nil, l.callError(err, "connecting")
		}
		r, err := s.call(ctx, req)
		if err == errNotSent {
			continue // it ended just before; nothing was sent
		}
		if err != nil {
			return nil, l.callError(err, "waiting for the answer")
		}
		switch r.kind {
		case kindBusy:
			return nil, l.fail(ErrBusy, "", nil)
		case kindFailed:
			return nil, l.fail(ErrFailed, "", fmt.Errorf("%.200q", r.body))
		}
		return r.body, nil
	}
}

// callError makes err an *Error; doing says what the call was about.
func (l *link) callError(err error, doing string) error {
	var typed *Error
	switch {
	case errors.As(err, &typed):
		return err
	case err == context.DeadlineExceeded: // the caller's own, not one inside a connection's error
		return l.fail(ErrTimeout, "", fmt.Errorf("%s: %w", doing, err))
	case err == context.Canceled:
		return l.fail(err, "", errors.New(doing))
	case errors.Is(err, ErrClosed) || l.host.ctx.Err() != nil:
		return l.fail(ErrClosed, "", nil)
	}
	return l.fail(ErrUnreachable, "", fmt.Errorf("connection ended while %s: %w", doing, err))
}

// callSelf is a call that stays in this process, or to a node nobody configured.
func (h *Host) callSelf(ctx context.Context, to int, req []byte) ([]byte, error) {
	if to == 0 || to != h.cfg.Self {
		return nil, &Error{Node: to, Name: strconv.Itoa(to), Kind: ErrUnknownNode}
	}
	l := &link{host: h, peer: Peer{Index: to, Name: h.selfName}}
	if n := requestHeader + len(req); n > h.cfg.MaxFrame {
		return nil, l.fail(ErrFrame, "", fmt.Errorf("request of %d bytes, limit %d", n, h.cfg.MaxFrame))
	}
	if h.ctx.Err() != nil {
		return nil, l.fail(ErrClosed, "", nil)
	}
	if err := ctx.Err(); err != nil {
		return nil, l.callError(err, "before the call")
	}
	r := h.answer(ctx, h.self, frame{kind: kindRequest, body: slices.Clone(req)})
	if r.kind == kindFailed {
		return nil, l.fail(ErrFailed, "", fmt.Errorf("%.200q", r.body))
	}
	return r.body, nil
}

// Close ends all connections and waits for the host's goroutines, running
// handlers included; their contexts are cancelled. Further calls do nothing.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.stack.close()
	h.wg.Wait()
	return nil
}
