package node

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/protocol"
	"github.com/seed-a893640b/tae/protocol/keygen"
)

const (
	// A member in an attempt asks the others again after minPoll, then twice as long
	// each time that nothing is new, up to maxPoll.
	minPoll = 50 * time.Millisecond
	maxPoll = 2 * time.Second
	// callTimeout bounds one message to a member.
	callTimeout = 10 * time.Second
	// maxMessages bounds the messages of one visit to a member.
	maxMessages = 64
	// maxPending bounds the proposals of one member that wait here.
	maxPending = 16
)

// ceremony is this node's part in one attempt.
type ceremony struct {
	attempt *keygen.Attempt
	peers   map[int]string // what the last exchange with a member said, for status
	phases  map[int]keygen.Phase
	busy    map[int]bool // a message to the member is under way
	seen    keygen.Phase // when advance looked last
}

func newCeremony(a *keygen.Attempt) *ceremony {
	return &ceremony{attempt: a, peers: map[int]string{}, phases: map[int]keygen.Phase{}, busy: map[int]bool{}, seen: a.Phase()}
}

// running reports whether the attempt still needs the others.
func (c *ceremony) running() bool {
	p := c.attempt.Phase()
	return p != keygen.Complete && p != keygen.Abandoned
}

// Run drives the attempts until ctx ends: it asks every other member for what this
// node lacks, and tells them what they may lack.
func (n *Node) Run(ctx context.Context, t Transport) {
	var group sync.WaitGroup
	defer group.Wait()
	poll := minPoll
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
			poll = minPoll
		case <-timer.C:
		}
		for _, id := range n.runningAttempts() {
			for peer := range n.cfg.Cluster.Members {
				if peer+1 != n.cfg.Self && n.begin(id, peer+1) {
					group.Go(func() { n.visit(ctx, t, id, peer+1) })
				}
			}
		}
		timer.Reset(poll)
		poll = min(2*poll, maxPoll)
	}
}

// poke makes Run look at once.
func (n *Node) poke() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *Node) runningAttempts() (ids []keygen.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, c := range n.attempts {
		if c.running() {
			ids = append(ids, id)
		}
	}
	return ids
}

// begin claims the one place for messages to peer about the attempt.
func (n *Node) begin(id keygen.ID, peer int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.attempts[id]
	if c == nil || c.busy[peer] {
		return false
	}
	c.busy[peer] = true
	return true
}

// visit exchanges statements with one member and asks for its reveal when it is due.
func (n *Node) visit(ctx context.Context, t Transport, id keygen.ID, peer int) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := n.visitOnce(ctx, t, id, peer)
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.attempts[id]
	if c == nil {
		return
	}
	c.busy[peer] = false
	c.peers[peer] = ""
	if err != nil {
		c.peers[peer] = err.Error()
		n.log.Debug("exchange with member", zap.String("member", n.name(peer)), zap.Error(err))
	}
}

func (n *Node) visitOnce(ctx context.Context, t Transport, id keygen.ID, peer int) error {
	// The first message only says what is in hand; the answer tells what the member
	// has, and the following ones bring it the rest.
	var theirs [][32]byte
	for range maxMessages {
		req := n.exchangeRequest(id, theirs)
		if req == nil {
			return nil
		}
		answer, err := t.Call(ctx, peer, req)
		if err != nil {
			return err
		}
		body, err := protocol.OpenAnswer(answer)
		if err != nil {
			return err
		}
		e, err := readExchange(body)
		if err != nil {
			return err
		}
		if e.id != id {
			return errMember
		}
		n.learn(peer, e)
		progress := len(e.statements) > 0 || !slices.Equal(theirs, e.have)
		if theirs = e.have; !progress || len(e.statements) == 0 && !n.owes(id, theirs) {
			break
		}
	}
	transcript, due := n.revealDue(id, peer)
	if !due {
		return nil
	}
	answer, err := t.Call(ctx, peer, revealRequest(id, transcript))
	if err != nil {
		return err
	}
	body, err := protocol.OpenAnswer(answer)
	if err != nil {
		return err
	}
	n.learnReveal(id, peer, secret.New(body))
	return nil
}

// exchangeRequest carries the statements that the member is known to lack; before
// its first answer that is the proposal, which it may never have seen.
func (n *Node) exchangeRequest(id keygen.ID, theirs [][32]byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.attempts[id]
	if c == nil || !c.running() {
		return nil
	}
	all := c.attempt.Statements()
	e := exchange{id: id, have: digests(all), phase: c.attempt.Phase()}
	for _, s := range lacking(all, theirs) {
		if theirs != nil || s.Kind == keygen.Proposal {
			e.statements = append(e.statements, s)
		}
	}
	return e.append(memberVersion, byte(opExchange))
}

// owes reports whether the member lacks a statement that this node has.
func (n *Node) owes(id keygen.ID, theirs [][32]byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.attempts[id]
	return c != nil && len(lacking(c.attempt.Statements(), theirs)) > 0
}

func (n *Node) revealDue(id keygen.ID, peer int) ([32]byte, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.attempts[id]
	if c == nil || !c.attempt.NeedsReveal(peer) {
		return [32]byte{}, false
	}
	return c.attempt.Transcript()
}

func (n *Node) learnReveal(id keygen.ID, peer int, reveal secret.Bytes) {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer reveal.Wipe()
	c := n.attempts[id]
	if c == nil {
		return
	}
	if err := c.attempt.AddReveal(peer, reveal); err != nil {
		n.log.Warn("reveal refused", zap.String("member", n.name(peer)), zap.Error(err))
	}
	n.advance(id)
}

// learn takes what a member said.
func (n *Node) learn(peer int, e *exchange) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.learnLocked(peer, e)
}

func (n *Node) learnLocked(peer int, e *exchange) {
	c := n.attempts[e.id]
	if c == nil {
		return
	}
	c.phases[peer] = e.phase
	for _, s := range e.statements {
		if _, err := c.attempt.Add(s); err != nil {
			n.log.Warn("statement refused", zap.String("from", n.name(peer)), zap.Error(err))
		}
	}
	if e.cert != nil {
		changed, err := c.attempt.Adopt(e.cert)
		if err != nil {
			n.log.Warn("certificate refused", zap.String("from", n.name(peer)), zap.Error(err))
		}
		if changed && !n.store(e.id) {
			return
		}
	}
	n.advance(e.id)
}

// advance goes on with an attempt as far as it can. Callers hold mu.
func (n *Node) advance(id keygen.ID) {
	c := n.attempts[id]
	changed, err := c.attempt.Step()
	if c.attempt.ShouldAbandon() {
		n.log.Error("attempt given up", zap.String("attempt", id.String()), zap.Error(err))
		if err := c.attempt.Abandon(); err == nil {
			changed = true
		}
	}
	if changed && !n.store(id) {
		return
	}
	if after := c.attempt.Phase(); after != c.seen {
		c.seen = after
		n.log.Info("key generation", zap.String("keyset", c.attempt.Terms().Name), zap.Uint16("epoch", id.Epoch), zap.Stringer("phase", after))
		if after == keygen.Complete {
			n.rebuild()
		}
		n.poke()
	}
}

// store writes an attempt's state. When the disk fails, nothing that depends on the
// new state may be said: the node goes back to what is stored, and tries again
// later. Callers hold mu.
func (n *Node) store(id keygen.ID) bool {
	c := n.attempts[id]
	err := save(n.cfg.Sealer, c.attempt)
	if err == nil {
		return true
	}
	n.log.Error("cannot store keys", zap.String("file", fileOf(id)), zap.Error(err))
	old, err := loadKeyset(n.cfg.Sealer, id, n.cfg.Self, n.cfg.Key)
	if err != nil {
		delete(n.attempts, id)
		n.damaged[id] = err.Error()
		n.rebuild()
		return false
	}
	c.attempt = old
	if old.Phase() == keygen.Complete {
		n.rebuild() // the write did reach the disk after all
	}
	return false
}

// handleExchange answers a member's exchange, and takes a proposal that is new.
func (n *Node) handleExchange(from int, e *exchange) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.attempts[e.id] == nil {
		if err := n.takeProposal(from, e); err != nil {
			return refusal(protocol.CodeDenied, "proposal refused: %v", err)
		}
	}
	if n.attempts[e.id] == nil {
		if p := n.pending[e.id]; p != nil {
			return okAnswer((&exchange{id: e.id, have: digests([]*keygen.Statement{p.statement})}).append(0, 0)[2:])
		}
		return refusal(protocol.CodeUnknownKeyset, "no %v here", e.id)
	}
	n.learnLocked(from, e)
	c := n.attempts[e.id]
	if c == nil {
		return refusal(protocol.CodeNotServing, "the keyset's file cannot be used here")
	}
	all := c.attempt.Statements()
	answer := exchange{id: e.id, have: digests(all), statements: lacking(all, e.have), phase: c.attempt.Phase()}
	if answer.phase == keygen.Complete {
		answer.cert = c.attempt.Certificate()
	}
	return okAnswer(answer.append(0, 0)[2:])
}

func (n *Node) handleReveal(from int, id keygen.ID, transcript [32]byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.attempts[id]
	if c == nil {
		return refusal(protocol.CodeUnknownKeyset, "no %v here", id)
	}
	r, err := c.attempt.Reveal(from, transcript)
	if err != nil {
		return refusal(protocol.CodeNotServing, "%v", err)
	}
	return revealAnswer(r)
}
