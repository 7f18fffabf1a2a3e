package p2p

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"net"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A cluster is n nodes on loopback and the keys of its clients.
type cluster struct {
	t       testing.TB
	nodes   []Peer
	keys    []ed25519.PrivateKey // of the nodes, by index-1
	hosts   []*Host
	clients []ed25519.PrivateKey
}

func testKey(n uint64) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	binary.BigEndian.PutUint64(seed, n)
	return ed25519.NewKeyFromSeed(seed)
}

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

func echo(_ context.Context, _ Caller, req []byte) []byte { return req }

// newCluster starts n nodes that know each other.
func newCluster(t testing.TB, n, clients int, h Handler, edit func(*Config)) *cluster {
	t.Helper()
	c := &cluster{t: t}
	for i := range clients {
		c.clients = append(c.clients, testKey(uint64(1000+i)))
	}
	for i := range n {
		c.keys = append(c.keys, testKey(uint64(i+1)))
		c.nodes = append(c.nodes, Peer{Index: i + 1, Name: fmt.Sprintf("n%d", i+1), Key: public(c.keys[i]), Addrs: []string{freeAddr(t)}})
	}
	for i := range n {
		c.hosts = append(c.hosts, c.startNode(i+1, h, edit))
	}
	return c
}

// freeAddr returns a loopback address that nobody listened on a moment ago.
func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", l.Addr().(*net.TCPAddr).Port)
}

// startNode starts node i at its configured address.
func (c *cluster) startNode(i int, h Handler, edit func(*Config)) *Host {
	c.t.Helper()
	cfg := Config{Key: c.keys[i-1], Listen: c.nodes[i-1].Addrs, Self: i, Nodes: c.nodes, Handler: h}
	for _, k := range c.clients {
		cfg.Clients = append(cfg.Clients, public(k))
	}
	if edit != nil {
		edit(&cfg)
	}
	return start(c.t, cfg)
}

// client starts the i-th client.
func (c *cluster) client(i int, edit func(*Config)) *Host {
	c.t.Helper()
	cfg := Config{Key: c.clients[i], Nodes: c.nodes}
	if edit != nil {
		edit(&cfg)
	}
	return start(c.t, cfg)
}

func start(t testing.TB, cfg Config) *Host {
	t.Helper()
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// logged returns a logger and what it has recorded.
func logged() (*zap.Logger, *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	return zap.New(core), logs
}

// eventually waits until cond holds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if cond() {
			return
		}
	}
	t.Fatalf("timeout: %s", what)
}
