package p2p

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/libp2p/go-libp2p/x/rate"
	"github.com/quic-go/quic-go"
)

// maxWindow bounds what a peer may send on a stream ahead of our reading.
const maxWindow = 4 << 20

// A stack is the part of libp2p that is used: a swarm with its transports. There
// is no identify, so no address is ever learned from a peer, and none of relay,
// NAT traversal, discovery, hole punching or metrics.
type stack struct {
	swarm   *swarm.Swarm
	closers []io.Closer
}

func newStack(key crypto.PrivKey, cfg *Config, g *gate) (st *stack, err error) {
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return nil, err
	}
	st = &stack{}
	defer func() {
		if err != nil {
			st.close()
		}
	}()
	ps, err := pstoremem.NewPeerstore()
	if err != nil {
		return nil, err
	}
	st.closers = append(st.closers, ps)
	if err := ps.AddPrivKey(id, key); err != nil {
		return nil, err
	}
	if err := ps.AddPubKey(id, key.GetPublic()); err != nil {
		return nil, err
	}
	rm, err := newResources(cfg)
	if err != nil {
		return nil, err
	}
	st.closers = append(st.closers, rm)
	st.swarm, err = swarm.NewSwarm(id, ps, eventbus.NewBus(),
		swarm.WithConnectionGater(g), swarm.WithResourceManager(rm),
		swarm.WithDialTimeout(cfg.DialTimeout), swarm.WithDialTimeoutLocal(cfg.DialTimeout),
		swarm.WithDialRanker(swarm.NoDelayDialRanker),
		// Few addresses, all configured: guessing that UDP or IPv6 is broken only hides them.
		swarm.WithUDPBlackHoleSuccessCounter(nil), swarm.WithIPv6BlackHoleSuccessCounter(nil))
	if err != nil {
		return nil, err
	}
	if err := st.addTCP(key, rm, g, cfg.DialTimeout); err != nil {
		return nil, err
	}
	if cfg.QUIC {
		err = st.addQUIC(key, rm, g)
	}
	return st, err
}

func (st *stack) addTCP(key crypto.PrivKey, rm network.ResourceManager, g *gate, timeout time.Duration) error {
	mux := *yamux.DefaultTransport
	mux.MaxStreamWindowSize = maxWindow
	muxers := []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: &mux}}
	ns, err := noise.New(noise.ID, key, muxers)
	if err != nil {
		return err
	}
	up, err := upgrader.New([]sec.SecureTransport{ns}, muxers, nil, rm, g, upgrader.WithAcceptTimeout(timeout))
	if err != nil {
		return err
	}
	tr, err := tcp.NewTCPTransport(up, rm, nil, tcp.DisableReuseport())
	if err != nil {
		return err
	}
	return st.swarm.AddTransport(tr)
}

func (st *stack) addQUIC(key crypto.PrivKey, rm network.ResourceManager, g *gate) error {
	var reset quic.StatelessResetKey
	var token quic.TokenGeneratorKey
	raw, err := key.Raw()
	if err != nil {
		return err
	}
	// Kept over a restart, so that a peer learns at once that its connection is gone.
	k, err := hkdf.Key(sha256.New, raw, nil, "tae quic stateless reset", len(reset))
	if err != nil {
		return err
	}
	copy(reset[:], k)
	if _, err := rand.Read(token[:]); err != nil {
		return err
	}
	cm, err := quicreuse.NewConnManager(reset, token)
	if err != nil {
		return err
	}
	st.closers = append(st.closers, cm)
	tr, err := libp2pquic.NewTransport(key, cm, nil, g, rm)
	if err != nil {
		return err
	}
	return st.swarm.AddTransport(tr)
}

// newResources makes libp2p's resource limits explicit. They follow from the
// number of configured peers; what they allow is never reached by peers that
// keep to the protocol, since the quotas in serve.go come first.
func newResources(cfg *Config) (network.ResourceManager, error) {
	peers := len(cfg.Nodes) + max(len(cfg.Clients), 64) // SetClients may add some
	conns := peers * cfg.MaxConns
	// Anybody can begin a handshake, and has the dial timeout to end it: enough places
	// that idle strangers do not keep the configured peers out.
	const handshakes = 2048
	window := int64(maxWindow)
	limits := func(conns, streams int) rcmgr.ResourceLimits {
		return rcmgr.ResourceLimits{
			Conns: rcmgr.LimitVal(conns), ConnsInbound: rcmgr.LimitVal(conns), ConnsOutbound: rcmgr.LimitVal(conns),
			Streams: rcmgr.LimitVal(streams), StreamsInbound: rcmgr.LimitVal(streams), StreamsOutbound: rcmgr.LimitVal(streams),
			FD: rcmgr.LimitVal(conns), Memory: rcmgr.LimitVal64(min(int64(conns+streams)*window, math.MaxInt64/2)),
		}
	}
	// A connection carries one stream each way, and a new one for each that is replaced.
	const streamsPerConn = 8
	perPeer := limits(2*cfg.MaxConns, 2*cfg.MaxConns*streamsPerConn)
	all := limits(conns+handshakes, (conns+handshakes)*streamsPerConn)
	part := rcmgr.PartialLimitConfig{
		System: all, Transient: limits(handshakes, handshakes*streamsPerConn),
		AllowlistedSystem: all, AllowlistedTransient: all,
		ServiceDefault: all, ServicePeerDefault: all,
		ProtocolDefault: all, ProtocolPeerDefault: perPeer, PeerDefault: perPeer,
		Conn: limits(1, streamsPerConn), Stream: limits(0, 1),
	}
	part.Conn.FD = 1
	part.Stream.Memory = rcmgr.LimitVal64(2 * window)
	// By default one address may hold 8 connections: several clients often share one.
	v4 := []rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: conns + handshakes}}
	v6 := []rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: conns + handshakes}}
	rm, err := rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(part.Build(rcmgr.InfiniteLimits)),
		rcmgr.WithMetricsDisabled(), rcmgr.WithLimitPerSubnet(v4, v6),
		rcmgr.WithConnRateLimiters(&rate.Limiter{}))
	if err != nil {
		return nil, fmt.Errorf("resource limits: %w", err)
	}
	return rm, nil
}

func (st *stack) close() {
	if st.swarm != nil {
		_ = st.swarm.Close()
	}
	for _, c := range st.closers {
		_ = c.Close()
	}
}
