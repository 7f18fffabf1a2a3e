// Package p2p carries opaque requests and answers between the nodes and clients
// of one cluster over libp2p (docs/spec.md section 9, "Transport").
//
//	caller                                        node
//	  |-- connection: TCP + Noise + yamux (or QUIC) --|   admitted by key, both ways
//	  |== one stream, protocol "/tae/1" ==============|   one per connection, kept open
//	  |-- request(id, time left, bytes) ------------->|   many in flight
//	  |<------------- answer(id) | busy(id) | failed(id)
//	  |-- cancel(id) -------------------------------->|   ends the handler's context
//	  |<-- ping / pong -------------------------------|   liveness of a silent peer
//
// The set of peers is configuration: nothing is discovered, and no address that
// a peer announces or that a name resolved to is remembered. A connection whose
// key is not configured ends before it carries a stream.
//
// A refusal is always an answer. A stream is reset only when its framing is
// broken.
package p2p

import (
	"context"
	"crypto/ed25519"
	"time"

	"go.uber.org/zap"
)

// ProtocolID names the stream protocol. A change of the framing changes it.
const ProtocolID = "/tae/1"

// A Peer is one node of the cluster as the configuration describes it.
type Peer struct {
	Index int               // member index, 1 or more
	Name  string            // for people, in errors and logs; default: the index
	Key   ed25519.PublicKey // the only identity accepted for this node
	Addrs []string          // multiaddrs without /p2p, such as /dns4/a.example/tcp/7000
}

// A Caller is the authenticated origin of a request.
type Caller struct {
	Key  [32]byte // Ed25519 public key
	Node int      // member index, 0 for a client
}

// A Handler answers requests. It is total: any bytes give an answer. It may be
// called from many goroutines at once and owns req. ctx ends when the caller
// cancels, its time is over, its connection ends or the host closes; an answer
// given later is dropped.
type Handler func(ctx context.Context, from Caller, req []byte) []byte

// A Config describes a Host. It must not be modified after New. The zero value of an
// optional field means its default.
type Config struct {
	Key     ed25519.PrivateKey  // own identity
	Listen  []string            // multiaddrs to listen on; none: a client
	Self    int                 // own member index, 0 for a client
	Nodes   []Peer              // all nodes; the own one may be among them
	Clients []ed25519.PublicKey // clients that may connect, see SetClients
	Handler Handler             // answers requests; nil for a client

	MaxFrame     int  // bytes of one frame, header included; the same on all peers; default 4 MiB
	MaxInFlight  int  // requests of one peer queued or running here; default 128
	MaxPeerBytes int  // request and answer bytes held for one peer; default 4 * MaxFrame
	MaxConns     int  // connections of one peer, such as of many processes with one client key; default 64
	Workers      int  // handlers running at once over all peers; default 8 * GOMAXPROCS
	QUIC         bool // also dial and listen on /udp/.../quic-v1 addresses

	DialTimeout  time.Duration // one attempt to connect; default 5 s
	FrameTimeout time.Duration // for each 64 KiB of a frame that has begun; default 10 s
	PingInterval time.Duration // probe of a peer that owes answers or is idle; default 2 s
	PingTimeout  time.Duration // silence after a probe that ends the connection; default 10 s

	Logger *zap.Logger // nil: no log
}

// A PeerStatus is what this host knows about its connection to one node.
type PeerStatus struct {
	Index     int
	Name      string
	Connected bool
	Addr      string        // address in use, when connected
	RTT       time.Duration // last measured round trip, 0 before the first
	LastErr   error         // why the last attempt or connection ended; nil when connected
}
