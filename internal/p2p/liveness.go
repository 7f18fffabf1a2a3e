package p2p

import (
	"errors"
	"sync"
	"time"
)

var errSilent = errors.New("the peer does not respond")

// liveness measures the round trip and notices a peer that vanished without
// closing its connection, which TCP alone reports only after minutes.
type liveness struct {
	mu       sync.Mutex
	last     time.Time // last frame of any kind
	pingID   uint64
	pingSent time.Time // zero: no ping under way
	rtt      time.Duration
}

func (l *liveness) heard() {
	l.mu.Lock()
	l.last = time.Now()
	l.mu.Unlock()
}

func (l *liveness) pong(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id == l.pingID && !l.pingSent.IsZero() {
		l.rtt = time.Since(l.pingSent)
		l.pingSent = time.Time{}
	}
}

// check returns the id of a ping to send now, or 0, and whether the peer has
// been silent for timeout since the last ping.
func (l *liveness) check(now time.Time, interval, timeout time.Duration) (ping uint64, dead bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.pingSent.IsZero() {
		// Anything heard counts: a pong may wait behind a large answer.
		return 0, now.Sub(l.pingSent) > timeout && now.Sub(l.last) > timeout
	}
	if now.Sub(l.last) < interval && l.rtt != 0 {
		return 0, false
	}
	l.pingID++
	l.pingSent = now
	return l.pingID, false
}

func (l *liveness) roundTrip() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rtt
}
