package p2p

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// Five nodes that all dial each other at once end up with few connections, and
// all calls pass.
func TestMesh(t *testing.T) {
	c := newCluster(t, 5, 0, echo, nil)
	var wg sync.WaitGroup
	for _, h := range c.hosts {
		for to := 1; to <= 5; to++ {
			wg.Go(func() {
				eventually(t, "connected", func() bool {
					_, err := h.Call(within(t, 5*time.Second), to, []byte("x"))
					return err == nil
				})
			})
		}
	}
	wg.Wait()
	for i, h := range c.hosts {
		if n := len(h.swarm.Conns()); n < 4 || n > 8 {
			t.Fatalf("node %d has %d connections", i+1, n)
		}
	}
}

// One dead address does not hide the next.
func TestSeveralAddresses(t *testing.T) {
	c := newCluster(t, 1, 1, echo, nil)
	p := c.nodes[0]
	p.Addrs = []string{freeAddr(t), "/dns4/nowhere.invalid/tcp/1", "/ip4/127.0.0.1/udp/9/quic-v1", p.Addrs[0]}
	cl := start(t, Config{Key: c.clients[0], Nodes: []Peer{p}})
	if _, err := cl.Call(within(t, 5*time.Second), 1, nil); err != nil {
		t.Fatal(err)
	}
	if st := cl.Peers()[0]; st.Addr != p.Addrs[3] {
		t.Fatalf("%+v", st)
	}
}

// Bytes count as well as requests.
func TestBusyByBytes(t *testing.T) {
	release := make(chan bool)
	c := newCluster(t, 1, 1, func(context.Context, Caller, []byte) []byte { <-release; return nil },
		func(cfg *Config) { cfg.MaxPeerBytes = 250 << 10 })
	cl := c.client(0, nil)
	errs := make(chan error, 3)
	for range 3 {
		go func() {
			_, err := cl.Call(within(t, 5*time.Second), 1, make([]byte, 100<<10))
			errs <- err
		}()
	}
	if err := <-errs; !errors.Is(err, ErrBusy) {
		t.Fatal(err)
	}
	close(release)
	for range 2 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cl.Call(within(t, 5*time.Second), 1, make([]byte, 200<<10)); err != nil {
		t.Fatal("the bytes were not given back:", err)
	}
}

// Close ends calls in flight, waiting ones and those still to come.
func TestCloseDuringCalls(t *testing.T) {
	entered := make(chan bool, 10)
	c := newCluster(t, 1, 1, func(ctx context.Context, _ Caller, _ []byte) []byte { entered <- true; <-ctx.Done(); return nil }, nil)
	cl := c.client(0, func(cfg *Config) { cfg.MaxInFlight = 2 })
	errs := make(chan error, 10)
	for range 10 {
		go func() {
			_, err := cl.Call(within(t, 20*time.Second), 1, nil)
			errs <- err
		}()
	}
	<-entered
	<-entered
	began := time.Now()
	cl.Close()
	for range 10 {
		if err := <-errs; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
	if d := time.Since(began); d > 3*time.Second {
		t.Fatal(d)
	}
}
