package p2p

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peerstore"
	ma "github.com/multiformats/go-multiaddr"
)

// rawStream opens a stream to node 1 as client i, without any of our caller's code
// around it.
func (c *cluster) rawStream(i int) network.Stream {
	c.t.Helper()
	h := start(c.t, Config{Key: c.clients[i]})
	id, err := peerID(c.nodes[0].Key)
	if err != nil {
		c.t.Fatal(err)
	}
	h.gate.mu.Lock()
	h.gate.nodes[id] = Caller{Node: 1}
	h.gate.mu.Unlock()
	h.swarm.Peerstore().AddAddr(id, ma.StringCast(c.nodes[0].Addrs[0]), peerstore.PermanentAddrTTL)
	ctx := within(c.t, 5*time.Second)
	conn, err := h.swarm.DialPeer(ctx, id)
	if err != nil {
		c.t.Fatal(err)
	}
	s, err := (&link{host: h}).open(ctx, conn)
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

func send(t testing.TB, s io.Writer, frames ...frame) {
	t.Helper()
	var b []byte
	for i := range frames {
		b = frames[i].appendTo(b)
	}
	if _, err := s.Write(b); err != nil {
		t.Fatal(err)
	}
}

func TestBrokenFraming(t *testing.T) {
	length := func(n uint32, rest ...byte) []byte { return append(binary.BigEndian.AppendUint32(nil, n), rest...) }
	enc := func(f frame) []byte { return f.appendTo(nil) }
	twice := frame{kind: kindRequest, id: 5, body: []byte("wait")}
	for name, b := range map[string][]byte{
		"zero length":      length(0),
		"short length":     length(8, 1, 0, 0, 0, 0, 0, 0, 0),
		"oversize":         length(1 << 30),
		"one over":         length(1<<16-3, 1),
		"unknown kind":     enc(frame{kind: 99, id: 1}),
		"kind 0":           enc(frame{kind: 0, id: 1}),
		"answer to a node": enc(frame{kind: kindAnswer, id: 1}),
		"cancel with body": append(length(10, kindCancel), make([]byte, 9)...),
		"no time limit":    append(length(9, kindRequest), make([]byte, 8)...),
		"half a frame":     length(100, 1, 2, 3),
		"half a length":    {0, 0},
		"id used twice":    append(enc(twice), enc(twice)...),
	} {
		t.Run(name, func(t *testing.T) {
			log, logs := logged()
			c := newCluster(t, 1, 2, func(ctx context.Context, _ Caller, req []byte) []byte {
				if string(req) == "wait" {
					<-ctx.Done()
				}
				return req
			}, func(cfg *Config) { cfg.Logger, cfg.MaxFrame, cfg.FrameTimeout = log, 1<<16, 100*time.Millisecond })
			s := c.rawStream(0)
			if _, err := s.Write(b); err != nil {
				t.Fatal(err)
			}
			_ = s.SetReadDeadline(time.Now().Add(3 * time.Second))
			if _, err := io.ReadAll(s); !errors.Is(err, network.ErrReset) {
				t.Fatal("no reset:", err)
			}
			eventually(t, "one log line", func() bool { return logs.FilterMessageSnippet("broken framing").Len() == 1 })
			if _, err := c.client(1, nil).Call(within(t, 5*time.Second), 1, []byte("x")); err != nil {
				t.Fatal("others suffer:", err)
			}
		})
	}
}

// A well-formed stream of every kind by hand, as docs/spec.md lays it out.
func TestRawExchange(t *testing.T) {
	c := newCluster(t, 1, 1, echo, nil)
	s := c.rawStream(0)
	ask := []byte{0, 0, 0, 15, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0x27, 0x10, 'h', 'i'}
	ping := []byte{0, 0, 0, 9, 6, 1, 2, 3, 4, 5, 6, 7, 8}
	cancelNone := []byte{0, 0, 0, 9, 3, 0, 0, 0, 0, 0, 0, 0, 99}
	read := func(want []byte) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(s, got); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%x, %v", got, err)
		}
	}
	for _, part := range [][]byte{cancelNone, ask[:5], ask[5:]} {
		if _, err := s.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	read([]byte{0, 0, 0, 11, 2, 0, 0, 0, 0, 0, 0, 0, 7, 'h', 'i'})
	if _, err := s.Write(ping); err != nil {
		t.Fatal(err)
	}
	read([]byte{0, 0, 0, 9, 7, 1, 2, 3, 4, 5, 6, 7, 8})
	_ = s.CloseWrite() // between frames: an orderly end
	if rest, err := io.ReadAll(s); err != nil || len(rest) != 0 {
		t.Fatalf("%x, %v", rest, err)
	}
}

// A client that never reads its answers costs a bounded amount and no one else
// waits for it.
func TestSlowReader(t *testing.T) {
	var handled atomic.Int32
	c := newCluster(t, 1, 2, func(_ context.Context, _ Caller, req []byte) []byte {
		handled.Add(1)
		return make([]byte, 256<<10)
	}, func(cfg *Config) {
		cfg.Workers, cfg.MaxInFlight, cfg.FrameTimeout, cfg.PingInterval = 2, 16, time.Second, 200*time.Millisecond
	})
	s := c.rawStream(0)
	_ = s.SetWriteDeadline(time.Now().Add(2 * time.Second))
	for id := range uint64(5000) {
		f := frame{kind: kindRequest, id: id + 1}
		if _, err := s.Write(f.appendTo(nil)); err != nil {
			break
		}
	}
	cl := c.client(1, nil)
	for range 20 {
		if _, err := cl.Call(within(t, 2*time.Second), 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := handled.Load(); n > 200 {
		t.Fatal("requests answered into the void:", n)
	}
	eventually(t, "the stuck stream ends", func() bool {
		c.hosts[0].mu.Lock()
		defer c.hosts[0].mu.Unlock()
		return len(c.hosts[0].inbound) == 1
	})
}

// fakeNode is a node whose streams f serves.
func fakeNode(t *testing.T, f func(s network.Stream, in *frameReader)) *cluster {
	c := newCluster(t, 1, 1, echo, nil)
	h := c.hosts[0]
	h.swarm.SetStreamHandler(func(s network.Stream) {
		if _, _, err := h.mux.Negotiate(s); err != nil {
			t.Error(err)
			return
		}
		f(s, newFrameReader(s, 1<<20, time.Second))
		_ = s.Reset()
	})
	return c
}

func TestHostileNode(t *testing.T) {
	for name, answer := range map[string]frame{
		"unknown id": {kind: kindAnswer, id: 1000},
		"request":    {kind: kindRequest, id: 1},
		"bad kind":   {kind: 50, id: 1},
		"cancel":     {kind: kindCancel, id: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeNode(t, func(s network.Stream, in *frameReader) {
				for {
					f, err := in.next()
					if err != nil {
						return
					}
					if f.kind == kindRequest {
						send(t, s, answer)
					}
				}
			})
			_, err := c.client(0, nil).Call(within(t, 5*time.Second), 1, nil)
			if !errors.Is(err, ErrFrame) || !errors.Is(err, ErrUnreachable) {
				t.Fatal(err)
			}
		})
	}
	t.Run("long reason", func(t *testing.T) {
		c := fakeNode(t, func(s network.Stream, in *frameReader) {
			for f, err := in.next(); err == nil; f, err = in.next() {
				if f.kind == kindRequest {
					send(t, s, frame{kind: kindFailed, id: f.id, body: []byte("\x1b[2J\n" + strings.Repeat("x", 10_000))})
				}
			}
		})
		_, err := c.client(0, nil).Call(within(t, 5*time.Second), 1, nil)
		if !errors.Is(err, ErrFailed) || len(err.Error()) > 400 || strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Fatal(err)
		}
	})
}

// A node that accepts connections and then does nothing: every call ends with its
// context, even while the stream is full, and the probe ends the connection.
func TestSilentNode(t *testing.T) {
	c := fakeNode(t, func(s network.Stream, _ *frameReader) { time.Sleep(3 * time.Second) })
	cl := c.client(0, func(cfg *Config) { cfg.PingInterval, cfg.PingTimeout = 100*time.Millisecond, 1200*time.Millisecond })
	for i := range 10 {
		began := time.Now()
		_, err := cl.Call(within(t, 50*time.Millisecond), 1, make([]byte, 100<<10))
		if d := time.Since(began); !errors.Is(err, ErrTimeout) || d > 500*time.Millisecond {
			t.Fatal(i, d, err)
		}
	}
	_, err := cl.Call(within(t, 10*time.Second), 1, nil)
	if !errors.Is(err, ErrUnreachable) || !errors.Is(err, errSilent) {
		t.Fatal(err)
	}
}

// A node whose machine accepts the connection and never finishes the handshake.
func TestHandshakeStalls(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr := fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", l.Addr().(*net.TCPAddr).Port)
	cl := start(t, Config{Key: testKey(9), DialTimeout: 300 * time.Millisecond,
		Nodes: []Peer{{Index: 1, Name: "n1", Key: public(testKey(1)), Addrs: []string{addr}}}})
	if _, err := cl.Call(within(t, 50*time.Millisecond), 1, nil); !errors.Is(err, ErrTimeout) {
		t.Fatal(err)
	}
	if _, err := cl.Call(within(t, 5*time.Second), 1, nil); !errors.Is(err, ErrUnreachable) {
		t.Fatal(err)
	}
}

// A peer may hold open streams of a protocol we do not speak, or of none, only
// for a while and without effect.
func TestWrongProtocol(t *testing.T) {
	c := newCluster(t, 1, 1, echo, func(cfg *Config) { cfg.FrameTimeout = 200 * time.Millisecond })
	conn := c.rawStream(0).Conn()
	for range 4 {
		s, err := conn.NewStream(within(t, time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write([]byte("\x13/multistream/1.0.0\n\x07/other\n")); err != nil {
			t.Fatal(err)
		}
		_ = s.SetReadDeadline(time.Now().Add(3 * time.Second))
		if _, err := io.ReadAll(s); !errors.Is(err, network.ErrReset) {
			t.Fatal(err)
		}
		_ = s.Reset()
	}
}

// A large frame on a slow line takes longer than FrameTimeout and is no fault.
func TestSlowLine(t *testing.T) {
	c := newCluster(t, 1, 1, echo, func(cfg *Config) { cfg.FrameTimeout = 300 * time.Millisecond })
	s := c.rawStream(0)
	f := frame{kind: kindRequest, id: 1, body: make([]byte, 600<<10)}
	wire := f.appendTo(nil)
	for rest := wire; len(rest) > 0; time.Sleep(50 * time.Millisecond) {
		n := min(len(rest), 48<<10)
		if _, err := s.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	got, err := newFrameReader(s, 1<<20, time.Second).next()
	if err != nil || len(got.body) != len(f.body) {
		t.Fatal(len(got.body), err)
	}
}
