package dkg

import (
	"errors"
	"fmt"
	"slices"

	"go.dedis.ch/kyber/v3"
	"go.dedis.ch/kyber/v3/share"
	pedersen "go.dedis.ch/kyber/v3/share/dkg/pedersen"
	"go.dedis.ch/kyber/v3/util/random"

	"github.com/seed-a893640b/tae/internal/labelhash"
	"github.com/seed-a893640b/tae/internal/secret"
)

// Limits of n and t. kyber shares with a threshold of two or more.
const (
	MaxN = 64
	minT = 2
)

// Phase is what a run waits for.
type Phase uint8

// The phases of a run.
const (
	PhaseKeys           Phase = 1
	PhaseDeals          Phase = 2
	PhaseResponses      Phase = 3
	PhaseJustifications Phase = 4
	PhaseDone           Phase = 5
)

var phaseNames = [...]string{PhaseKeys: "group keys", PhaseDeals: "deals", PhaseResponses: "responses", PhaseJustifications: "justifications", PhaseDone: "done"}

func (p Phase) String() string {
	if int(p) < len(phaseNames) && p > 0 {
		return phaseNames[p]
	}
	return fmt.Sprintf("phase %d", uint8(p))
}

// Params are what the members of a run agree on.
type Params struct {
	N, T    int      // of the new shares; receivers are the members 1..N
	Self    int      // this member's number
	Session [32]byte // digest that binds keyset, epoch, attempt and terms, old and new
}

// A Fault says what broke a run. Node is the member that is proven to have done it, 0
// where that cannot be told.
type Fault struct {
	Node   int
	Reason string
}

func (f *Fault) Error() string {
	if f.Node == 0 {
		return f.Reason
	}
	return fmt.Sprintf("node %d %s", f.Node, f.Reason)
}

// A Result is what a member has in the end.
type Result struct {
	Public   *Public
	Share    secret.Bytes // of the ristretto255 secret, 32 bytes; empty for a member that leaves
	BLSShare secret.Bytes // of the BLS12-381 secret
}

// half is a run's part in one group.
type half struct {
	group        *group
	suite        *suite
	long         kyber.Scalar   // secret of the ceremony's key pair
	poly         *share.PriPoly // own dealing, or nil
	keys         []kyber.Point  // by member, 0 unused
	receiverKeys []kyber.Point
	handler      *pedersen.DistKeyGenerator
	oldShare     kyber.Scalar // or nil
}

// A Run is one member's side of a key generation or reshare. Not safe for concurrent
// use. All payloads must come from their senders, authenticated: a fault in one is
// held against its sender.
type Run struct {
	params    Params
	reshare   *reshare // nil when fresh
	members   int
	cipherLen [2]int
	halves    [2]half
	seed      secret.Bytes

	phase  Phase
	in     [PhaseDone]map[int]*payload
	own    [PhaseDone][]byte
	owed   map[int][]complaint // per dealer
	fault  *Fault
	broken error // an error of ours
	result *Result
}

func (p *Params) check(members int) error {
	if p.N < minT || p.N > MaxN || p.T < minT || p.T > p.N || p.Self < 1 || p.Self > members {
		return fmt.Errorf("dkg: no run with member %d, n = %d, t = %d", p.Self, p.N, p.T)
	}
	return nil
}

// New starts a fresh key generation. The seed is 32 random bytes, used for this run
// only; with it a restarted member says again what it said before. It is not copied.
func New(p Params, seed secret.Bytes) (*Run, error) { return newRun(p, nil, [2]kyber.Scalar{}, seed) }

func newRun(p Params, re *reshare, old [2]kyber.Scalar, seed secret.Bytes) (*Run, error) {
	r := &Run{params: p, reshare: re, members: p.N, seed: seed, phase: PhaseKeys, owed: map[int][]complaint{}}
	if re != nil {
		r.members = len(re.Index)
	}
	if err := p.check(r.members); err != nil {
		return nil, err
	}
	if seed.Len() != 32 {
		return nil, errors.New("dkg: the seed must have 32 bytes")
	}
	var err error
	if r.cipherLen, err = cipherLens(p.T); err != nil {
		return nil, err
	}
	for phase := range r.in {
		r.in[phase] = map[int]*payload{}
	}
	for g := range r.halves {
		h := &r.halves[g]
		h.group, h.oldShare = &groups[g], old[g]
		h.suite = &suite{h.group, &randomness{seed: seed, params: p, group: h.group.id}}
		h.suite.enter("group key")
		h.long = h.group.Scalar().Pick(h.suite.RandomStream())
		if r.kyberIndex(p.Self) >= 0 {
			h.poly = h.draw(p.T)
		}
	}
	return r, guard(r.sayKeys)
}

// draw draws the own dealing as kyber will, from the same streams in the same order.
func (h *half) draw(t int) *share.PriPoly {
	h.suite.enter("dealing")
	constant := h.oldShare
	if constant == nil {
		constant = h.group.Scalar().Pick(random.New(h.suite))
	}
	return share.NewPriPoly(h.suite, t, constant, h.suite.RandomStream())
}

func (h *half) commits() []kyber.Point {
	_, list := h.poly.Commit(nil).Info()
	return list
}

func (r *Run) receiver() bool { return r.params.Self <= r.params.N }

// kyberIndex is the position of a dealer among kyber's dealers, -1 for others.
func (r *Run) kyberIndex(member int) int {
	if r.reshare == nil {
		return member - 1
	}
	return r.reshare.Index[member-1] - 1
}

// senders are the members of whom a payload is needed in a phase.
func (r *Run) senders(phase Phase) (list []int) {
	for m := 1; m <= r.members; m++ {
		switch {
		case phase == PhaseKeys,
			phase == PhaseDeals && r.kyberIndex(m) >= 0,
			phase == PhaseResponses && m <= r.params.N,
			phase == PhaseJustifications && len(r.owed[m]) > 0:
			list = append(list, m)
		}
	}
	return list
}

// receivers are the members for whom a dealer seals shares: kyber's own share is
// handed over inside in a fresh key generation only.
func (r *Run) receivers(dealer int) (list []int) {
	for m := 1; m <= r.params.N; m++ {
		if r.reshare != nil || m != dealer {
			list = append(list, m)
		}
	}
	return list
}

// dealersOf are the dealers to whom a receiver responds.
func (r *Run) dealersOf(receiver int) (list []int) {
	for _, d := range r.senders(PhaseDeals) {
		if slices.Contains(r.receivers(d), receiver) {
			list = append(list, d)
		}
	}
	return list
}

// Phase is what the run waits for.
func (r *Run) Phase() Phase { return r.phase }

// Missing names the members whose payload of a phase is not in hand. Of
// justifications only those are missing that are owed, which is known when all
// responses are in.
func (r *Run) Missing(phase Phase) (list []int) {
	if phase < PhaseKeys || phase >= PhaseDone {
		return nil
	}
	for _, m := range r.senders(phase) {
		if r.in[phase][m] == nil {
			list = append(list, m)
		}
	}
	return list
}

// Say is this member's own payload of a phase, once it can be made; nil before, and
// where it has nothing to say.
func (r *Run) Say(phase Phase) []byte {
	if phase < PhaseKeys || phase >= PhaseDone {
		return nil
	}
	return r.own[phase]
}

// Add takes a payload of any phase, in any order. It returns the fault that stops the
// run, if there is one. A share of our own that is bad is no error: it becomes a
// complaint in this member's responses.
func (r *Run) Add(phase Phase, from int, b []byte) error {
	if phase < PhaseKeys || phase >= PhaseDone || from < 1 || from > r.members {
		return fmt.Errorf("dkg: no %v of member %d", phase, from)
	}
	if err := r.failed(); err != nil || r.phase == PhaseDone {
		return err
	}
	switch phase {
	case PhaseDeals:
		if r.kyberIndex(from) < 0 {
			return r.blame(from, "deals, but has no share to deal")
		}
	case PhaseResponses:
		if from > r.params.N {
			return r.blame(from, "responds, but receives no share")
		}
	}
	if old := r.in[phase][from]; old != nil {
		if old.digest != digestOf(b) {
			return r.blame(from, fmt.Sprintf("said two different things in the phase of %v", phase))
		}
		return nil
	}
	p, err := r.parse(phase, from, b)
	if err != nil {
		return r.blame(from, fmt.Sprintf("sent a payload of %v that %v", phase, err))
	}
	r.in[phase][from] = p
	return r.advance()
}

// Result is the outcome; the error is a *Fault when a member broke the run.
func (r *Run) Result() (*Result, error) {
	if err := r.failed(); err != nil {
		return nil, err
	}
	if r.result == nil {
		return nil, errNotDone
	}
	return r.result, nil
}

// Erase overwrites the secrets of the run, as far as the runtime lets it, the seed
// included. A Result that was taken stays. The run is over.
func (r *Run) Erase() {
	r.seed.Wipe()
	for g := range r.halves {
		h := &r.halves[g]
		h.long.Zero()
		if h.poly != nil {
			for _, c := range h.poly.Coefficients() {
				c.Zero()
			}
		}
		if h.oldShare != nil {
			h.oldShare.Zero()
		}
		h.handler = nil
	}
	r.phase, r.result, r.broken = PhaseDone, nil, errNotDone
}

func (r *Run) failed() error {
	if r.fault != nil {
		return r.fault
	}
	return r.broken
}

func (r *Run) blame(node int, reason string) error {
	if r.fault == nil {
		r.fault = &Fault{node, reason}
	}
	return r.fault
}

// advance closes all phases that are complete.
func (r *Run) advance() error {
	for r.phase < PhaseDone && r.complete() {
		closing := [...]func() error{PhaseKeys: r.closeKeys, PhaseDeals: r.closeDeals, PhaseResponses: r.closeResponses,
			PhaseJustifications: r.closeJustifications}[r.phase]
		if err := guard(closing); err != nil {
			if r.fault == nil {
				r.broken = err
			}
			return r.failed()
		}
		r.phase++
	}
	return nil
}

// complete reports whether the present phase can be closed. Of several justifications
// one is enough: a silent dealer cannot hold up the judgement on another.
func (r *Run) complete() bool {
	missing := len(r.Missing(r.phase))
	return missing == 0 || r.phase == PhaseJustifications && missing < len(r.senders(r.phase))
}

// say records an own payload.
func (r *Run) say(phase Phase, b []byte) error {
	r.own[phase] = b
	if old := r.in[phase][r.params.Self]; old != nil {
		if old.digest != digestOf(b) {
			return r.blame(r.params.Self, fmt.Sprintf("said something else in the phase of %v before", phase))
		}
		return nil
	}
	p, err := r.parse(phase, r.params.Self, b)
	if err != nil {
		return fmt.Errorf("dkg: internal error: own payload %w", err)
	}
	r.in[phase][r.params.Self] = p
	return nil
}

// transcript hashes the payloads of a complete phase.
func (r *Run) transcript(phase Phase) []byte {
	h := labelhash.New(labelTranscript)
	for _, d := range r.digests(phase) {
		h.Fixed(d[:])
	}
	sum := h.Sum()
	return sum[:]
}

func (r *Run) digests(phase Phase) (list []digest) {
	for _, m := range r.senders(phase) {
		list = append(list, r.in[phase][m].digest)
	}
	return list
}

// checkSeen compares what the senders of a phase have seen of the phase before with
// what is in hand. A difference proves nothing against anybody: the member between
// may have shown two things, or the sender lies about what it saw.
func (r *Run) checkSeen(phase Phase) error {
	before := r.senders(phase - 1)
	have := r.digests(phase - 1)
	for _, m := range r.senders(phase) {
		if r.in[phase][m] == nil {
			continue
		}
		for i, seen := range r.in[phase][m].seen {
			if seen != have[i] {
				return r.blame(0, fmt.Sprintf("nodes %d and %d have different %v of node %d: it showed two, or one of the two is wrong", r.params.Self, m, phase-1, before[i]))
			}
		}
	}
	return nil
}
