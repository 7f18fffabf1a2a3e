package p2p

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// BenchmarkLatency measures one request of 150 bytes at a time, beside an echo of
// the same bytes on raw TCP and on a bare libp2p stream: to one peer, and to two at once as a quorum of t = 3
// needs. All ends share this process. Compare within one run only.
func BenchmarkLatency(b *testing.B) {
	req := make([]byte, 150)
	c := newCluster(b, 2, 1, echo, nil)
	cl := c.client(0, nil)
	raw := []net.Conn{rawEcho(b), rawEcho(b)}
	viaHost := func(i int) error { _, err := cl.Call(context.Background(), i+1, req); return err }
	viaTCP := func(i int) error {
		if _, err := raw[i].Write(req); err != nil {
			return err
		}
		_, err := io.ReadFull(raw[i], make([]byte, len(req)))
		return err
	}
	streams := []network.Stream{streamEcho(b), streamEcho(b)}
	viaStream := func(i int) error {
		if _, err := streams[i].Write(req); err != nil {
			return err
		}
		_, err := io.ReadFull(streams[i], make([]byte, len(req)))
		return err
	}
	warm(b, cl)
	for _, bench := range []struct {
		name  string
		call  func(i int) error
		peers int
	}{{"tcp-1", viaTCP, 1}, {"stream-1", viaStream, 1}, {"call-1", viaHost, 1},
		{"tcp-2", viaTCP, 2}, {"stream-2", viaStream, 2}, {"call-2", viaHost, 2}} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			times := make([]time.Duration, 0, b.N)
			for b.Loop() {
				began := time.Now()
				if err := fanOut(bench.peers, bench.call); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(began))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "us-p50")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "us-p99")
		})
	}
}

// fanOut calls n peers at once, the last one from this goroutine.
func fanOut(n int, call func(i int) error) error {
	errs := make(chan error, n)
	for i := range n - 1 {
		go func() { errs <- call(i) }()
	}
	errs <- call(n - 1)
	for range n {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkPipelined measures requests of the size of a batch of 128 messages,
// several in flight, to one node.
func BenchmarkPipelined(b *testing.B) {
	c := newCluster(b, 1, 1, echo, nil)
	cl := c.client(0, nil)
	warm(b, cl)
	for _, size := range []int{150, 20 << 10, 256 << 10} {
		for _, flight := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("bytes=%d/inflight=%d", size, flight), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				req := make([]byte, size)
				var wg sync.WaitGroup
				next := make(chan struct{}, flight)
				for range flight {
					wg.Go(func() {
						for range next {
							if _, err := cl.Call(context.Background(), 1, req); err != nil {
								b.Error(err)
							}
						}
					})
				}
				for b.Loop() {
					next <- struct{}{}
				}
				close(next)
				wg.Wait()
			})
		}
	}
}

func warm(b *testing.B, h *Host) {
	for range 200 {
		for _, p := range h.Peers() {
			if _, err := h.Call(within(b, 5*time.Second), p.Index, []byte("warm")); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// streamEcho returns an open libp2p stream to a plain echo.
func streamEcho(b *testing.B) network.Stream {
	c := newCluster(b, 1, 1, nil, nil)
	h := c.hosts[0]
	h.swarm.SetStreamHandler(func(s network.Stream) {
		if _, _, err := h.mux.Negotiate(s); err == nil {
			echoAll(s)
		}
	})
	return c.rawStream(0)
}

func echoAll(s io.ReadWriter) {
	buf := make([]byte, 64<<10)
	for {
		n, err := s.Read(buf)
		if err != nil {
			return
		}
		if _, err := s.Write(buf[:n]); err != nil {
			return
		}
	}
}

// rawEcho returns a connection to a plain TCP echo.
func rawEcho(b *testing.B) net.Conn {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	go func() {
		s, err := l.Accept()
		if err != nil {
			return
		}
		echoAll(s)
	}()
	conn, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return conn
}

// BenchmarkFirstCall measures what a short-lived client pays: start, connect, one
// call, close.
func BenchmarkFirstCall(b *testing.B) {
	c := newCluster(b, 1, 1, echo, nil)
	for b.Loop() {
		h, err := New(Config{Key: c.clients[0], Nodes: c.nodes})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := h.Call(context.Background(), 1, nil); err != nil {
			b.Fatal(err)
		}
		_ = h.Close()
	}
}
