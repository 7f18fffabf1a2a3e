package keygen

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/labelhash"
	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/protocol"
	"github.com/seed-a893640b/tae/protocol/dkg"
	"github.com/seed-a893640b/tae/sig"
)

const (
	labelContribution = "tae/v1/keygen/contribution"
	labelTranscript   = "tae/v1/keygen/transcript"
)

// Phase is how far a member is in an attempt.
type Phase uint8

// A member waits in each phase for what its name says.
const (
	AwaitCommits      Phase = 1
	AwaitReveals      Phase = 2
	AwaitChecks       Phase = 3
	AwaitCertificates Phase = 4
	Complete          Phase = 5
	Abandoning        Phase = 6 // signed abandon, waits for the others'
	Abandoned         Phase = 7 // all abandon statements in hand, keys erased
)

var phaseNames = [...]string{AwaitCommits: "waiting for commitments", AwaitReveals: "waiting for reveals", AwaitChecks: "waiting for key checks",
	AwaitCertificates: "waiting for signatures", Complete: "complete", Abandoning: "abandoning", Abandoned: "abandoned"}

func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return fmt.Sprintf("phase %d", uint8(p))
}

// A FaultError says what broke the protocol. Before this member has certified, the
// attempt cannot succeed any more; afterwards it still may.
// Node is the member that is proven to have done it, 0 where that cannot be told:
// a third member may have shown two members different things.
type FaultError struct {
	Node   int
	Reason string
}

func (e *FaultError) Error() string {
	if e.Node == 0 {
		return e.Reason
	}
	return fmt.Sprintf("node %d %s", e.Node, e.Reason)
}

// An Attempt is one member's part in making one epoch's keys. Not safe for
// concurrent use.
//
// The caller must store Marshal's bytes durably whenever Step or Abandon reports
// a change, before it lets any other member see Statements or Reveal again: what a
// member has said it must still know after a crash.
type Attempt struct {
	terms   *protocol.Terms
	layout  *dprf.Layout
	session dprf.Session
	self    int
	key     ed25519.PrivateKey

	phase      Phase
	seed       secret.Bytes // of the own contributions
	statements [kinds][]*Statement
	revealed   []map[int]secret.Bytes // per sender, by key number
	keys       []secret.Bytes         // held, in order
	cert       *protocol.Certificate
	fault      *FaultError

	run *dkg.Run // TAE3: the distributed key generation, until it is complete
}

// Start accepts a proposal. The seed is 32 fresh random bytes. The state must be
// stored before the first statement leaves.
func Start(proposal *Statement, self int, key ed25519.PrivateKey, seed secret.Bytes) (*Attempt, error) {
	terms, err := OpenProposal(proposal)
	if err != nil {
		return nil, err
	}
	if self < 1 || self > terms.N || terms.Members[self-1] != [32]byte(key.Public().(ed25519.PublicKey)) {
		return nil, errors.New("keygen: the terms name another key for this node")
	}
	if seed.Len() != 32 {
		return nil, errors.New("keygen: the seed must have 32 bytes")
	}
	a := newAttempt(terms, self, key)
	a.phase, a.seed = AwaitCommits, seed
	a.statements[Proposal][proposal.Sender] = proposal
	if a.tae3() {
		return a, a.startRun()
	}
	a.say(Commit, a.commitments())
	return a, nil
}

func (a *Attempt) tae3() bool { return a.terms.Suite == protocol.SuiteTAE3 }

func newAttempt(terms *protocol.Terms, self int, key ed25519.PrivateKey) *Attempt {
	a := &Attempt{terms: terms, session: terms.Session(), self: self, key: key}
	if !a.tae3() {
		a.layout = terms.Layout()
	}
	for k := range a.statements {
		a.statements[k] = make([]*Statement, terms.N+1)
	}
	a.revealed = make([]map[int]secret.Bytes, terms.N+1)
	return a
}

// say signs and records an own statement.
func (a *Attempt) say(kind Kind, payload []byte) {
	s := &Statement{ID: IDOf(a.terms), Kind: kind, Sender: a.self, Terms: a.session.Proposal, Payload: payload}
	a.statements[kind][a.self] = s.sign(a.key)
}

// contribution is the own contribution to a key. It is derived, so that the state
// to store stays small.
func (a *Attempt) contribution(key int) secret.Bytes {
	h := labelhash.New(labelContribution).Fixed(a.seed.Expose()).Fixed(a.session.Keyset[:]).
		Uint16(a.session.Epoch).Uint16(a.session.Attempt).Uint64(uint64(a.layout.Set(key)))
	c := h.Sum()
	return secret.New(c[:])
}

func (a *Attempt) commitments() []byte {
	var b []byte
	for _, key := range a.layout.HeldBy(a.self) {
		c := a.session.Commit(a.self, a.layout.Set(key), a.contribution(key))
		b = append(b, c[:]...)
	}
	return b
}

// Terms are what the members agreed to.
func (a *Attempt) Terms() *protocol.Terms { return a.terms }

// Phase is how far this member is.
func (a *Attempt) Phase() Phase { return a.phase }

// Fault is the fault that stops the attempt, or nil.
func (a *Attempt) Fault() *FaultError { return a.fault }

// Certificate is the complete certificate, or nil.
func (a *Attempt) Certificate() *protocol.Certificate { return a.cert }

// Keys are the keys that this node holds, in the order of their numbers, once the
// attempt is complete.
func (a *Attempt) Keys() []secret.Bytes { return a.keys }

// Missing names the members whose part in the present phase is not in hand.
func (a *Attempt) Missing() []int {
	if a.tae3() && a.phase <= AwaitReveals {
		return a.run.Missing(a.run.Phase())
	}
	kind := map[Phase]Kind{AwaitCommits: Commit, AwaitChecks: Check, AwaitCertificates: Certify, Abandoning: Abandon}[a.phase]
	var missing []int
	for node := 1; node <= a.terms.N; node++ {
		switch {
		case a.phase == AwaitReveals && node != a.self && a.revealed[node] == nil,
			kind != 0 && a.statements[kind][node] == nil:
			missing = append(missing, node)
		}
	}
	return missing
}

// Statements are all statements in hand, own and others', for passing on.
func (a *Attempt) Statements() []*Statement {
	var list []*Statement
	for _, byNode := range a.statements {
		for _, s := range byNode {
			if s != nil {
				list = append(list, s)
			}
		}
	}
	return list
}

// Transcript is the hash of all commits, once all are in hand. Members reveal only
// to members that have the same, so nobody can show different commits to different
// members and choose a contribution late.
func (a *Attempt) Transcript() ([32]byte, bool) {
	if a.tae3() {
		return [32]byte{}, false // nothing is revealed to one member only
	}
	h := labelhash.New(labelTranscript)
	for node := 1; node <= a.terms.N; node++ {
		s := a.statements[Commit][node]
		if s == nil {
			return [32]byte{}, false
		}
		d := s.Digest()
		h.Fixed(d[:])
	}
	return h.Sum(), true
}

// Step goes on as far as what is in hand allows. It reports whether the state must
// be stored now.
func (a *Attempt) Step() (changed bool, err error) {
	for {
		before := a.phase
		if a.tae3() && a.phase <= AwaitReveals {
			changed = a.sayRun() || changed
		}
		if err := a.step(); err != nil {
			return changed, err
		}
		if a.phase == before {
			return changed, nil
		}
		// Keys and checks are made again from what is stored and what the others say
		// again. The commits must be stored before anything is revealed: a member
		// that forgot them in a crash would take others, made with knowledge of what
		// it has revealed.
		changed = changed || a.phase == AwaitReveals || a.phase == AwaitCertificates || a.phase == Complete || a.phase == Abandoned
	}
}

func (a *Attempt) step() error {
	// A member that has certified is bound until it sees the certificate or all abandon
	// statements: a fault shown to it afterwards must not keep it from completing what
	// others complete.
	if a.fault != nil && a.phase < AwaitCertificates {
		return a.fault
	}
	switch a.phase {
	case AwaitCommits:
		if _, ok := a.Transcript(); ok || a.tae3() && a.run.Phase() > dkg.PhaseKeys {
			a.phase = AwaitReveals
		}
	case AwaitReveals:
		if a.tae3() {
			return a.makeKeys3()
		}
		if len(a.Missing()) == 0 {
			return a.makeKeys()
		}
	case AwaitChecks:
		if len(a.Missing()) == 0 && a.tae3() {
			return a.makeCertificate3()
		}
		if len(a.Missing()) == 0 {
			return a.makeCertificate()
		}
	case AwaitCertificates:
		if len(a.Missing()) == 0 {
			return a.finish()
		}
	case Abandoning:
		if len(a.Missing()) == 0 {
			a.erase()
			a.phase = Abandoned
		}
	}
	return nil
}

func (a *Attempt) makeKeys() error {
	transcript, _ := a.Transcript()
	payload := transcript[:]
	for _, key := range a.layout.HeldBy(a.self) {
		d := a.layout.Set(key)
		var parts []secret.Bytes
		for _, node := range d.Nodes() {
			if node == a.self {
				parts = append(parts, a.contribution(key))
			} else {
				parts = append(parts, a.revealed[node][key])
			}
		}
		k, err := a.session.Key(d, parts)
		if err != nil {
			return err
		}
		a.keys = append(a.keys, k)
		check := a.session.KeyCheck(d, k)
		payload = append(payload, check[:]...)
	}
	a.say(Check, payload)
	a.phase = AwaitChecks
	return nil
}

// makeCertificate compares the key checks. All members worked from the same
// commits, which fix every key, so a member with another check has lied or is
// broken; this node knows which for the keys that it holds itself.
func (a *Attempt) makeCertificate() error {
	transcript, _ := a.Transcript()
	cert := &protocol.Certificate{Terms: *a.terms, Checks: make([][32]byte, a.layout.Keys())}
	from := make([]int, a.layout.Keys())
	own := a.statements[Check][a.self]
	for _, s := range append([]*Statement{own}, a.statements[Check][1:]...) {
		if [32]byte(s.Payload) != transcript {
			return a.blame(0, fmt.Sprintf("node %d has other commitments than this node: a member showed two", s.Sender))
		}
		for i, key := range a.layout.HeldBy(s.Sender) {
			check := [32]byte(s.Payload[32+32*i:])
			switch {
			case from[key] == 0:
				cert.Checks[key], from[key] = check, s.Sender
			case cert.Checks[key] == check:
			case from[key] == a.self:
				return a.blame(s.Sender, fmt.Sprintf("has another key for nodes %v than this node", a.layout.Set(key)))
			default:
				return a.blame(0, fmt.Sprintf("nodes %d and %d have different keys of nodes %v: one of the two is wrong", from[key], s.Sender, a.layout.Set(key)))
			}
		}
	}
	a.cert = cert
	signature := cert.Sign(a.key)
	a.say(Certify, signature[:])
	a.phase = AwaitCertificates
	return nil
}

func (a *Attempt) finish() error {
	signatures := make([][sig.Size]byte, a.terms.N)
	for node := 1; node <= a.terms.N; node++ {
		s := a.statements[Certify][node]
		if !a.cert.VerifyMember(node, s.Payload) {
			return a.blame(0, fmt.Sprintf("node %d signed another certificate: a member showed two key checks", node))
		}
		signatures[node-1] = [sig.Size]byte(s.Payload)
	}
	a.cert.Signatures = signatures
	a.complete()
	return nil
}

// complete drops what only the attempt needed.
func (a *Attempt) complete() {
	a.phase = Complete
	a.fault = nil
	a.seed.Wipe()
	a.run = nil
	for _, m := range a.revealed {
		for _, r := range m {
			r.Wipe()
		}
	}
	clear(a.revealed)
}

// Adopt takes a complete certificate that another member shows. It reports
// whether the state changed and must be stored.
func (a *Attempt) Adopt(cert *protocol.Certificate) (bool, error) {
	if a.phase != AwaitCertificates {
		return false, nil // keys not stored yet, or abandoned, or complete
	}
	if cert.Digest() != a.cert.Digest() {
		return false, errors.New("keygen: the certificate is for other keys than this node made")
	}
	if err := cert.Verify(a.terms.Members); err != nil {
		return false, err
	}
	a.cert = cert
	a.complete()
	return true, nil
}

// Abandon gives the attempt up. It fails when the certificate is complete. The
// state must be stored before the statement is shown.
func (a *Attempt) Abandon() error {
	switch a.phase {
	case Complete:
		return errors.New("keygen: the epoch is complete and cannot be abandoned")
	case Abandoning, Abandoned:
		return nil
	}
	a.say(Abandon, nil)
	a.phase = Abandoning
	return nil
}

// ShouldAbandon reports whether the attempt is dead and giving it up is safe
// without asking anybody: a fault was found, or another member gave up, and this
// node has not signed the certificate, so no complete one can exist.
func (a *Attempt) ShouldAbandon() bool {
	if a.phase >= AwaitCertificates {
		return false
	}
	if a.fault != nil {
		return true
	}
	for _, s := range a.statements[Abandon] {
		if s != nil {
			return true
		}
	}
	return false
}

// erase drops the keys of an abandoned attempt.
func (a *Attempt) erase() {
	a.seed.Wipe()
	a.seed = secret.Bytes{}
	for _, k := range a.keys {
		k.Wipe()
	}
	a.keys, a.cert, a.run = nil, nil, nil
}
