package keygen

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	mrand "math/rand/v2"
	"testing"

	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/protocol"
)

type group struct {
	terms    *protocol.Terms
	keys     []ed25519.PrivateKey
	attempts []*Attempt // index 0 unused
}

func newGroup(t testing.TB, n, th int) *group { return newGroupOf(t, protocol.SuiteTAE1, n, th) }

func newGroupOf(t testing.TB, suite protocol.Suite, n, th int) *group {
	t.Helper()
	g := &group{terms: &protocol.Terms{Name: "k", Suite: suite, N: n, T: th, Modes: protocol.ModesOf(protocol.ModeSealed),
		Limits: protocol.Limits{MaxBatch: 1024, ObjectsLog2: 36}, Version: 1, Epoch: 1, Attempt: 1}, keys: []ed25519.PrivateKey{nil}}
	if suite == protocol.SuiteTAE3 {
		g.terms.Generation = 1
	}
	rand.Read(g.terms.Keyset[:])
	for range n {
		pub, priv, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		g.terms.Members = append(g.terms.Members, [32]byte(pub))
		g.keys = append(g.keys, priv)
	}
	proposal := Propose(g.terms, 1, g.keys[1])
	g.attempts = []*Attempt{nil}
	for i := 1; i <= n; i++ {
		g.attempts = append(g.attempts, g.start(t, proposal, i))
	}
	return g
}

func (g *group) start(t testing.TB, proposal *Statement, i int) *Attempt {
	t.Helper()
	seed := make([]byte, 32)
	rand.Read(seed)
	a, err := Start(proposal, i, g.keys[i], secret.New(seed))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// exchange lets i learn what j knows, and reveals j's contributions to i.
func (g *group) exchange(i, j int) error {
	a, b := g.attempts[i], g.attempts[j]
	for _, s := range b.Statements() {
		s, err := ParseStatement(s.Append(nil))
		if err != nil {
			return err
		}
		if _, err := a.Add(s); err != nil {
			return err
		}
	}
	if _, err := a.Step(); err != nil {
		return err
	}
	if a.NeedsReveal(j) {
		tr, _ := a.Transcript()
		if r, err := b.Reveal(i, tr); err == nil {
			if err := a.AddReveal(j, r); err != nil {
				return err
			}
		}
	}
	if c := b.Certificate(); b.Phase() == Complete {
		if _, err := a.Adopt(c); err != nil {
			return err
		}
	}
	_, err := a.Step()
	return err
}

func (g *group) run(rounds int) (err error) {
	for range rounds {
		for i := 1; i <= g.terms.N; i++ {
			for j := 1; j <= g.terms.N; j++ {
				if i != j {
					err = errors.Join(err, g.exchange(i, j))
				}
			}
		}
	}
	return err
}

func (g *group) checkComplete(t *testing.T) {
	t.Helper()
	layout := g.terms.Layout()
	byKey := map[int]secret.Bytes{}
	for i := 1; i <= g.terms.N; i++ {
		a := g.attempts[i]
		if a.Phase() != Complete {
			t.Fatalf("member %d is %v, missing %v, fault %v", i, a.Phase(), a.Missing(), a.Fault())
		}
		if err := a.Certificate().Verify(g.terms.Members); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Certificate().Append(nil), g.attempts[1].Certificate().Append(nil)) {
			t.Error("members hold different certificates")
		}
		for k, key := range layout.HeldBy(i) {
			if old, ok := byKey[key]; ok && !old.Equal(a.Keys()[k]) {
				t.Errorf("members disagree on key %d", key)
			}
			byKey[key] = a.Keys()[k]
		}
	}
	if len(byKey) != layout.Keys() {
		t.Errorf("%d of %d keys exist", len(byKey), layout.Keys())
	}
}

func TestKeyGeneration(t *testing.T) {
	for n := 2; n <= 7; n++ {
		for th := 2; th <= n; th++ {
			g := newGroup(t, n, th)
			if err := g.run(5); err != nil {
				t.Fatal(err)
			}
			g.checkComplete(t)
		}
	}
}

// Members crash at random moments and come back with what they stored last, the
// messages arriving in any order.
func TestCrashesAndAnyOrder(t *testing.T) {
	runs := uint64(60)
	if testing.Short() {
		runs = 12
	}
	for seed := range runs {
		r := mrand.New(mrand.NewPCG(seed, 1))
		g := newGroup(t, 3+r.IntN(3), 2)
		stored := make([]secret.Bytes, g.terms.N+1)
		for i := 1; i <= g.terms.N; i++ {
			stored[i] = g.attempts[i].Marshal()
		}
		for step := range 400 {
			i, j := 1+r.IntN(g.terms.N), 1+r.IntN(g.terms.N)
			if step < 250 && r.IntN(8) == 0 {
				a, err := Restore(stored[i], i, g.keys[i])
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				g.attempts[i] = a
			}
			if i == j {
				continue
			}
			if err := g.exchange(i, j); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			stored[i] = g.attempts[i].Marshal()
		}
		g.checkComplete(t)
		for i := 1; i <= g.terms.N; i++ {
			a, err := Restore(g.attempts[i].Marshal(), i, g.keys[i])
			if err != nil {
				t.Fatal(err)
			}
			if a.Phase() != Complete || len(a.Keys()) != len(g.attempts[i].Keys()) {
				t.Error("a complete state does not survive")
			}
		}
	}
}

func faultOf(err error) int {
	var f *FaultError
	if !errors.As(err, &f) {
		return -1
	}
	return f.Node
}

func TestEquivocatorIsNamed(t *testing.T) {
	g := newGroup(t, 4, 2)
	other := g.start(t, g.attempts[1].statements[Proposal][1], 3) // node 3 again, with another seed
	for i := 1; i <= 4; i++ {
		if i == 3 {
			continue
		}
		g.attempts[i].Add(g.attempts[3].statements[Commit][3])
		if _, err := g.attempts[i].Add(other.statements[Commit][3]); faultOf(err) != 3 {
			t.Errorf("member %d: %v", i, err)
		}
		if !g.attempts[i].ShouldAbandon() {
			t.Error("a dead attempt goes on")
		}
	}
}

func TestWrongRevealIsNamed(t *testing.T) {
	g := newGroup(t, 4, 2)
	for i := 1; i <= 4; i++ {
		for j := 1; j <= 4; j++ {
			g.attempts[i].Add(g.attempts[j].statements[Commit][j])
		}
		g.attempts[i].Step()
	}
	liar := g.attempts[2]
	liar.seed.Expose()[0] ^= 1
	tr, _ := liar.Transcript()
	r, err := liar.Reveal(1, tr)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.attempts[1].AddReveal(2, r); faultOf(err) != 2 {
		t.Errorf("got %v", err)
	}
	// A reveal altered by somebody else convicts nobody of a wrong contribution.
	r.Expose()[10] ^= 1
	if g.attempts[3].AddReveal(2, r); g.attempts[3].revealed[2] != nil {
		t.Error("an altered reveal was taken")
	}
}

func TestNothingIsRevealedEarly(t *testing.T) {
	g := newGroup(t, 3, 2)
	a := g.attempts[1]
	if _, err := a.Reveal(2, [32]byte{}); err == nil {
		t.Error("revealed before all commits were in")
	}
	for j := 2; j <= 3; j++ {
		a.Add(g.attempts[j].statements[Commit][j])
	}
	a.Step()
	tr, _ := a.Transcript()
	if _, err := a.Reveal(2, tr); err != nil {
		t.Error(err)
	}
	tr[0] ^= 1
	if _, err := a.Reveal(2, tr); err == nil {
		t.Error("revealed to a member with other commits")
	}
}

// toChecks brings all members to where they have made their keys.
func (g *group) toChecks(t *testing.T) {
	t.Helper()
	for i := 1; i <= g.terms.N; i++ {
		for j := 1; j <= g.terms.N; j++ {
			g.attempts[i].Add(g.attempts[j].statements[Commit][j])
		}
		g.attempts[i].Step()
	}
	for i := 1; i <= g.terms.N; i++ {
		tr, _ := g.attempts[i].Transcript()
		for j := 1; j <= g.terms.N; j++ {
			if i == j {
				continue
			}
			r, err := g.attempts[j].Reveal(i, tr)
			if err != nil {
				t.Fatal(err)
			}
			if err := g.attempts[i].AddReveal(j, r); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := 1; i <= g.terms.N; i++ {
		g.attempts[i].Step()
		if p := g.attempts[i].Phase(); p != AwaitChecks {
			t.Fatalf("member %d is %v", i, p)
		}
	}
}

func TestWrongKeyCheckIsNamed(t *testing.T) {
	g := newGroup(t, 3, 2)
	g.toChecks(t)
	p := bytes.Clone(g.attempts[2].statements[Check][2].Payload)
	p[32] ^= 1 // its check of the key that it shares with node 1
	g.attempts[2].say(Check, p)
	for _, i := range []int{1, 3} {
		for j := 1; j <= 3; j++ {
			g.attempts[i].Add(g.attempts[j].statements[Check][j])
		}
		_, err := g.attempts[i].Step()
		if want := map[int]int{1: 2, 3: 0}[i]; faultOf(err) != want {
			t.Errorf("member %d: %v, want node %d named", i, err, want)
		}
	}
}

func TestAbandon(t *testing.T) {
	g := newGroup(t, 3, 2)
	if err := g.attempts[2].Abandon(); err != nil {
		t.Fatal(err)
	}
	g.run(2)
	for i := 1; i <= 3; i++ {
		if a := g.attempts[i]; a.ShouldAbandon() {
			if err := a.Abandon(); err != nil {
				t.Fatal(err)
			}
		}
	}
	g.run(2)
	for i := 1; i <= 3; i++ {
		a := g.attempts[i]
		if a.Phase() != Abandoned || a.keys != nil || a.seed.Len() != 0 {
			t.Errorf("member %d: %v", i, a.Phase())
		}
		if b, err := Restore(a.Marshal(), i, g.keys[i]); err != nil || b.Phase() != Abandoned {
			t.Errorf("restore: %v", err)
		}
	}
}

// Who holds the certificate never abandons; who abandoned never takes it.
func TestCertificateAndAbandonExclude(t *testing.T) {
	g := newGroup(t, 3, 2)
	for g.attempts[3].Phase() < AwaitCertificates {
		for i := 1; i <= 3; i++ {
			for j := 1; j <= 3; j++ {
				if i != j && (i == 3 || g.attempts[i].Phase() < AwaitCertificates) {
					if err := g.exchange(i, j); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	if g.attempts[3].ShouldAbandon() {
		t.Error("gives up by itself after it certified")
	}
	if err := g.attempts[3].Abandon(); err != nil {
		t.Fatal(err)
	}
	// Node 3 certified before, so the others can still complete.
	g.run(3)
	if g.attempts[1].Phase() != Complete {
		t.Fatalf("member 1 is %v", g.attempts[1].Phase())
	}
	if err := g.attempts[1].Abandon(); err == nil {
		t.Error("abandoned a complete epoch")
	}
	if changed, err := g.attempts[3].Adopt(g.attempts[1].Certificate()); changed || err != nil || g.attempts[3].Phase() != Abandoning {
		t.Errorf("took the certificate after abandoning: %v %v", changed, err)
	}
}

func TestProposalChecks(t *testing.T) {
	g := newGroup(t, 3, 2)
	p := g.attempts[1].statements[Proposal][1]
	if _, err := Start(p, 2, g.keys[3], secret.New(make([]byte, 32))); err == nil {
		t.Error("started under another node's key")
	}
	bad := *p
	bad.Payload = bytes.Clone(p.Payload)
	bad.Payload[len(bad.Payload)-1] ^= 1
	if _, err := OpenProposal(&bad); err == nil {
		t.Error("altered terms accepted")
	}
	bad = *p
	bad.Sender = 2
	if _, err := OpenProposal(&bad); err == nil {
		t.Error("a proposal in another node's name accepted")
	}
}

func TestRestoreChecksKeys(t *testing.T) {
	g := newGroup(t, 3, 2)
	if err := g.run(5); err != nil {
		t.Fatal(err)
	}
	a := g.attempts[2]
	a.keys[0].Expose()[0] ^= 1
	if _, err := Restore(a.Marshal(), 2, g.keys[2]); !errors.Is(err, ErrKeyCheck) {
		t.Errorf("got %v", err)
	}
}

func FuzzStatement(f *testing.F) {
	g := newGroup(f, 3, 2)
	for _, s := range g.attempts[1].Statements() {
		f.Add(s.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseStatement(b)
		if err != nil {
			if s != nil {
				t.Error("a statement with an error")
			}
			return
		}
		if !bytes.Equal(s.Append(nil), b) {
			t.Error("not canonical")
		}
		if s.Kind == Proposal {
			OpenProposal(s)
		}
	})
}

func FuzzState(f *testing.F) {
	g := newGroup(f, 3, 2)
	f.Add(g.attempts[1].Marshal().Expose())
	if err := g.run(5); err != nil {
		f.Fatal(err)
	}
	f.Add(g.attempts[1].Marshal().Expose())
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Restore(secret.Copy(b), 1, g.keys[1])
		if err == nil && a.Phase() == Complete && !bytes.Equal(a.Marshal().Expose(), b) {
			t.Error("not canonical")
		}
	})
}
