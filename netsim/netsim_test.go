package netsim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func echo(_ context.Context, _ Caller, req []byte) []byte { return req }

var client = Caller{Key: [32]byte{9}}

// one returns a network with one echo node and a client's connection.
func one(f Faults) (*Network, *Conn) {
	n := New(1)
	n.AddNode(1, [32]byte{1}, echo)
	n.SetFaults(f)
	return n, n.Dial(client)
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := one(Faults{Latency: 30 * time.Millisecond})
		n.AddNode(2, [32]byte{2}, func(_ context.Context, from Caller, req []byte) []byte {
			return fmt.Append(req, from.Key[0], from.Node)
		})
		start := time.Now()
		req := []byte("hello")
		got, err := c.Call(t.Context(), 2, req)
		if err != nil || string(got) != "hello9 0" || time.Since(start) != 60*time.Millisecond {
			t.Fatalf("%q, %v, %v", got, err, time.Since(start))
		}
		start = time.Now()
		got, err = n.Dial(Caller{Key: [32]byte{2}, Node: 2}).Call(t.Context(), 2, nil)
		if err != nil || string(got) != "2 2" || time.Since(start) != 0 {
			t.Fatalf("self: %q, %v", got, err)
		}
		if got, err = c.Call(t.Context(), 1, req); err != nil {
			t.Fatal(err)
		}
		if &got[0] == &req[0] {
			t.Fatal("the answer aliases the request")
		}
	})
}

func TestErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := one(Faults{Latency: time.Second})
		start := time.Now()
		if _, err := c.Call(t.Context(), 7, nil); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "node 7") || time.Since(start) != 0 {
			t.Fatal(err)
		}
		_, err := c.Call(within(t, 1500*time.Millisecond), 1, nil)
		if !errors.Is(err, ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 1500*time.Millisecond {
			t.Fatal(err)
		}
		// the answer comes at the very instant of the deadline: always late
		for range 50 {
			if _, err := c.Call(within(t, 2*time.Second), 1, nil); !errors.Is(err, ErrTimeout) {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if _, err := c.Call(ctx, 1, nil); !errors.Is(err, context.Canceled) || errors.Is(err, ErrTimeout) {
			t.Fatal(err)
		}
		if n.Counts().Calls != 53 || n.Counts().Unreachable != 1 {
			t.Fatalf("%+v", n.Counts())
		}
	})
}

func TestHandlerContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := one(Faults{})
		var ended atomic.Int32
		wait := func(ctx context.Context, _ Caller, _ []byte) []byte { <-ctx.Done(); ended.Add(1); return nil }
		n.AddNode(2, [32]byte{2}, wait)
		if _, err := c.Call(within(t, time.Minute), 2, nil); !errors.Is(err, ErrTimeout) {
			t.Fatal(err)
		}
		time.AfterFunc(time.Hour, func() { n.Crash(2) })
		if _, err := c.Call(t.Context(), 2, nil); !errors.Is(err, ErrUnreachable) {
			t.Fatal(err)
		}
		synctest.Wait()
		if ended.Load() != 2 {
			t.Fatal("handlers still run:", 2-ended.Load())
		}
	})
}

func TestLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := one(Faults{})
		var handled atomic.Int32
		n.AddNode(1, [32]byte{1}, func(_ context.Context, _ Caller, req []byte) []byte { handled.Add(1); return req })
		n.SetFaults(Faults{LoseRequest: 1})
		if _, err := c.Call(within(t, time.Second), 1, nil); !errors.Is(err, ErrTimeout) || handled.Load() != 0 {
			t.Fatal(err, handled.Load())
		}
		n.SetFaults(Faults{LoseAnswer: 1})
		if _, err := c.Call(within(t, time.Second), 1, nil); !errors.Is(err, ErrTimeout) || handled.Load() != 1 {
			t.Fatal(err, handled.Load())
		}
		n.SetFaults(Faults{LoseRequest: 0.3})
		lost := 0
		for i := range 1000 {
			if _, err := c.Call(within(t, time.Second), 1, fmt.Append(nil, i)); err != nil {
				lost++
			}
		}
		if k := n.Counts(); k.LostRequests != lost+1 || k.LostAnswers != 1 || lost < 250 || lost > 350 {
			t.Fatalf("%d, %+v", lost, k)
		}
		// the same bytes again are a new attempt with a fate of its own
		tries := 0
		for ; tries < 100; tries++ {
			if _, err := c.Call(within(t, time.Second), 1, []byte("again")); err == nil && tries > 0 {
				break
			}
		}
		if tries == 100 {
			t.Fatal("a retry never succeeds")
		}
	})
}

func TestDuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := one(Faults{})
		var handled atomic.Int32
		n.AddNode(1, [32]byte{1}, func(_ context.Context, _ Caller, req []byte) []byte {
			handled.Add(1)
			clear(req) // it owns its copy
			return []byte("ok")
		})
		n.SetFaults(Faults{Latency: time.Second, Duplicate: 1})
		if got, err := c.Call(t.Context(), 1, []byte("x")); err != nil || string(got) != "ok" {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if handled.Load() != 2 || n.Counts().Duplicates != 1 {
			t.Fatal(handled.Load(), n.Counts())
		}
	})
}

func TestCorrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := one(Faults{})
		req := bytes.Repeat([]byte{0}, 100)
		differ := func(f Faults) int {
			n.SetFaults(f)
			got, err := c.Call(t.Context(), 1, req)
			if err != nil || len(got) != len(req) {
				t.Fatal(err)
			}
			ones := 0
			for _, b := range got {
				ones += bits.OnesCount8(b)
			}
			return ones
		}
		if r, a := differ(Faults{CorruptRequest: 1}), differ(Faults{CorruptAnswer: 1}); r != 1 || a != 1 {
			t.Fatal(r, a)
		}
		if k := n.Counts(); k.CorruptedRequests != 1 || k.CorruptedAnswers != 1 {
			t.Fatalf("%+v", k)
		}
		if !bytes.Equal(req, make([]byte, 100)) {
			t.Fatal("the caller's request changed")
		}
	})
}

func TestPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := one(Faults{Latency: 10 * time.Millisecond})
		n.AddNode(2, [32]byte{2}, echo)
		n2 := n.Dial(Caller{Key: [32]byte{2}, Node: 2})
		n.Partition([]int{1}, []int{2, 0})
		start := time.Now()
		_, err := c.Call(t.Context(), 1, nil)
		if d := time.Since(start); !errors.Is(err, ErrUnreachable) || d != DetectAfter+10*time.Millisecond {
			t.Fatal(err, d)
		}
		if _, err := n2.Call(within(t, time.Second), 1, nil); !errors.Is(err, ErrTimeout) {
			t.Fatal(err)
		}
		if _, err := c.Call(t.Context(), 2, nil); err != nil {
			t.Fatal(err)
		}
		n.Heal()
		if _, err := c.Call(t.Context(), 1, nil); err != nil {
			t.Fatal(err)
		}
		// one that falls between request and answer
		time.AfterFunc(15*time.Millisecond, func() { n.Partition([]int{1}, []int{0}) })
		if _, err := c.Call(t.Context(), 1, nil); !errors.Is(err, ErrUnreachable) {
			t.Fatal(err)
		}
		if n.Counts().Partitioned != 3 {
			t.Fatalf("%+v", n.Counts())
		}
	})
}

func TestCrashRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := one(Faults{Latency: time.Second})
		time.AfterFunc(500*time.Millisecond, func() { n.Crash(1) })
		start := time.Now()
		if _, err := c.Call(t.Context(), 1, nil); !errors.Is(err, ErrUnreachable) || time.Since(start) != 500*time.Millisecond {
			t.Fatal(err)
		}
		if _, err := c.Call(t.Context(), 1, nil); !errors.Is(err, ErrUnreachable) {
			t.Fatal(err)
		}
		n.Crash(1) // twice is once
		n.Restart(1, func(context.Context, Caller, []byte) []byte { return []byte("new") })
		if got, err := c.Call(t.Context(), 1, nil); err != nil || string(got) != "new" {
			t.Fatal(err)
		}
	})
}

func TestSlowAndLie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := one(Faults{})
		n.Slow(1, time.Hour)
		n.Lie(1, func(req, resp []byte) []byte { return append(resp, req...) })
		start := time.Now()
		got, err := c.Call(t.Context(), 1, []byte("ab"))
		if err != nil || string(got) != "abab" || time.Since(start) != time.Hour {
			t.Fatal(got, err)
		}
		n.Lie(1, nil)
		if got, _ := c.Call(t.Context(), 1, []byte("ab")); string(got) != "ab" {
			t.Fatalf("%q", got)
		}
		if k := n.Counts(); k.Slowed != 2 || k.Lies != 1 {
			t.Fatalf("%+v", k)
		}
	})
}

// 20 operations at once on 20 nodes, with every random fault, repeat exactly.
func TestDeterminism(t *testing.T) {
	var first string
	for run := range 20 {
		synctest.Test(t, func(t *testing.T) {
			n := New(42)
			for i := 1; i <= 20; i++ {
				n.AddNode(i, [32]byte{byte(i)}, echo)
			}
			n.SetFaults(Faults{Latency: 5 * time.Millisecond, Jitter: 40 * time.Millisecond, LoseRequest: 0.1,
				LoseAnswer: 0.1, Duplicate: 0.1, CorruptRequest: 0.1, CorruptAnswer: 0.1})
			n.SetNodeFaults(20, Faults{Latency: 300 * time.Millisecond})
			n.Slow(3, 70*time.Millisecond)
			var results [20][20]string
			var wg sync.WaitGroup
			start := time.Now()
			for op := range 20 {
				c := n.Dial(Caller{Key: [32]byte{byte(op), 1}})
				for to := 1; to <= 20; to++ {
					wg.Go(func() {
						for try := range 3 {
							got, err := c.Call(within(t, 200*time.Millisecond), to, fmt.Append(nil, "op", op))
							results[op][to-1] += fmt.Sprintf("%d:%s:%v:%v;", try, got, err, time.Since(start))
							if err == nil {
								break
							}
						}
					})
				}
			}
			wg.Wait()
			time.Sleep(time.Minute) // late duplicates
			all := fmt.Sprintf("%v %+v", results, n.Counts())
			if k := n.Counts(); k.LostRequests == 0 || k.LostAnswers == 0 || k.Duplicates == 0 || k.CorruptedRequests == 0 || k.CorruptedAnswers == 0 {
				t.Fatalf("%+v", k)
			}
			if run == 0 {
				first = all
			} else if all != first {
				t.Fatalf("run %d differs", run)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // the control: another seed, another run
		n := New(43)
		n.AddNode(1, [32]byte{1}, echo)
		n.SetFaults(Faults{Jitter: time.Hour})
		m := New(42)
		m.AddNode(1, [32]byte{1}, echo)
		m.SetFaults(Faults{Jitter: time.Hour})
		start := time.Now()
		_, _ = n.Dial(client).Call(t.Context(), 1, nil)
		a := time.Since(start)
		start = time.Now()
		_, _ = m.Dial(client).Call(t.Context(), 1, nil)
		if b := time.Since(start); a == b {
			t.Fatal("the seed has no effect")
		}
	})
}

func TestReorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := one(Faults{Jitter: time.Second})
		var order []int
		var mu sync.Mutex
		n.AddNode(1, [32]byte{1}, func(_ context.Context, _ Caller, req []byte) []byte {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, int(req[0]))
			return nil
		})
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() { _, _ = c.Call(t.Context(), 1, []byte{byte(i)}) })
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		swapped := 0
		for i := 1; i < len(order); i++ {
			if order[i] < order[i-1] {
				swapped++
			}
		}
		if len(order) != 20 || swapped == 0 {
			t.Fatal(order)
		}
	})
}

// Minutes of simulated time cost milliseconds.
func TestSimulatedTimeIsCheap(t *testing.T) {
	real := time.Now()
	synctest.Test(t, func(t *testing.T) {
		_, c := one(Faults{Latency: time.Second, LoseRequest: 0.5})
		start := time.Now()
		for i := range 100 {
			_, _ = c.Call(within(t, 10*time.Second), 1, fmt.Append(nil, i))
		}
		if d := time.Since(start); d < 5*time.Minute {
			t.Fatal(d)
		}
	})
	if d := time.Since(real); d > 2*time.Second {
		t.Fatal("took", d)
	}
}
