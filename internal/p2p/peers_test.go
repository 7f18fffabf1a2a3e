package p2p

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	ma "github.com/multiformats/go-multiaddr"
)

func TestUnknownClientRefused(t *testing.T) {
	for _, transport := range []string{"tcp", "quic"} {
		t.Run(transport, func(t *testing.T) {
			log, logs := logged()
			c := newCluster(t, 1, 1, echo, edits(transport, func(cfg *Config) { cfg.Logger = log }))
			stranger := testKey(77)
			cl := start(t, Config{Key: stranger, Nodes: c.nodes, QUIC: true})
			_, err := cl.Call(within(t, 5*time.Second), 1, []byte("x"))
			if !errors.Is(err, ErrRefused) || !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "n1") {
				t.Fatal(err)
			}
			entries := logs.FilterMessageSnippet("identity is not configured").All()
			if len(entries) == 0 {
				t.Fatal("not logged:", logs.All())
			}
			fields := entries[0].ContextMap()
			if fields["identity"] != hex.EncodeToString(public(stranger)) || !strings.Contains(fmt.Sprint(fields["addr"]), "127.0.0.1") {
				t.Fatal(fields)
			}
			if len(c.hosts[0].swarm.Conns()) != 0 {
				t.Fatal("a connection stays")
			}
		})
	}
}

// edits adapts a cluster to QUIC.
func edits(transport string, more func(*Config)) func(*Config) {
	return func(cfg *Config) {
		if transport == "quic" {
			cfg.QUIC = true
			for i := range cfg.Nodes {
				a := cfg.Nodes[i].Addrs[0]
				if !strings.Contains(a, "udp") {
					cfg.Nodes[i].Addrs = []string{strings.Replace(a, "/tcp/", "/udp/", 1) + "/quic-v1"}
				}
			}
			cfg.Listen = cfg.Nodes[cfg.Self-1].Addrs
		}
		if more != nil {
			more(cfg)
		}
	}
}

func TestQUIC(t *testing.T) {
	c := newCluster(t, 2, 1, echo, edits("quic", nil))
	cl := c.client(0, func(cfg *Config) { cfg.QUIC = true })
	for to := 1; to <= 2; to++ {
		for _, n := range []int{0, 10, 100_000, 2 << 20} {
			got, err := cl.Call(within(t, 5*time.Second), to, make([]byte, n))
			if err != nil || len(got) != n {
				t.Fatal(n, len(got), err)
			}
		}
	}
	if a := cl.Peers()[0].Addr; !strings.Contains(a, "quic-v1") {
		t.Fatal(a)
	}
	// restart: the new process answers the old connection with a stateless reset
	c.hosts[0].Close()
	c.hosts[0] = c.startNode(1, echo, edits("quic", nil))
	began := time.Now()
	eventually(t, "resumed", func() bool { _, err := cl.Call(within(t, time.Second), 1, nil); return err == nil })
	if d := time.Since(began); d > 2*time.Second {
		t.Fatal(d)
	}
}

func TestWrongIdentity(t *testing.T) {
	for _, transport := range []string{"tcp", "quic"} {
		t.Run(transport, func(t *testing.T) {
			c := newCluster(t, 2, 1, echo, edits(transport, nil))
			nodes := []Peer{c.nodes[0], c.nodes[1]}
			nodes[1].Addrs = c.nodes[0].Addrs // n2's entry leads to n1
			cl := start(t, Config{Key: c.clients[0], Nodes: nodes, QUIC: true})
			_, err := cl.Call(within(t, 5*time.Second), 2, nil)
			want := fmt.Sprintf("node n2 at %s presented identity %x, configuration says %x", c.nodes[0].Addrs[0], c.nodes[0].Key, c.nodes[1].Key)
			if !errors.Is(err, ErrIdentity) || err.Error() != want {
				t.Fatalf("%v\nwant %s", err, want)
			}
			if _, err := cl.Call(within(t, 5*time.Second), 1, nil); err != nil {
				t.Fatal(err)
			}
			if st := cl.Peers()[1]; st.Connected || !errors.Is(st.LastErr, ErrIdentity) {
				t.Fatalf("%+v", st)
			}
		})
	}
}

func TestNodeRestart(t *testing.T) {
	c := newCluster(t, 1, 1, echo, nil)
	cl := c.client(0, nil)
	if _, err := cl.Call(within(t, 5*time.Second), 1, nil); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.hosts[0].Close()
		for range 20 { // long enough for libp2p's own backoff to strike
			began := time.Now()
			_, err := cl.Call(within(t, 5*time.Second), 1, nil)
			if d := time.Since(began); !errors.Is(err, ErrUnreachable) || d > time.Second {
				t.Fatal("a stopped node must fail a call at once:", d, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		c.hosts[0] = c.startNode(1, echo, nil)
		began := time.Now()
		eventually(t, "resumed", func() bool { _, err := cl.Call(within(t, time.Second), 1, nil); return err == nil })
		if d := time.Since(began); d > 500*time.Millisecond {
			t.Fatal("resumed only after", d)
		}
	}
	// the redial loop finds it without any call
	c.hosts[0].Close()
	eventually(t, "disconnected", func() bool { return !cl.Peers()[0].Connected })
	if err := cl.Peers()[0].LastErr; !errors.Is(err, ErrUnreachable) {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond)
	c.hosts[0] = c.startNode(1, echo, nil)
	began := time.Now()
	eventually(t, "connected", func() bool { return cl.Peers()[0].Connected })
	if d := time.Since(began); d > 2*time.Second {
		t.Fatal(d)
	}
}

// A request under way when its node stops fails at once and says so.
func TestNodeStopsMidCall(t *testing.T) {
	started := make(chan bool, 1)
	c := newCluster(t, 1, 1, func(ctx context.Context, _ Caller, _ []byte) []byte {
		started <- true
		<-ctx.Done()
		return nil
	}, nil)
	cl := c.client(0, nil)
	go func() { <-started; c.hosts[0].Close() }()
	began := time.Now()
	_, err := cl.Call(within(t, 20*time.Second), 1, nil)
	if !errors.Is(err, ErrUnreachable) || time.Since(began) > 5*time.Second {
		t.Fatal(time.Since(began), err)
	}
}

func TestSetClients(t *testing.T) {
	c := newCluster(t, 1, 2, echo, nil)
	a, b := c.client(0, nil), c.client(1, nil)
	for _, cl := range []*Host{a, b} {
		if _, err := cl.Call(within(t, 5*time.Second), 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.hosts[0].SetClients([]ed25519.PublicKey{{1, 2, 3}}); !errors.Is(err, ErrConfig) {
		t.Fatal(err)
	}
	if err := c.hosts[0].SetClients([]ed25519.PublicKey{public(c.clients[1])}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first one is out", func() bool { _, err := a.Call(within(t, time.Second), 1, nil); return errors.Is(err, ErrRefused) })
	if _, err := b.Call(within(t, time.Second), 1, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.hosts[0].SetClients([]ed25519.PublicKey{public(c.clients[0])}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is back", func() bool { _, err := a.Call(within(t, time.Second), 1, nil); return err == nil })
}

// Two processes may use one client's key at once, as both ends of a pipe do; but
// not any number.
func TestSameKeyTwice(t *testing.T) {
	c := newCluster(t, 1, 1, echo, func(cfg *Config) { cfg.MaxConns = 2 })
	var hosts []*Host
	for range 2 {
		h := c.client(0, nil)
		hosts = append(hosts, h)
		if _, err := h.Call(within(t, 5*time.Second), 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.client(0, nil).Call(within(t, 5*time.Second), 1, nil); !errors.Is(err, ErrRefused) {
		t.Fatal(err)
	}
	for _, h := range hosts {
		if _, err := h.Call(within(t, 5*time.Second), 1, nil); err != nil {
			t.Fatal("the earlier connections must stay:", err)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	good := func() Config {
		return Config{Key: testKey(1), Self: 1, Nodes: []Peer{
			{Index: 1, Name: "a", Key: public(testKey(1)), Addrs: []string{"/ip4/127.0.0.1/tcp/1"}},
			{Index: 2, Name: "b", Key: public(testKey(2)), Addrs: []string{"/ip4/127.0.0.1/tcp/1"}}}}
	}
	for name, edit := range map[string]func(*Config){
		"no key":         func(c *Config) { c.Key = nil },
		"short node key": func(c *Config) { c.Nodes[1].Key = c.Nodes[1].Key[:31] },
		"key twice":      func(c *Config) { c.Nodes[1].Key = c.Nodes[0].Key },
		"index 0":        func(c *Config) { c.Nodes[1].Index = 0 },
		"index twice":    func(c *Config) { c.Nodes = append(c.Nodes, c.Nodes[1]); c.Nodes[2].Key = public(testKey(3)) },
		"not self":       func(c *Config) { c.Self = 2 },
		"client is node": func(c *Config) { c.Self = 0 },
		"no address":     func(c *Config) { c.Nodes[1].Addrs = nil },
		"bad address":    func(c *Config) { c.Nodes[1].Addrs = []string{"127.0.0.1:80"} },
		"empty address":  func(c *Config) { c.Nodes[1].Addrs = []string{"/"} },
		"websocket only": func(c *Config) { c.Nodes[1].Addrs = []string{"/ip4/127.0.0.1/tcp/1/ws"} },
		"p2p address":    func(c *Config) { c.Nodes[1].Addrs[0] += "/p2p/12D3KooWJWoaqZhDaoEFshF7Rh1bpY9ohihFhzcW6d69Lr2NASuq" },
		"quic is off":    func(c *Config) { c.Nodes[1].Addrs = []string{"/ip4/127.0.0.1/udp/1/quic-v1"} },
		"bad listen":     func(c *Config) { c.Listen = []string{"here"} },
		"bad client":     func(c *Config) { c.Clients = []ed25519.PublicKey{{1}} },
		"tiny frames":    func(c *Config) { c.MaxFrame = 10 },
	} {
		cfg := good()
		edit(&cfg)
		h, err := New(cfg)
		if err == nil {
			h.Close()
		}
		if !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := newCluster(t, 1, 0, echo, nil)
	cfg := good()
	cfg.Listen = c.nodes[0].Addrs
	if h, err := New(cfg); err == nil {
		h.Close()
		t.Error("listened on a port in use")
	}
}

// Connections, streams and goroutines stay flat over many calls and reconnects,
// and all goroutines end with the host.
func TestNothingLeaks(t *testing.T) {
	before := runtime.NumGoroutine()
	c := newCluster(t, 2, 1, echo, nil)
	cl := c.client(0, nil)
	call := func() {
		for to := 1; to <= 2; to++ {
			if _, err := cl.Call(within(t, 5*time.Second), to, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	streams := func() (n int) {
		for _, h := range append(c.hosts, cl) {
			for _, conn := range h.swarm.Conns() {
				n += 100 + len(conn.GetStreams())
			}
		}
		return n
	}
	call()
	eventually(t, "nodes connect", func() bool { return c.hosts[0].Peers()[0].Connected && c.hosts[1].Peers()[0].Connected })
	want := streams()
	for range 1000 {
		call()
	}
	if got := streams(); got != want {
		t.Fatal("after calls:", got, want)
	}
	middle := runtime.NumGoroutine()
	for i := range 50 {
		if i%2 == 0 {
			for _, conn := range c.hosts[i/2%2].swarm.ConnsToPeer(cl.swarm.LocalPeer()) {
				_ = conn.Close()
			}
		} else {
			_ = cl.links[1+i/2%2].cur0().stream.Reset()
		}
		eventually(t, "reconnected", func() bool {
			_, err1 := cl.Call(within(t, time.Second), 1, nil)
			_, err2 := cl.Call(within(t, time.Second), 2, nil)
			return err1 == nil && err2 == nil
		})
	}
	eventually(t, "streams as before", func() bool { return streams() == want })
	eventually(t, "goroutines as before", func() bool { return runtime.NumGoroutine() <= middle+2 })
	cl.Close()
	for _, h := range c.hosts {
		h.Close()
		h.Close()
	}
	if _, err := cl.Call(t.Context(), 1, nil); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}

// cur0 returns the session, waiting for one.
func (l *link) cur0() *session {
	for {
		l.mu.Lock()
		s := l.cur
		l.mu.Unlock()
		if s != nil {
			return s
		}
		time.Sleep(time.Millisecond)
	}
}

// A /dns4 name is resolved at every dial.
func TestNames(t *testing.T) {
	c := newCluster(t, 1, 1, echo, nil)
	named := c.nodes[0]
	named.Addrs = []string{strings.Replace(named.Addrs[0], "/ip4/127.0.0.1", "/dns4/localhost", 1)}
	cl := start(t, Config{Key: c.clients[0], Nodes: []Peer{named}})
	for range 2 {
		if _, err := cl.Call(within(t, 5*time.Second), 1, nil); err != nil {
			t.Fatal(err)
		}
		_ = cl.links[1].cur0().stream.Conn().Close()
		eventually(t, "noticed", func() bool { return !cl.Peers()[0].Connected })
	}
	bad := c.nodes[0]
	bad.Addrs = []string{"/dns4/does-not-exist.invalid/tcp/1"}
	cl = start(t, Config{Key: c.clients[0], Nodes: []Peer{bad}})
	if _, err := cl.Call(within(t, 5*time.Second), 1, nil); !errors.Is(err, ErrUnreachable) {
		t.Fatal(err)
	}
}

// Only Ed25519 identities exist here; libp2p as such knows others.
func TestOtherKeyTypes(t *testing.T) {
	log, logs := logged()
	c := newCluster(t, 1, 1, echo, func(cfg *Config) { cfg.Logger = log })
	key, pub, err := crypto.GenerateECDSAKeyPair(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	self, err := peer.IDFromPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rawKey(self); !errors.Is(err, errKeyType) {
		t.Fatal(err)
	}
	node, err := peerID(c.nodes[0].Key)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{}
	withDefaults(&cfg)
	g := &gate{log: cfg.Logger, maxConns: 9, nodes: map[peer.ID]Caller{node: {Node: 1}}, conns: func(peer.ID) int { return 0 }}
	st, err := newStack(key, &cfg, g)
	if err != nil {
		t.Fatal(err)
	}
	defer st.close()
	st.swarm.Peerstore().AddAddr(node, ma.StringCast(c.nodes[0].Addrs[0]), peerstore.PermanentAddrTTL)
	if conn, err := st.swarm.DialPeer(within(t, 5*time.Second), node); err == nil {
		_, err = (&link{}).open(within(t, 5*time.Second), conn)
		if err == nil {
			t.Fatal("admitted")
		}
	}
	eventually(t, "the refusal is logged", func() bool { return logs.FilterMessageSnippet("identity is not configured").Len() == 1 })
}

// A peer that keeps the node busy leaves workers for others.
func TestFairness(t *testing.T) {
	c := newCluster(t, 1, 2, func(ctx context.Context, _ Caller, req []byte) []byte {
		if string(req) == "long" {
			<-ctx.Done()
		}
		return req
	}, func(cfg *Config) { cfg.Workers = 4 })
	greedy := c.client(0, nil)
	ctx := within(t, 2*time.Second)
	for range 100 {
		go func() { _, _ = greedy.Call(ctx, 1, []byte("long")) }()
	}
	eventually(t, "all of one peer's turns are taken", func() bool { return len(c.hosts[0].workers) == 3 })
	began := time.Now()
	if _, err := c.client(1, nil).Call(within(t, 5*time.Second), 1, nil); err != nil || time.Since(began) > time.Second {
		t.Fatal(err, time.Since(began))
	}
}
