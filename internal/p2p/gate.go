package p2p

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"go.uber.org/zap"
)

var errKeyType = errors.New("not an Ed25519 identity")

// peerID returns the libp2p identity of a raw key.
func peerID(key ed25519.PublicKey) (peer.ID, error) {
	if len(key) != ed25519.PublicKeySize {
		return "", errKeyType
	}
	pub, err := crypto.UnmarshalEd25519PublicKey(key)
	if err != nil {
		return "", err
	}
	return peer.IDFromPublicKey(pub)
}

// rawKey returns the Ed25519 key that an identity consists of.
func rawKey(id peer.ID) (key [32]byte, err error) {
	pub, err := id.ExtractPublicKey()
	if err != nil || pub.Type() != crypto.Ed25519 {
		return key, errKeyType
	}
	raw, err := pub.Raw()
	if err != nil || len(raw) != len(key) {
		return key, errKeyType
	}
	return [32]byte(raw), nil
}

// A gate admits connections of configured peers only. It implements libp2p's
// connection gater and is safe for concurrent use.
type gate struct {
	log      *zap.Logger
	maxConns int
	conns    func(peer.ID) int // open connections; set before the first one

	mu      sync.RWMutex
	nodes   map[peer.ID]Caller
	clients map[peer.ID]Caller

	logMu    sync.Mutex
	lastLog  time.Time
	unlogged int
}

// caller returns who a peer is, if it is configured.
func (g *gate) caller(id peer.ID) (Caller, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if c, ok := g.nodes[id]; ok {
		return c, true
	}
	c, ok := g.clients[id]
	return c, ok
}

// setClients replaces the clients and returns those that may no longer connect.
func (g *gate) setClients(keys []ed25519.PublicKey) (removed []peer.ID, err error) {
	clients := make(map[peer.ID]Caller, len(keys))
	for _, key := range keys {
		id, err := peerID(key)
		if err != nil {
			return nil, fmt.Errorf("%w: client key: %w", ErrConfig, err)
		}
		clients[id] = Caller{Key: [32]byte(key)}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for id := range g.clients {
		if _, ok := clients[id]; !ok {
			removed = append(removed, id)
		}
	}
	g.clients = clients
	return removed, nil
}

// InterceptPeerDial allows dialling nodes only.
func (g *gate) InterceptPeerDial(id peer.ID) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	_, ok := g.nodes[id]
	return ok
}

// InterceptAddrDial allows every address: only configured ones are ever known.
func (g *gate) InterceptAddrDial(id peer.ID, _ ma.Multiaddr) bool { return g.InterceptPeerDial(id) }

// InterceptAccept allows every address: identity is what counts.
func (g *gate) InterceptAccept(network.ConnMultiaddrs) bool { return true }

// InterceptSecured admits an authenticated connection of a configured peer.
func (g *gate) InterceptSecured(dir network.Direction, id peer.ID, conn network.ConnMultiaddrs) bool {
	if _, ok := g.caller(id); !ok {
		g.refused("identity is not configured", id, conn.RemoteMultiaddr())
		return false
	}
	if dir == network.DirInbound && g.conns(id) >= g.maxConns {
		g.refused("too many connections of one peer", id, conn.RemoteMultiaddr())
		return false
	}
	return true
}

// InterceptUpgraded repeats the identity check, which SetClients may have changed.
func (g *gate) InterceptUpgraded(conn network.Conn) (bool, control.DisconnectReason) {
	_, ok := g.caller(conn.RemotePeer())
	return ok, 0
}

// refused logs a refusal, at most one a second: anyone can cause one.
func (g *gate) refused(why string, id peer.ID, addr ma.Multiaddr) {
	g.logMu.Lock()
	defer g.logMu.Unlock()
	if time.Since(g.lastLog) < time.Second {
		g.unlogged++
		return
	}
	g.log.Warn("connection refused: "+why, zap.String("identity", identity(id)),
		zap.Stringer("addr", addr), zap.Int("not_logged", g.unlogged))
	g.lastLog, g.unlogged = time.Now(), 0
}
