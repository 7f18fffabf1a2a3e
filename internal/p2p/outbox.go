package p2p

import (
	"io"
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

	mu      sync.Mutex
	drained sync.Cond // on mu: buf became shorter or the outbox closed
	buf     []byte    // frames nobody writes yet
	spare   []byte    // the last written buffer, for reuse
	writing bool
	since   time.Time // when the Write under way began
	closed  bool
}

// keepBuffer is the largest buffer kept for reuse.
const keepBuffer = 256 << 10

func newOutbox(w io.Writer, broke func(error)) *outbox {
	o := &outbox{w: w, wake: make(chan struct{}, 1), broke: broke}
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
	o.buf = f.appendTo(o.buf)
	if o.writing {
		o.mu.Unlock()
		return
	}
	o.writing = true
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
	b := o.buf
	o.buf, o.spare = o.spare[:0], nil
	o.since = time.Now()
	o.drained.Broadcast()
	o.mu.Unlock()

	var err error
	for rest := b; len(rest) > 0 && err == nil; {
		n := min(len(rest), maxWrite)
		_, err = o.w.Write(rest[:n])
		rest = rest[n:]
	}

	o.mu.Lock()
	if cap(b) <= keepBuffer {
		o.spare = b
	}
	if err != nil {
		o.closed, o.buf = true, nil
		o.drained.Broadcast()
	}
	more = len(o.buf) > 0
	o.writing = more
	o.mu.Unlock()
	if err != nil {
		o.broke(err)
	}
	return more
}

// buffered returns the bytes queued and not yet handed to the stream.
func (o *outbox) buffered() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.buf)
}

// waitBelow waits until at most limit bytes are queued or the outbox is closed.
func (o *outbox) waitBelow(limit int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.buf) > limit && !o.closed {
		o.drained.Wait()
	}
}

// stuck reports whether a Write has been under way since before t.
func (o *outbox) stuck(t time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writing && !o.since.IsZero() && o.since.Before(t)
}

func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed, o.buf = true, nil
	o.drained.Broadcast()
}
