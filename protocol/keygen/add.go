package keygen

import (
	"fmt"

	"github.com/seed-a893640b/tae/sig"
)

// Add takes a statement, whoever brought it. It reports whether it was new. An
// error about the statement's form or signature says nothing about its sender, who
// may not have made it; a *FaultError does and is kept.
func (a *Attempt) Add(s *Statement) (bool, error) {
	if s.ID != IDOf(a.terms) || s.Sender > a.terms.N {
		return false, errStatement
	}
	old := a.statements[s.Kind][s.Sender]
	if old != nil && old.Signature == s.Signature && old.Digest() == s.Digest() {
		return false, nil
	}
	if !s.Verify(a.terms.Members[s.Sender-1]) {
		return false, fmt.Errorf("keygen: bad signature on a %v of node %d", s.Kind, s.Sender)
	}
	if s.Terms != a.session.Proposal && s.Kind != Abandon {
		return false, a.otherTerms(s)
	}
	if old != nil {
		if old.Digest() != s.Digest() && s.Kind != Proposal && s.Kind != Abandon {
			return false, a.blame(s.Sender, fmt.Sprintf("signed two different %vs", s.Kind))
		}
		return false, nil
	}
	if err := a.checkForm(s); err != nil {
		return false, err
	}
	a.statements[s.Kind][s.Sender] = s
	if s.Kind >= GroupKeys {
		return true, a.feed(s)
	}
	return true, nil
}

// otherTerms judges a statement for other terms of the same attempt. Only a
// proposer that signed two proposals is proven wrong: a member may have been shown
// the other one.
func (a *Attempt) otherTerms(s *Statement) error {
	if s.Kind == Proposal {
		if a.statements[Proposal][s.Sender] != nil {
			return a.blame(s.Sender, "signed two different proposals for one attempt")
		}
		return errStatement // a competing proposal, which nobody has to follow
	}
	return a.blame(0, fmt.Sprintf("node %d works under other terms: two proposals were made for one attempt", s.Sender))
}

func (a *Attempt) checkForm(s *Statement) error {
	if a.tae3() || s.Kind >= GroupKeys {
		return a.checkForm3(s)
	}
	held := len(a.layout.HeldBy(s.Sender))
	want := map[Kind]int{Proposal: len(s.Payload), Commit: 32 * held, Check: 32 + 32*held, Certify: sig.Size, Abandon: 0}[s.Kind]
	if len(s.Payload) != want {
		return a.blame(s.Sender, fmt.Sprintf("signed a malformed %v", s.Kind))
	}
	return nil
}

func (a *Attempt) blame(node int, reason string) error {
	if a.fault == nil && a.phase < Complete {
		a.fault = &FaultError{Node: node, Reason: reason}
	}
	return &FaultError{Node: node, Reason: reason}
}
