package p2p

import (
	"io"
	"slices"
	"sync"
	"time"
)

// An outbox batches the frames that many goroutines send on one stream. Whoever
// adds a frame while nobody writes becomes the writer, so that a lone request
// costs no hand-over to another goroutine; frames added meanwhile leave together
// in the next Write.
type outbox struct {
	w     io.Writer
	wake  chan struct{} // the background writer takes over
	broke func(error)   // called once, with the first write error

	pool *sync.Pool // of *[]byte, shared by the host's outboxes

	mu      sync.Mutex
	drained sync.Cond // on mu: buf became shorter or the outbox closed
	held    *[]byte   // from the pool; *held is the queue, nil when it is empty
	writing bool
	since   time.Time // when the Write under way began, or was due
	closed  bool
}

func newOutbox(w io.Writer, pool *sync.Pool, broke func(error)) *outbox {
	o := &outbox{w: w, wake: make(chan struct{}, 1), broke: broke, pool: pool}
	o.drained.L = &o.mu
	return o
}

// add queues a frame. With inline it may write in the calling goroutine, which
// then waits as long as the stream takes no data.
func (o *outbox) add(f *frame, inline bool) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return
	}
	if o.held == nil {
		if o.held, _ = o.pool.Get().(*[]byte); o.held == nil {
			o.held = new([]byte)
		}
	}
	*o.held = f.appendTo(slices.Grow(*o.held, f.size()))
	if o.writing {
		o.mu.Unlock()
		return
	}
	o.writing, o.since = true, time.Now()
	o.mu.Unlock()
	if !inline || o.writeOnce() {
		select {
		case o.wake <- struct{}{}:
		default:
		}
	}
}

// run is the background writer; it ends when done does.
func (o *outbox) run(done <-chan struct{}) {
	for {
		select {
		case <-o.wake:
			for o.writeOnce() {
			}
		case <-done:
			return
		}
	}
}

// writeOnce writes what is queued and reports whether more was added meanwhile.
// Only the goroutine that set writing may call it.
func (o *outbox) writeOnce() (more bool) {
	o.mu.Lock()
	held := o.held
	o.held = nil
	if held == nil { // closed meanwhile
		o.writing = false
		o.mu.Unlock()
		return false
	}
	o.drained.Broadcast()
	o.mu.Unlock()

	var err error
	for rest := *held; len(rest) > 0 && err == nil; {
		n := min(len(rest), maxWrite)
		_, err = o.w.Write(rest[:n])
		rest = rest[n:]
		o.mu.Lock()
		o.since = time.Now()
		o.mu.Unlock()
	}

	*held = (*held)[:0]
	o.pool.Put(held)
	o.mu.Lock()
	if err != nil {
		o.closed, o.held = true, nil
		o.drained.Broadcast()
	}
	more = o.held != nil
	o.writing = more
	o.mu.Unlock()
	if err != nil {
		o.broke(err)
	}
	return more
}

// idle reports whether everything queued has been handed to the stream.
func (o *outbox) idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.writing || o.closed
}

// buffered returns the bytes queued and not yet handed to the stream.
func (o *outbox) buffered() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queued()
}

func (o *outbox) queued() int {
	if o.held == nil {
		return 0
	}
	return len(*o.held)
}

// waitBelow waits until at most limit bytes are queued or the outbox is closed.
func (o *outbox) waitBelow(limit int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.queued() > limit && !o.closed {
		o.drained.Wait()
	}
}

// stuck reports whether one Write, of at most maxWrite, is under way since before t.
func (o *outbox) stuck(t time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writing && o.since.Before(t)
}

func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed, o.held = true, nil
	o.drained.Broadcast()
}
