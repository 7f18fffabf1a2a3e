package keygen

import (
	"bytes"
	"encoding/binary"
	mrand "math/rand/v2"
	"testing"

	"golang.org/x/crypto/cryptobyte"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/protocol"
	"github.com/seed-a893640b/tae/sig"
)

// give lets member i take the statements of the given kind that member j made.
func (g *group) give(i int, from *Attempt, kind Kind) error {
	_, err := g.attempts[i].Add(from.statements[kind][from.self])
	return err
}

// A member that crashes after it revealed still knows the commits that it revealed
// for, and does not take others, which could depend on what it revealed.
func TestGameForgottenCommits(t *testing.T) {
	for _, forget := range []bool{false, true} { // true is the control: only own statements are stored
		g := newGroup(t, 3, 2)
		late := g.start(t, g.attempts[1].statements[Proposal][1], 3) // node 3's second face
		for _, j := range []int{2, 3} {
			if err := g.give(1, g.attempts[j], Commit); err != nil {
				t.Fatal(err)
			}
		}
		changed, err := g.attempts[1].Step()
		if err != nil || !changed {
			t.Fatalf("the commits need not be stored before anything is revealed: %v", err)
		}
		if forget {
			g.attempts[1].statements[Commit][2], g.attempts[1].statements[Commit][3] = nil, nil
		}
		stored := g.attempts[1].Marshal()
		if !forget {
			tr, _ := g.attempts[1].Transcript()
			if _, err := g.attempts[1].Reveal(3, tr); err != nil {
				t.Fatal(err)
			}
		}
		// Node 1 crashes; node 3, which knows its contributions, shows another commit.
		if g.attempts[1], err = Restore(stored, 1, g.keys[1]); err != nil {
			t.Fatal(err)
		}
		err = g.give(1, late, Commit)
		if named := faultOf(err) == 3; named == forget {
			t.Errorf("forgetting %v: %v", forget, err)
		}
	}
}

// The member that moves last does not choose the key: nobody reveals before all
// have committed, and a reveal that does not open its commitment is named.
func TestGameLastMover(t *testing.T) {
	g := newGroup(t, 3, 2)
	layout := g.terms.Layout()
	key := layout.HeldBy(3)[0]
	d := layout.Set(key) // of nodes 1 and 3
	if err := g.give(1, g.attempts[2], Commit); err != nil {
		t.Fatal(err)
	}
	g.attempts[1].Step()
	if _, err := g.attempts[1].Reveal(3, [32]byte{}); err == nil {
		t.Error("a member reveals before all have committed")
	}
	// grind looks for a seed of node 3 that makes the key's first byte zero.
	grind := func(known secret.Bytes) *Attempt {
		for i := range uint64(1 << 14) {
			late := *g.attempts[3]
			late.seed = secret.New(append(binary.BigEndian.AppendUint64(nil, i), make([]byte, 24)...))
			k, err := g.attempts[1].session.Key(d, []secret.Bytes{known, late.contribution(key)})
			if err != nil {
				t.Fatal(err)
			}
			if k.Expose()[0] == 0 {
				return g.start(t, g.attempts[1].statements[Proposal][1], 3).withSeed(late.seed)
			}
		}
		t.Fatal("no seed found")
		return nil
	}
	// Control: node 1 reveals first. Node 3 commits then, and the key is as it likes.
	control := grind(g.attempts[1].contribution(key))
	g.attempts[3] = control
	if err := g.run(5); err != nil {
		t.Fatal(err)
	}
	g.checkComplete(t)
	if g.attempts[1].keys[len(g.attempts[1].keys)-1].Expose()[0] != 0 {
		t.Error("control: the last mover did not choose the key")
	}
	// With commits first it can only reveal something else, and is named.
	h := newGroup(t, 3, 2)
	for i := 1; i <= 3; i++ {
		for j := 1; j <= 3; j++ {
			if err := h.give(i, h.attempts[j], Commit); err != nil {
				t.Fatal(err)
			}
		}
		h.attempts[i].Step()
	}
	h.attempts[3].seed = secret.New(make([]byte, 32))
	tr, _ := h.attempts[1].Transcript()
	r, err := h.attempts[3].Reveal(1, tr)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.attempts[1].AddReveal(3, r); faultOf(err) != 3 {
		t.Errorf("a changed contribution: %v", err)
	}
}

// withSeed replaces the seed of an attempt that has said nothing yet.
func (a *Attempt) withSeed(seed secret.Bytes) *Attempt {
	a.seed = seed
	a.say(Commit, a.commitments())
	return a
}

// Two honest members that were shown different commits do not reveal to each other.
func TestGameTwoFacedCommits(t *testing.T) {
	g := newGroup(t, 4, 2) // a key has three holders
	other := g.start(t, g.attempts[1].statements[Proposal][1], 3)
	for i := 1; i <= 4; i++ {
		for j := 1; j <= 4; j++ {
			from := g.attempts[j]
			if j == 3 && i == 2 {
				from = other
			}
			if err := g.give(i, from, Commit); err != nil && i != 3 {
				t.Fatal(err)
			}
		}
		g.attempts[i].Step()
	}
	tr1, _ := g.attempts[1].Transcript()
	tr2, _ := g.attempts[2].Transcript()
	if tr1 == tr2 {
		t.Fatal("the same transcript")
	}
	if _, err := g.attempts[1].Reveal(2, tr2); err == nil {
		t.Error("revealed to a member with other commits")
	}
	// Control: member 1 does not compare. Member 2 then takes what it reveals, under
	// a contribution of node 3 that could depend on it.
	r, err := g.attempts[1].Reveal(2, tr1)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.attempts[2].AddReveal(1, r); err != nil || g.attempts[2].revealed[1] == nil {
		t.Errorf("control: %v", err)
	}
	// As soon as the two talk, node 3 is named by its own hand.
	if err := g.give(2, g.attempts[3], Commit); faultOf(err) != 3 {
		t.Errorf("got %v", err)
	}
	// What was revealed to one member is not for another.
	if err := g.attempts[4].AddReveal(1, r); faultOf(err) != 1 || g.attempts[4].revealed[1] != nil {
		t.Error("a reveal to member 2 was taken by member 4")
	}
}

// A member that equivocates after all have certified does not split the honest ones
// into some that complete and some that hold the attempt to be dead.
func TestGameLateFault(t *testing.T) {
	g := newGroup(t, 3, 2)
	other := g.start(t, g.attempts[1].statements[Proposal][1], 3)
	g.toChecks(t)
	for i := 1; i <= 3; i++ {
		for j := 1; j <= 3; j++ {
			if err := g.give(i, g.attempts[j], Check); err != nil {
				t.Fatal(err)
			}
		}
		g.attempts[i].Step()
	}
	// Node 1 sees node 3's second commit first, then all signatures; node 2 only these.
	if err := g.give(1, other, Commit); faultOf(err) != 3 {
		t.Fatalf("got %v", err)
	}
	for i := 1; i <= 2; i++ {
		for j := 1; j <= 3; j++ {
			if err := g.give(i, g.attempts[j], Certify); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := g.attempts[i].Step(); err != nil || g.attempts[i].Phase() != Complete {
			t.Errorf("node %d is %v: %v", i, g.attempts[i].Phase(), err)
		}
	}
	// Control: the same before anybody has certified ends the attempt.
	h := newGroup(t, 3, 2)
	late := h.start(t, h.attempts[1].statements[Proposal][1], 3)
	h.toChecks(t)
	if err := h.give(1, late, Commit); faultOf(err) != 3 {
		t.Fatalf("got %v", err)
	}
	if _, err := h.attempts[1].Step(); faultOf(err) != 3 || !h.attempts[1].ShouldAbandon() {
		t.Errorf("control: %v", err)
	}
}

// Every byte of a reveal counts, its signature too: it convicts only its sender.
func TestGameAlteredReveal(t *testing.T) {
	g := newGroup(t, 3, 2)
	for i := 1; i <= 3; i++ {
		for j := 1; j <= 3; j++ {
			if err := g.give(i, g.attempts[j], Commit); err != nil {
				t.Fatal(err)
			}
		}
		g.attempts[i].Step()
	}
	tr, _ := g.attempts[2].Transcript()
	good, err := g.attempts[2].Reveal(1, tr)
	if err != nil {
		t.Fatal(err)
	}
	state := g.attempts[1].Marshal()
	for at := range good.Len() {
		a, err := Restore(state, 1, g.keys[1])
		if err != nil {
			t.Fatal(err)
		}
		a.Step()
		bad := secret.Copy(good.Expose())
		bad.Expose()[at] ^= 1
		if err := a.AddReveal(2, bad); faultOf(err) != 2 || a.revealed[2] != nil {
			t.Errorf("byte %d altered: %v", at, err)
		}
	}
	// Control: the reveal as it is.
	if err := g.attempts[1].AddReveal(2, good); err != nil {
		t.Error(err)
	}
}

// weakDigest is a statement's digest with one field left out.
func weakDigest(s *Statement, omit string) [32]byte {
	c := *s
	switch omit {
	case "kind":
		c.Kind = 0
	case "sender":
		c.Sender = 0
	case "keyset":
		c.Keyset = protocol.KeysetID{}
	case "epoch":
		c.Epoch = 0
	case "attempt":
		c.Attempt = 0
	case "terms":
		c.Terms = [32]byte{}
	case "payload":
		c.Payload = nil
	}
	return c.Digest()
}

// Nobody is framed with a statement that it made for something else: every field is
// under the signature. The control leaves one field out of it.
func TestGameFraming(t *testing.T) {
	g := newGroup(t, 3, 2)
	honest := g.attempts[2].statements[Commit][2]
	changes := map[string]func(s *Statement){
		"kind":    func(s *Statement) { s.Kind = Check },
		"sender":  func(s *Statement) { s.Sender = 3 },
		"keyset":  func(s *Statement) { s.Keyset[0] ^= 1 },
		"epoch":   func(s *Statement) { s.Epoch++ },
		"attempt": func(s *Statement) { s.Attempt++ },
		"terms":   func(s *Statement) { s.Terms[0] ^= 1 },
		"payload": func(s *Statement) { s.Payload = bytes.Clone(s.Payload); s.Payload[0] ^= 1 },
	}
	for field, change := range changes {
		s := *honest
		change(&s)
		if s.Verify(g.terms.Members[1]) {
			t.Errorf("%s is not under the signature", field)
		}
		// Control: the same change under a signature that leaves the field out.
		weak := sig.Sign(g.keys[2], labelStatement, weakDigest(honest, field))
		if !sig.Verify(g.terms.Members[1][:], labelStatement, weakDigest(&s, field), weak[:]) {
			t.Errorf("control: without %s under the signature the statement is still refused", field)
		}
	}
	// In whole: node 2's commit of attempt 1, shown in attempt 2, does not make it an
	// equivocator there.
	terms := *g.terms
	terms.Attempt = 2
	second := &group{terms: &terms, keys: g.keys}
	p := Propose(&terms, 1, g.keys[1])
	second.attempts = []*Attempt{nil, second.start(t, p, 1), second.start(t, p, 2)}
	if err := second.give(1, second.attempts[2], Commit); err != nil {
		t.Fatal(err)
	}
	replay := *honest
	if _, err := second.attempts[1].Add(&replay); err == nil || second.attempts[1].fault != nil {
		t.Errorf("a statement of another attempt: %v", err)
	}
	replay.Attempt, replay.Terms = 2, terms.Digest()
	if _, err := second.attempts[1].Add(&replay); err == nil || second.attempts[1].fault != nil {
		t.Errorf("a relabelled statement: %v", err)
	}
}

// A member cannot copy another's commitment and reveal what the other reveals, nor
// use one for another key: sender and set are in the hash.
func TestGameCopiedCommitment(t *testing.T) {
	g := newGroup(t, 3, 2)
	s := g.attempts[1].session
	d, e := dprf.SetOf(1, 2), dprf.SetOf(2, 3)
	c := secret.New(fixed("contribution"))
	commitment := s.Commit(1, d, c)
	if s.CheckReveal(2, d, c, commitment) {
		t.Error("node 2 opens node 1's commitment")
	}
	if s.CheckReveal(1, e, c, commitment) {
		t.Error("a commitment opens for another key")
	}
	other := s
	other.Attempt++
	if other.CheckReveal(1, d, c, commitment) {
		t.Error("a commitment opens in another attempt")
	}
	// Control: a hash without sender and set, in which both are one commitment.
	weak := func(_ int, _ dprf.Set) string {
		return string(refH("tae/v1/keygen/commit", s.Keyset[:], s.Proposal[:], c.Expose()))
	}
	if weak(1, d) != weak(2, d) || weak(1, d) != weak(1, e) {
		t.Error("control")
	}
}

// Two attempts at one epoch never both end in a complete certificate and keys.
func TestGameTwoCertificates(t *testing.T) {
	g := newGroup(t, 3, 2)
	g.toChecks(t)
	for i := 1; i <= 3; i++ {
		for j := 1; j <= 3; j++ {
			if err := g.give(i, g.attempts[j], Check); err != nil {
				t.Fatal(err)
			}
		}
		g.attempts[i].Step()
	}
	// All have certified. Node 3 keeps all signatures and hides the certificate; the
	// operators of 1 and 2 give up.
	for j := 1; j <= 2; j++ {
		if err := g.give(3, g.attempts[j], Certify); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.attempts[3].Step(); err != nil || g.attempts[3].Phase() != Complete {
		t.Fatalf("node 3 is %v: %v", g.attempts[3].Phase(), err)
	}
	first := g.attempts[3].Certificate()
	for i := 1; i <= 2; i++ {
		if err := g.attempts[i].Abandon(); err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i <= 2; i++ {
		for j := 1; j <= 2; j++ {
			if err := g.give(i, g.attempts[j], Abandon); err != nil {
				t.Fatal(err)
			}
		}
		g.attempts[i].Step()
		if p := g.attempts[i].Phase(); p != Abandoning || g.attempts[i].keys == nil {
			t.Errorf("node %d is %v: it erased its keys, and would accept another attempt, without node 3's word", i, p)
		}
		if changed, err := g.attempts[i].Adopt(first); changed || err != nil || g.attempts[i].Phase() != Abandoning {
			t.Errorf("node %d takes the certificate of an attempt that it abandoned", i)
		}
	}
	if err := g.attempts[3].Abandon(); err == nil {
		t.Error("who holds the certificate abandons")
	}
	// Control: 1 and 2 hold the attempt to be over with their own two statements, and
	// one of them takes the certificate all the same.
	terms := *g.terms
	terms.Attempt = 2
	second := &group{terms: &terms, keys: g.keys, attempts: []*Attempt{nil}}
	p := Propose(&terms, 1, g.keys[1])
	for i := 1; i <= 3; i++ {
		second.attempts = append(second.attempts, second.start(t, p, i))
	}
	if err := second.run(5); err != nil {
		t.Fatal(err)
	}
	second.checkComplete(t)
	g.attempts[1].phase = AwaitCertificates
	if changed, err := g.attempts[1].Adopt(first); !changed || err != nil {
		t.Fatalf("control: %v", err)
	}
	a, b := g.attempts[1].Certificate(), second.attempts[1].Certificate()
	if a.Verify(terms.Members) != nil || b.Verify(terms.Members) != nil || a.Epoch != b.Epoch || a.Checks[0] == b.Checks[0] {
		t.Error("control: not two complete certificates of one epoch with different keys")
	}
}

// A malicious member plays two faces at once, repeats, alters and withholds; honest
// members crash and come back with what they stored. Whatever happens: no honest
// member is blamed, no two honest members complete with different certificates, and
// none erases its keys while another completes.
func TestGameMaliciousMember(t *testing.T) {
	runs := uint64(200)
	if testing.Short() {
		runs = 30
	}
	outcomes := map[Phase]int{}
	for seed := range runs {
		r := mrand.New(mrand.NewPCG(seed, 7))
		n := 3 + r.IntN(2)
		g := newGroup(t, n, 2+r.IntN(n-1))
		m := 1 + r.IntN(n)
		game := &memberGame{group: g, t: t, r: r, evil: m, mild: r.IntN(3) > 0, faces: []*Attempt{g.attempts[m]}, stored: make([]secret.Bytes, n+1)}
		if r.IntN(2) == 0 {
			game.faces = append(game.faces, g.start(t, g.attempts[1].statements[Proposal][1], m))
		}
		for i := 1; i <= n; i++ {
			game.stored[i] = g.attempts[i].Marshal()
		}
		for range 250 {
			game.move()
		}
		game.check(seed)
		for i := 1; i <= n; i++ {
			if i != m {
				outcomes[g.attempts[i].Phase()]++
			}
		}
	}
	if outcomes[Complete] == 0 || outcomes[Abandoning]+outcomes[Abandoned] == 0 {
		t.Errorf("the game does not reach both ends: %v", outcomes)
	}
}

type memberGame struct {
	*group
	t      *testing.T
	r      *mrand.Rand
	evil   int
	mild   bool // alters nothing, only shows two faces
	faces  []*Attempt
	stored []secret.Bytes
}

func (g *memberGame) face() *Attempt { return g.faces[g.r.IntN(len(g.faces))] }

// move lets one random member learn something from another.
func (g *memberGame) move() {
	i, j := 1+g.r.IntN(g.terms.N), 1+g.r.IntN(g.terms.N)
	if i == j {
		return
	}
	if i == g.evil {
		g.learn(g.face(), g.attempts[j], false)
		return
	}
	from := g.attempts[j]
	if j == g.evil {
		from = g.face()
	}
	if g.r.IntN(30) == 0 { // a crash
		a, err := Restore(g.stored[i], i, g.keys[i])
		if err != nil {
			g.t.Fatal(err)
		}
		g.attempts[i] = a
	}
	a := g.attempts[i]
	g.learn(a, from, j == g.evil && !g.mild)
	changed, _ := a.Step()
	if a.ShouldAbandon() {
		if err := a.Abandon(); err != nil {
			g.t.Fatal(err)
		}
		changed = true
	}
	if changed {
		g.stored[i] = a.Marshal()
	}
}

// learn is what a member takes from one visit.
func (g *memberGame) learn(a, from *Attempt, alter bool) {
	for _, s := range from.Statements() {
		b := s.Append(nil)
		if alter && g.r.IntN(25) == 0 {
			b[g.r.IntN(len(b))] ^= 1 << g.r.IntN(8)
		}
		if s, err := ParseStatement(b); err == nil && g.r.IntN(6) > 0 {
			if alter && s.Sender == g.evil && g.r.IntN(40) == 0 && len(s.Payload) > 0 {
				s.Payload[g.r.IntN(len(s.Payload))] ^= 1
				s.sign(g.keys[g.evil])
			}
			_, _ = a.Add(s)
		}
	}
	_, _ = a.Step()
	if a.NeedsReveal(from.self) {
		if tr, ok := a.Transcript(); ok {
			if r, err := from.Reveal(a.self, tr); err == nil {
				if alter && g.r.IntN(15) == 0 {
					r.Expose()[g.r.IntN(r.Len())] ^= 1
				}
				_ = a.AddReveal(from.self, r)
			}
		}
	}
	if from.Phase() == Complete {
		_, _ = a.Adopt(from.Certificate())
	}
}

func (g *memberGame) check(seed uint64) {
	var cert *protocol.Certificate
	erased := false
	for i := 1; i <= g.terms.N; i++ {
		a := g.attempts[i]
		if i == g.evil {
			continue
		}
		if f := a.Fault(); f != nil && f.Node != 0 && f.Node != g.evil {
			g.t.Errorf("seed %d: member %d blames honest node %d: %v", seed, i, f.Node, f)
		}
		switch a.Phase() {
		case Complete:
			if cert != nil && cert.Digest() != a.Certificate().Digest() {
				g.t.Errorf("seed %d: two certificates", seed)
			}
			cert = a.Certificate()
			if err := a.checkKeys(); err != nil {
				g.t.Errorf("seed %d: %v", seed, err)
			}
		case Abandoned:
			erased = true
		}
	}
	if cert != nil && erased {
		g.t.Errorf("seed %d: one honest member completed and another erased", seed)
	}
}

func FuzzReveal(f *testing.F) {
	g := fixedGroup(f, 3, 2)
	for i := 1; i <= 3; i++ {
		for j := 1; j <= 3; j++ {
			if err := g.give(i, g.attempts[j], Commit); err != nil {
				f.Fatal(err)
			}
		}
		g.attempts[i].Step()
	}
	tr, _ := g.attempts[2].Transcript()
	good, err := g.attempts[2].Reveal(1, tr)
	if err != nil {
		f.Fatal(err)
	}
	state := g.attempts[1].Marshal()
	f.Add(good.Expose())
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Restore(state, 1, g.keys[1])
		if err != nil {
			t.Fatal(err)
		}
		a.Step()
		err = a.AddReveal(2, secret.Copy(b))
		if taken := a.revealed[2] != nil; taken != (err == nil) || taken != bytes.Equal(b, good.Expose()) {
			t.Errorf("taken %v, error %v", taken, err)
		}
		if err != nil && faultOf(err) != 2 {
			t.Errorf("got %v", err)
		}
	})
}

// FuzzStatements takes a list of statements as it arrives from a member, and gives
// all to an attempt.
func FuzzStatements(f *testing.F) {
	g := fixedGroup(f, 3, 2)
	f.Add(AppendStatements(nil, g.attempts[2].Statements()))
	f.Add(AppendStatements(nil, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := cryptobyte.String(b)
		list, ok := ReadStatements(&in)
		if !ok {
			if list != nil {
				t.Error("statements with an error")
			}
			return
		}
		if got := AppendStatements(nil, list); !bytes.Equal(append(got, in...), b) {
			t.Error("not canonical")
		}
		a, err := Start(g.attempts[1].statements[Proposal][1], 1, g.keys[1], secret.New(make([]byte, 32)))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			_, _ = a.Add(s)
		}
		_, _ = a.Step()
	})
}
