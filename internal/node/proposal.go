package node

import (
	"crypto/rand"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/protocol"
	"github.com/seed-a893640b/tae/protocol/keygen"
)

// takeProposal keeps a valid new proposal for the operator, or accepts it at once.
// Callers hold mu.
func (n *Node) takeProposal(from int, e *exchange) error {
	for _, s := range e.statements {
		if s.Kind != keygen.Proposal || s.ID != e.id || n.pending[e.id] != nil {
			continue
		}
		terms, err := keygen.OpenProposal(s)
		if err == nil {
			err = n.checkTerms(terms, n.cfg.AllowOne)
		}
		if err == nil && n.waiting(s.Sender) >= maxPending {
			err = errors.New("too many proposals of this member wait here")
		}
		if err != nil {
			n.logOnce("proposal refused", e.id, err, zap.String("from", n.name(from)))
			return err
		}
		n.pending[e.id] = &proposal{s, terms}
		n.log.Info("proposal", zap.String("keyset", terms.Name), zap.String("from", n.name(s.Sender)), zap.Int("n", terms.N), zap.Int("t", terms.T),
			zap.Bool("auto_accept", n.cfg.AutoAccept))
	}
	// Also a proposal that is known: the disk may have been full the last time.
	if p := n.pending[e.id]; p != nil && n.cfg.AutoAccept {
		if err := n.accept(e.id); err != nil {
			n.logOnce("cannot accept", e.id, err, zap.String("keyset", p.terms.Name))
			return err
		}
	}
	return nil
}

// waiting counts the proposals of one member that wait for the operator: no member can
// take the places of the others. Callers hold mu.
func (n *Node) waiting(sender int) (count int) {
	for _, p := range n.pending {
		if p.statement.Sender == sender {
			count++
		}
	}
	return count
}

// logOnce logs a failure that is tried again and again only when it changes. Callers
// hold mu.
func (n *Node) logOnce(what string, id keygen.ID, err error, fields ...zap.Field) {
	if n.lastError == nil || len(n.lastError) > maxPending {
		n.lastError = map[keygen.ID]string{}
	}
	if text := what + err.Error(); n.lastError[id] != text {
		n.lastError[id] = text
		n.log.Warn(what, append(fields, zap.Error(err))...)
	}
}

// checkTerms checks what this node insists on in any proposal. Callers hold mu.
func (n *Node) checkTerms(t *protocol.Terms, allowOne bool) error {
	if err := t.Validate(allowOne); err != nil {
		return err
	}
	if t.Version != 1 || t.Generation > 1 {
		return errors.New("a new keyset starts with version 1 and the first generation")
	}
	if t.Epoch != 1 {
		return errors.New("this version makes only the first epoch of a keyset")
	}
	keys := n.cfg.Cluster.MemberKeys()
	if len(keys) != t.N {
		return fmt.Errorf("the proposal has %d members, the cluster file here %d", t.N, len(keys))
	}
	for i := range keys {
		if keys[i] != t.Members[i] {
			return fmt.Errorf("the proposal has another key for %s than the cluster file here", n.name(i+1))
		}
	}
	id := keygen.IDOf(t)
	for other, c := range n.attempts {
		if other.Keyset == id.Keyset && other != id && c.attempt.Phase() == keygen.Abandoned {
			continue
		}
		if other != id && (other.Keyset == id.Keyset || c.attempt.Terms().Name == t.Name && c.attempt.Phase() != keygen.Abandoned) {
			return fmt.Errorf("%w: %s", ErrNameTaken, t.Name)
		}
	}
	for other := range n.damaged {
		if other.Keyset == id.Keyset {
			return fmt.Errorf("the keyset's file here is damaged")
		}
	}
	return n.checkPrevious(id)
}

// checkPrevious insists that the attempt before this one is over for certain: all
// members have signed that they abandon it.
func (n *Node) checkPrevious(id keygen.ID) error {
	if id.Attempt == 1 {
		return nil
	}
	previous := id
	previous.Attempt--
	if c := n.attempts[previous]; c == nil || c.attempt.Phase() != keygen.Abandoned {
		return fmt.Errorf("attempt %d is not abandoned by all members", previous.Attempt)
	}
	return nil
}

// accept starts this node's part. Callers hold mu.
func (n *Node) accept(id keygen.ID) error {
	p := n.pending[id]
	seed := make([]byte, 32)
	_, _ = rand.Read(seed)
	a, err := keygen.Start(p.statement, n.cfg.Self, n.cfg.Key, secret.New(seed))
	if err != nil {
		return err
	}
	if err := save(n.cfg.Sealer, a); err != nil {
		return fmt.Errorf("%s: %w", fileOf(id), err)
	}
	// Before the index lists it, a file that goes missing is not noticed; a crash
	// here is mended at the next start.
	n.index[id] = p.terms.Name
	if err := n.index.save(n.cfg.Sealer); err != nil {
		n.log.Error("cannot store the index", zap.Error(err))
	}
	delete(n.pending, id)
	n.attempts[id] = newCeremony(a)
	n.poke()
	return nil
}
