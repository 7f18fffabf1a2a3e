// Package taetest gives a test a whole cluster in one call: n nodes with real keys
// and the real protocol, on a simulated network and simulated disks, in the test's
// own process.
//
//	func TestMine(t *testing.T) {
//		cluster := taetest.NewCluster(t, 5, 3)
//		k := cluster.Client("app").Keyset("default")
//		object, err := k.Encrypt(t.Context(), []byte("m"), nil)
//		...
//	}
//
// Inside testing/synctest latencies and timeouts cost no real time. The keys of such
// a cluster are stored nowhere and sealed under a known passphrase: it is for tests
// only.
package taetest

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/seed-a893640b/tae/client"
	"github.com/seed-a893640b/tae/internal/config"
	"github.com/seed-a893640b/tae/internal/disk"
	"github.com/seed-a893640b/tae/internal/node"
	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/netsim"
	"github.com/seed-a893640b/tae/protocol"
)

// Rights are what a client may do under every keyset.
type Rights struct{ Encrypt, Decrypt, Rotate bool }

// An Option changes a cluster before it starts.
type Option func(*Cluster)

// WithClient adds a client. Without it there is one, "app", with all rights.
func WithClient(name string, r Rights) Option {
	return func(c *Cluster) { c.rights[name] = r }
}

// WithSeed sets the seed of the simulated network; default 1.
func WithSeed(seed uint64) Option { return func(c *Cluster) { c.seed = seed } }

// WithoutKeyset leaves out the keyset "default".
func WithoutKeyset() Option { return func(c *Cluster) { c.keyset = "" } }

// WithTAE3 makes keysets of the public-key suite.
func WithTAE3() Option { return func(c *Cluster) { c.suite = protocol.SuiteTAE3 } }

// WithManualAccept makes proposals wait for Accept.
func WithManualAccept() Option { return func(c *Cluster) { c.auto = false } }

// WithLogger logs what the nodes log.
func WithLogger(l *zap.Logger) Option { return func(c *Cluster) { c.log = l } }

// A Cluster is n nodes in this process. Its methods are safe for concurrent use.
type Cluster struct {
	// Network carries all messages; faults are set there.
	Network *netsim.Network

	t      testing.TB
	n, th  int
	seed   uint64
	auto   bool
	suite  protocol.Suite
	keyset string
	log    *zap.Logger
	rights map[string]Rights
	keys   map[string]ed25519.PrivateKey
	config *config.Cluster

	mu    sync.Mutex
	nodes []*member // index 0 unused
}

type member struct {
	key    ed25519.PrivateKey
	disk   *disk.Sim
	node   *node.Node
	cancel context.CancelFunc
	done   chan struct{}
}

var passphrase = []byte("taetest")

// NewCluster starts n nodes with threshold t and, unless told otherwise, makes the
// keyset "default". Everything is stopped when the test ends.
func NewCluster(t testing.TB, n, threshold int, opts ...Option) *Cluster {
	t.Helper()
	c := &Cluster{t: t, n: n, th: threshold, seed: 1, auto: true, suite: protocol.SuiteTAE1, keyset: "default", log: zap.NewNop(), rights: map[string]Rights{},
		keys: map[string]ed25519.PrivateKey{}, nodes: make([]*member, n+1)}
	for _, opt := range opts {
		opt(c)
	}
	if len(c.rights) == 0 {
		c.rights["app"] = Rights{true, true, true}
	}
	c.Network = netsim.New(c.seed)
	c.config = &config.Cluster{Version: 1, Name: "test", Clients: map[string]config.PublicKey{}}
	for name := range c.rights {
		pub, key := newKey(t)
		c.keys[name], c.config.Clients[name] = key, pub
	}
	for i := 1; i <= n; i++ {
		pub, key := newKey(t)
		c.nodes[i] = &member{key: key, disk: disk.NewSim()}
		c.config.Members = append(c.config.Members, config.Member{Index: i, Name: fmt.Sprintf("n%d", i), Key: pub, Addrs: []string{"simulated"}})
	}
	for i := 1; i <= n; i++ {
		if _, err := node.NewSealer(c.nodes[i].disk, secret.Copy(passphrase), node.SealCost{Time: 1, MemoryKiB: 8, Threads: 1}); err != nil {
			t.Fatal(err)
		}
		c.Start(i)
	}
	t.Cleanup(func() {
		for i := 1; i <= n; i++ {
			c.Stop(i)
		}
	})
	if c.keyset != "" {
		c.Create(c.keyset)
	}
	return c
}

func newKey(t testing.TB) (config.PublicKey, ed25519.PrivateKey) {
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return config.PublicKey(pub), key
}

// Start starts a stopped node from its disk. It fails the test when the node does
// not start.
func (c *Cluster) Start(i int) {
	c.t.Helper()
	if err := c.TryStart(i); err != nil {
		c.t.Fatalf("node %d: %v", i, err)
	}
}

// TryStart is Start with the error returned.
func (c *Cluster) TryStart(i int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.nodes[i]
	sealer, err := node.OpenSealer(m.disk, secret.Copy(passphrase))
	if err != nil {
		return err
	}
	m.node, err = node.New(node.Config{Cluster: c.config, Policy: c.policy(), Self: i, Key: m.key, Sealer: sealer,
		AutoAccept: c.auto, Software: "taetest", Logger: c.log.Named(fmt.Sprintf("n%d", i))})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel, m.done = cancel, make(chan struct{})
	n := m.node
	handler := func(ctx context.Context, from netsim.Caller, req []byte) []byte {
		return n.Handle(ctx, protocol.Caller{Key: from.Key, Node: from.Node}, req)
	}
	c.Network.AddNode(i, c.config.Members[i-1].Key, handler)
	conn := c.Network.Dial(netsim.Caller{Key: c.config.Members[i-1].Key, Node: i})
	go func() {
		defer close(m.done)
		n.Run(ctx, conn)
	}()
	return nil
}

func (c *Cluster) policy() *config.Policy {
	p := &config.Policy{Version: 1, Clients: map[string]map[string]config.PolicyRights{}}
	for name, r := range c.rights {
		p.Clients[name] = map[string]config.PolicyRights{}
		for _, keyset := range []string{"default", c.keyset} {
			p.Clients[name][keyset] = config.PolicyRights{Encrypt: r.Encrypt, Decrypt: r.Decrypt, Rotate: r.Rotate}
		}
	}
	return p
}

// Stop stops a node as a crash would: nothing is said to anybody. It does nothing to
// a node that is stopped.
func (c *Cluster) Stop(i int) {
	c.mu.Lock()
	m := c.nodes[i]
	cancel, done := m.cancel, m.done
	m.cancel = nil
	c.mu.Unlock()
	if cancel == nil {
		return
	}
	c.Network.Crash(i)
	cancel()
	<-done
}

// Disk is a node's simulated disk. ReplaceDisk gives a stopped node another.
func (c *Cluster) Disk(i int) *disk.Sim { return c.nodes[i].disk }

// ReplaceDisk gives a stopped node another disk, such as what a crash left of its
// own.
func (c *Cluster) ReplaceDisk(i int, d *disk.Sim) { c.nodes[i].disk = d }

// Node is the running node, for administration.
func (c *Cluster) Node(i int) *node.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[i].node
}

// Propose proposes a keyset at node 1.
func (c *Cluster) Propose(name string) error {
	k := node.NewKeyset{Name: name, Suite: c.suite, Threshold: c.th, Modes: []string{"sealed"}}
	if c.suite == protocol.SuiteTAE1 {
		k.Modes, k.Layers = append(k.Modes, "layered"), 20
	}
	_, err := c.Node(1).Create(k)
	return err
}

// Create makes a keyset and waits until every node serves it.
func (c *Cluster) Create(name string) {
	c.t.Helper()
	if err := c.Propose(name); err != nil {
		c.t.Fatal(err)
	}
	for i := 1; i <= c.n; i++ {
		if err := c.Await(i, name, time.Minute); err != nil {
			c.t.Fatal(err)
		}
	}
}

// Await waits until a node serves a keyset.
func (c *Cluster) Await(i int, name string, limit time.Duration) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		state := "unknown"
		for _, k := range c.Node(i).List() {
			if k.Name == name {
				if state = k.State; k.Serving {
					return nil
				}
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("node %d does not serve keyset %s: %s", i, name, state)
		}
	}
}

// Client returns a client of the cluster by its name; it is closed when the test
// ends.
func (c *Cluster) Client(name string) *client.Client {
	c.t.Helper()
	key, ok := c.keys[name]
	if !ok {
		c.t.Fatalf("taetest: no client named %s", name)
	}
	var members []client.Member
	for _, m := range c.config.Members {
		members = append(members, client.Member{Name: m.Name, Key: m.Key, Addrs: m.Addrs})
	}
	conn := c.Network.Dial(netsim.Caller{Key: [32]byte(key.Public().(ed25519.PublicKey))})
	cl, err := client.Open(context.Background(), client.WithMembers(members...), client.WithIdentity(key), client.WithTransport(conn))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { cl.Close() })
	return cl
}
