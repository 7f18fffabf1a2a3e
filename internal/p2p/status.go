package p2p

import (
	"cmp"
	"crypto/ed25519"
	"slices"
	"time"

	"go.uber.org/zap"
)

// Addrs returns the multiaddrs the host listens on, without /p2p; a port 0 of the
// configuration is the one the system chose.
func (h *Host) Addrs() []string {
	var out []string
	for _, a := range h.swarm.ListenAddresses() {
		out = append(out, a.String())
	}
	slices.Sort(out)
	return out
}

// Peers returns the state of the connection to every other node, by index.
func (h *Host) Peers() []PeerStatus {
	out := make([]PeerStatus, 0, len(h.links))
	for _, l := range h.links {
		l.mu.Lock()
		st := PeerStatus{Index: l.peer.Index, Name: l.peer.Name, LastErr: l.lastErr}
		if s := l.cur; s != nil && !s.ended() {
			st.Connected, st.LastErr = true, nil
			st.Addr = s.stream.Conn().RemoteMultiaddr().String()
			st.RTT = s.live.roundTrip()
		}
		l.mu.Unlock()
		out = append(out, st)
	}
	slices.SortFunc(out, func(a, b PeerStatus) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

// SetClients replaces the set of clients that may connect, and ends the
// connections of those that no longer may. On an error nothing changes.
func (h *Host) SetClients(keys []ed25519.PublicKey) error {
	removed, err := h.gate.setClients(keys)
	for _, id := range removed {
		if _, still := h.gate.caller(id); !still {
			_ = h.swarm.ClosePeer(id)
		}
	}
	return err
}

// enter counts a goroutine in, unless the host is closing.
func (h *Host) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.wg.Add(1)
	return true
}

// track records a stream and returns the one it replaces on its connection.
func (h *Host) track(st *inbound) (old *inbound) {
	h.mu.Lock()
	defer h.mu.Unlock()
	conn := st.stream.Conn()
	old = h.inbound[conn]
	h.inbound[conn] = st
	return old
}

func (h *Host) untrack(st *inbound) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if conn := st.stream.Conn(); h.inbound[conn] == st {
		delete(h.inbound, conn)
	}
}

// quotaOf returns the quota that all streams of one peer share. There are as many
// as peers were ever configured.
func (h *Host) quotaOf(c Caller) *quota {
	h.mu.Lock()
	defer h.mu.Unlock()
	q := h.quotas[c.Key]
	if q == nil {
		// A quarter of the workers is never one peer's, so that others get on.
		q = &quota{turns: make(chan struct{}, max(1, h.cfg.Workers-h.cfg.Workers/4))}
		h.quotas[c.Key] = q
	}
	return q
}

// watch probes silent nodes and ends streams whose reader is stuck.
func (h *Host) watch() {
	t := time.NewTicker(max(h.cfg.PingInterval/4, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case now := <-t.C:
			h.watchOnce(now)
		}
	}
}

func (h *Host) watchOnce(now time.Time) {
	for _, l := range h.links {
		l.mu.Lock()
		s := l.cur
		l.mu.Unlock()
		if s == nil {
			continue
		}
		ping, dead := s.live.check(now, h.cfg.PingInterval, h.cfg.PingTimeout)
		// A probe may wait behind a large request of our own that makes progress.
		if (dead && (s.out.idle() || s.out.stuck(now.Add(-h.cfg.PingTimeout)))) || s.out.stuck(now.Add(-h.cfg.FrameTimeout)) {
			s.end(errSilent)
		} else if ping != 0 {
			s.out.add(&frame{kind: kindPing, id: ping}, false)
		}
	}
	for _, st := range h.streams() {
		if !st.out.stuck(now.Add(-h.cfg.FrameTimeout)) {
			continue
		}
		h.log.Warn("stream reset: the peer does not read its answers", zap.String("identity", identity(st.stream.Conn().RemotePeer())))
		st.close()
	}
}
