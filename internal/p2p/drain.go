package p2p

import (
	"context"
	"time"
)

// drainPing is the id of the probe that follows the last answers.
const drainPing = 1<<64 - 1

// Drain answers all further requests busy and returns when the callers have
// received the answers to those under way, or with ctx's error. Close usually
// follows. A caller that responds to nothing delays it by PingTimeout at most.
func (h *Host) Drain(ctx context.Context) error {
	h.drain.Store(true)
	if err := poll(ctx, h.idle); err != nil {
		return err
	}
	// A written answer may still be in a queue, which Close would drop. Frames keep
	// their order, so a response to a later one shows that it has arrived.
	streams := h.streams()
	for _, st := range streams {
		st.out.add(&frame{kind: kindPing, id: drainPing}, false)
	}
	limit, cancel := context.WithTimeout(ctx, h.cfg.PingTimeout)
	defer cancel()
	_ = poll(limit, func() bool {
		for _, st := range streams {
			if !st.drained.Load() && st.ctx.Err() == nil {
				return false
			}
		}
		return true
	})
	return ctx.Err()
}

// poll waits until done returns true.
func poll(ctx context.Context, done func() bool) error {
	t := time.NewTicker(time.Millisecond)
	defer t.Stop()
	for !done() {
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// streams returns the streams that peers have open to this host.
func (h *Host) streams() (out []*inbound) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, st := range h.inbound {
		out = append(out, st)
	}
	return out
}

// idle reports whether no request is in progress and every answer is written.
func (h *Host) idle() bool {
	if h.unanswered.Load() > 0 {
		return false
	}
	for _, st := range h.streams() {
		if !st.out.idle() {
			return false
		}
	}
	return true
}
