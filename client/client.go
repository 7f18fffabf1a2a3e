package client

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-a893640b/tae/internal/config"
	"github.com/seed-a893640b/tae/internal/p2p"
	"github.com/seed-a893640b/tae/protocol"
	"github.com/seed-a893640b/tae/sig"
)

// MaxMessage is the longest message in bytes that Encrypt takes.
const MaxMessage = protocol.MaxMessage

// A Member is one node of the cluster, as the client's configuration has it.
type Member struct {
	Name  string
	Key   [32]byte // Ed25519 public key
	Addrs []string // multiaddrs such as /dns4/n1.example/tcp/7700
}

// A Transport sends requests to the nodes 1..n of a cluster. It must be safe for
// concurrent use.
type Transport interface {
	Call(ctx context.Context, node int, req []byte) ([]byte, error)
}

type options struct {
	file      string
	members   []Member
	key       ed25519.PrivateKey
	transport Transport
	timeout   time.Duration
	logger    *slog.Logger
	quic      bool
	evidence  func(Evidence)
}

// An Option sets something of a Client.
type Option func(*options)

// WithConfigFile reads cluster, key and timeout from a client.yaml. Other options
// come before what the file says.
func WithConfigFile(file string) Option { return func(o *options) { o.file = file } }

// WithMembers gives the nodes of the cluster, in the order of their indices.
func WithMembers(members ...Member) Option { return func(o *options) { o.members = members } }

// WithIdentity gives the client's private key. The client keeps it until Close.
func WithIdentity(key ed25519.PrivateKey) Option { return func(o *options) { o.key = key } }

// WithTimeout bounds operations whose context has no deadline; default 30 s.
func WithTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithLogger logs lies and disputes of nodes. Nothing secret is ever logged.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// An Evidence is a node's lie that others can check, offline: `tae-client blame
// verify` does.
type Evidence struct {
	Node   string
	Reason string
	Bundle []byte
}

// WithEvidence calls f for every lie of a node of a tae3 keyset that it has signed. f
// must be safe for concurrent use and return soon.
func WithEvidence(f func(Evidence)) Option { return func(o *options) { o.evidence = f } }

// WithQUIC also uses the members' QUIC addresses.
func WithQUIC() Option { return func(o *options) { o.quic = true } }

// WithTransport uses t in place of the network, for tests. Close does not close it.
func WithTransport(t Transport) Option { return func(o *options) { o.transport = t } }

// A Client talks to one cluster. It is safe for concurrent use.
type Client struct {
	opts      options
	self      protocol.ClientKey
	keyHash   [32]byte
	transport Transport
	close     func() error
	health    health
	counter   atomic.Uint64
	log       *slog.Logger

	mu    sync.Mutex
	certs map[string]*protocol.Certificate // newest verified, by keyset name
	done  bool
}

// Open starts a client. Connections to the nodes are made in the background and
// kept; ctx is for opening only. Errors are about configuration.
func Open(ctx context.Context, opts ...Option) (*Client, error) {
	o := options{logger: slog.New(slog.DiscardHandler)}
	for _, opt := range opts {
		opt(&o)
	}
	if o.file != "" {
		if err := o.readFile(); err != nil {
			return nil, err
		}
	}
	if o.timeout <= 0 {
		o.timeout = config.DefaultTimeout
	}
	if len(o.members) == 0 || len(o.members) > 64 {
		return nil, fmt.Errorf("client: %d members given, a cluster has 1 to 64", len(o.members))
	}
	for _, m := range o.members {
		if err := sig.CheckPublicKey(m.Key[:]); err != nil {
			return nil, fmt.Errorf("client: member %s: %w", m.Name, err)
		}
	}
	if len(o.key) != ed25519.PrivateKeySize {
		return nil, errors.New("client: no identity; give a configuration file or WithIdentity")
	}
	c := &Client{opts: o, self: protocol.ClientKey(o.key.Public().(ed25519.PublicKey)), keyHash: protocol.HashPrivateKey(o.key),
		transport: o.transport, close: func() error { return nil }, log: o.logger, certs: map[string]*protocol.Certificate{}}
	if c.transport == nil {
		if err := c.connect(); err != nil {
			return nil, err
		}
	}
	return c, ctx.Err()
}

func (o *options) readFile() error {
	f, err := config.LoadClient(o.file)
	if err != nil {
		return err
	}
	cluster, err := config.LoadCluster(f.Cluster)
	if err != nil {
		return err
	}
	for _, m := range cluster.Members {
		o.members = append(o.members, Member{Name: m.Name, Key: m.Key, Addrs: m.Addrs})
	}
	if o.key == nil {
		if o.key, err = config.LoadClientKey(f.KeyFile); err != nil {
			return err
		}
	}
	if o.timeout == 0 {
		o.timeout = time.Duration(f.Timeout)
	}
	o.quic = o.quic || f.QUIC
	return nil
}

func (c *Client) connect() error {
	var nodes []p2p.Peer
	for i, m := range c.opts.members {
		nodes = append(nodes, p2p.Peer{Index: i + 1, Name: m.Name, Key: ed25519.PublicKey(m.Key[:]), Addrs: m.Addrs})
	}
	h, err := p2p.New(p2p.Config{Key: c.opts.key, Nodes: nodes, QUIC: c.opts.quic})
	if err != nil {
		return err
	}
	c.transport, c.close = h, h.Close
	return nil
}

// Close ends the connections. Operations under way fail.
func (c *Client) Close() error {
	c.mu.Lock()
	done := c.done
	c.done = true
	c.mu.Unlock()
	if done {
		return nil
	}
	return c.close()
}

// PublicKey is the client's own public key, by which nodes know it.
func (c *Client) PublicKey() [32]byte { return c.self }

func (c *Client) name(node int) string { return c.opts.members[node-1].Name }

// bound gives ctx the default timeout when it has none.
func (c *Client) bound(ctx context.Context) (context.Context, context.CancelFunc, error) {
	c.mu.Lock()
	done := c.done
	c.mu.Unlock()
	if done {
		return nil, nil, ErrClosed
	}
	if _, ok := ctx.Deadline(); ok {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.timeout)
	return ctx, cancel, nil
}

// author is the identity for one encrypt request.
func (c *Client) author() *protocol.Author {
	return &protocol.Author{Key: c.self, KeyHash: c.keyHash, Counter: c.counter.Add(1)}
}

// accuse logs a lie and passes evidence on.
func (c *Client) accuse(err error) {
	var n *protocol.NodeError
	var l *protocol.LieError
	if !errors.As(err, &n) && !errors.As(err, &l) || !errors.As(err, &l) {
		return
	}
	name := "unknown"
	if n != nil {
		name = c.name(n.Node)
	} else if l.Evidence != nil {
		name = c.name(l.Evidence.Node())
	}
	c.log.Warn("a node lied", "node", name, "reason", l.Reason, "evidence", l.Evidence != nil)
	if l.Evidence != nil && c.opts.evidence != nil {
		c.opts.evidence(Evidence{Node: name, Reason: l.Reason, Bundle: l.Evidence.Append(nil)})
	}
}
