package frame

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls f for 0..n-1 on as many goroutines as GOMAXPROCS allows, its own
// among them, and returns when all are done. worker is called once per goroutine
// and returns an f with buffers of its own, and what to do at the end. Indices
// are handed out one by one, in order.
func Each(n int, worker func() (f func(i int), done func())) {
	if n == 0 {
		return
	}
	var next atomic.Int64
	run := func() {
		f, done := worker()
		defer done()
		for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
			f(int(i))
		}
	}
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) - 1 {
		wg.Go(run)
	}
	run()
	wg.Wait()
}
