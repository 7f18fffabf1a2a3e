package p2p

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestRoundTrip(t *testing.T) {
	var from atomic.Value
	c := newCluster(t, 2, 1, func(_ context.Context, who Caller, req []byte) []byte {
		from.Store(who)
		return append([]byte("re:"), req...)
	}, nil)
	cl := c.client(0, nil)
	for to := 1; to <= 2; to++ {
		got, err := cl.Call(within(t, 5*time.Second), to, []byte("hello"))
		if err != nil || string(got) != "re:hello" {
			t.Fatalf("node %d: %q, %v", to, got, err)
		}
		if want := (Caller{Key: [32]byte(public(c.clients[0]))}); from.Load() != want {
			t.Fatalf("caller %v, want %v", from.Load(), want)
		}
	}
	// node to node, and to itself
	for to := 1; to <= 2; to++ {
		if _, err := c.hosts[1].Call(within(t, 5*time.Second), to, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if want := (Caller{Key: [32]byte(c.nodes[1].Key), Node: 2}); from.Load() != want {
			t.Fatalf("caller %v, want %v", from.Load(), want)
		}
	}
	eventually(t, "a measured round trip", func() bool { return cl.Peers()[0].RTT > 0 })
}

func TestSizes(t *testing.T) {
	const limit = 1 << 20
	c := newCluster(t, 1, 1, func(_ context.Context, _ Caller, req []byte) []byte {
		if string(req) == "big" {
			return make([]byte, limit)
		}
		return req
	}, func(cfg *Config) { cfg.MaxFrame = limit })
	cl := c.client(0, func(cfg *Config) { cfg.MaxFrame = limit })
	for _, n := range []int{0, 1, 47 << 10, 48<<10 - requestHeader, 48 << 10, 64 << 10, 65 << 10, 300_000, limit - requestHeader} {
		req := bytes.Repeat([]byte{byte(n), 7}, n/2+1)[:n]
		got, err := cl.Call(within(t, 5*time.Second), 1, req)
		if err != nil || !bytes.Equal(got, req) {
			t.Fatalf("%d bytes: got %d, %v", n, len(got), err)
		}
	}
	if _, err := cl.Call(within(t, time.Second), 1, make([]byte, limit-requestHeader+1)); !errors.Is(err, ErrFrame) || !strings.Contains(err.Error(), "n1") {
		t.Fatalf("oversize request: %v", err)
	}
	if _, err := cl.Call(within(t, time.Second), 1, []byte("big")); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "exceeds") {
		t.Fatalf("oversize answer: %v", err)
	}
	if _, err := cl.Call(within(t, time.Second), 9, nil); !errors.Is(err, ErrUnknownNode) {
		t.Fatalf("unknown node: %v", err)
	}
}

func TestPipelined(t *testing.T) {
	c := newCluster(t, 1, 10, echo, nil)
	run := func(t *testing.T, cl *Host, calls int) {
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				want := fmt.Sprint("request ", i)
				got, err := cl.Call(within(t, 20*time.Second), 1, []byte(want))
				if err != nil || string(got) != want {
					t.Errorf("%d: %q, %v", i, got, err)
				}
			})
		}
		wg.Wait()
	}
	t.Run("1000 at once", func(t *testing.T) { run(t, c.client(0, nil), 1000) })
	t.Run("10 clients", func(t *testing.T) {
		var wg sync.WaitGroup
		for i := range 10 {
			cl := c.client(i, nil)
			wg.Go(func() { run(t, cl, 100) })
		}
		wg.Wait()
	})
}

func TestCancelReachesHandler(t *testing.T) {
	ended := make(chan error, 1)
	started := make(chan bool, 1)
	c := newCluster(t, 1, 1, func(ctx context.Context, _ Caller, req []byte) []byte {
		if string(req) != "wait" {
			return req
		}
		started <- true
		<-ctx.Done()
		ended <- ctx.Err()
		time.Sleep(50 * time.Millisecond) // so that the caller gives up first
		return nil
	}, nil)
	cl := c.client(0, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if _, err := cl.Call(ctx, 1, []byte("wait")); !errors.Is(err, context.Canceled) || errors.Is(err, ErrTimeout) {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	case <-time.After(2 * time.Second):
		t.Fatal("handler not cancelled")
	}
	go func() { <-started }()
	if _, err := cl.Call(within(t, 60*time.Millisecond), 1, []byte("wait")); !errors.Is(err, ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "n1") {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Fatal("handler did not see the deadline")
	}
	if _, err := cl.Call(within(t, time.Second), 1, []byte("next")); err != nil {
		t.Fatal("the stream did not survive a cancelled request:", err)
	}
}

func TestBusy(t *testing.T) {
	release := make(chan bool)
	c := newCluster(t, 1, 2, func(_ context.Context, _ Caller, req []byte) []byte { <-release; return req },
		func(cfg *Config) { cfg.MaxInFlight, cfg.Workers = 4, 2 })
	cl := c.client(0, func(cfg *Config) { cfg.MaxInFlight = 100 })
	var busy, ok atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			switch _, err := cl.Call(within(t, 10*time.Second), 1, []byte("x")); {
			case errors.Is(err, ErrBusy):
				busy.Add(1)
			case err == nil:
				ok.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	eventually(t, "16 busy answers", func() bool { return busy.Load() == 16 })
	other := make(chan error, 1)
	go func() {
		_, err := c.client(1, nil).Call(within(t, 5*time.Second), 1, []byte("y"))
		other <- err
	}()
	for range 5 {
		release <- true
	}
	wg.Wait()
	if err := <-other; err != nil || ok.Load() != 4 {
		t.Fatal(err, ok.Load())
	}
}

func TestHandlerPanic(t *testing.T) {
	c := newCluster(t, 1, 1, func(context.Context, Caller, []byte) []byte { panic("secret") }, nil)
	_, err := c.client(0, nil).Call(within(t, 5*time.Second), 1, nil)
	if !errors.Is(err, ErrFailed) || strings.Contains(err.Error(), "secret") {
		t.Fatal(err)
	}
}

// A node that is about to stop finishes what it has begun and refuses the rest.
func TestDrain(t *testing.T) {
	started, release := make(chan bool, 1), make(chan bool)
	c := newCluster(t, 1, 1, func(_ context.Context, _ Caller, req []byte) []byte {
		started <- true
		<-release
		return req
	}, nil)
	cl := c.client(0, nil)
	first := make(chan error, 1)
	go func() {
		_, err := cl.Call(within(t, 5*time.Second), 1, []byte("begun"))
		first <- err
	}()
	<-started
	if err := c.hosts[0].Drain(within(t, 20*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if _, err := cl.Call(within(t, time.Second), 1, []byte("late")); !errors.Is(err, ErrBusy) {
		t.Fatal(err)
	}
	drained := make(chan error, 1)
	go func() { drained <- c.hosts[0].Drain(within(t, 5*time.Second)) }()
	close(release)
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	c.hosts[0].Close()
	if err := <-first; err != nil {
		t.Fatal(err)
	}
}
