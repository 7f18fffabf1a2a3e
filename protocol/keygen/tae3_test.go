package keygen

import (
	"bytes"
	mrand "math/rand/v2"
	"testing"

	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/protocol"
)

func (g *group) checkComplete3(t *testing.T) {
	t.Helper()
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
		share, key, err := a.Shares()
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Certificate().CheckShares(share, key); err != nil {
			t.Error(err)
		}
		b, err := Restore(a.Marshal(), i, g.keys[i])
		if err != nil || b.Phase() != Complete {
			t.Errorf("a complete state does not survive: %v", err)
		}
	}
}

func TestKeyGenerationTAE3(t *testing.T) {
	sizes := [][2]int{{2, 2}, {3, 2}, {5, 3}}
	if testing.Short() {
		sizes = sizes[1:2]
	}
	for _, p := range sizes {
		g := newGroupOf(t, protocol.SuiteTAE3, p[0], p[1])
		if err := g.run(8); err != nil {
			t.Fatal(err)
		}
		g.checkComplete3(t)
	}
}

// Members crash at random moments and say the same again.
func TestCrashesTAE3(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		r := mrand.New(mrand.NewPCG(seed, 3))
		g := newGroupOf(t, protocol.SuiteTAE3, 3, 2)
		stored := make([]secret.Bytes, 4)
		for i := 1; i <= 3; i++ {
			stored[i] = g.attempts[i].Marshal()
		}
		for step := range 150 {
			i, j := 1+r.IntN(3), 1+r.IntN(3)
			if step < 90 && r.IntN(6) == 0 {
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
		g.checkComplete3(t)
	}
}

// A member that signs deals of its own making is named, or the attempt ends with no
// keys; never with different ones.
func TestEquivocatingDealerTAE3(t *testing.T) {
	g := newGroupOf(t, protocol.SuiteTAE3, 3, 2)
	other := g.start(t, g.attempts[1].statements[Proposal][1], 2) // node 2 again, with another seed
	g.attempts[1].Add(g.attempts[2].statements[GroupKeys][2])
	if _, err := g.attempts[1].Add(other.statements[GroupKeys][2]); faultOf(err) != 2 {
		t.Errorf("got %v", err)
	}
	// Node 3 was shown the other keys only: the members notice that they saw different
	// ones, and blame nobody who is honest.
	g.attempts[3].Add(other.statements[GroupKeys][2])
	h := newGroupOf(t, protocol.SuiteTAE3, 3, 2)
	forked := h.start(t, h.attempts[1].statements[Proposal][1], 2)
	h.attempts[1].Add(h.attempts[2].statements[GroupKeys][2])
	h.attempts[3].Add(forked.statements[GroupKeys][2])
	h.attempts[1].Add(h.attempts[3].statements[GroupKeys][3])
	h.attempts[3].Add(h.attempts[1].statements[GroupKeys][1])
	h.attempts[1].Step()
	h.attempts[3].Step()
	if s := h.attempts[1].statements[Deals][1]; s != nil {
		h.attempts[3].Add(s)
	}
	for _, i := range []int{1, 3} {
		if f := h.attempts[i].Fault(); f != nil && f.Node != 0 && f.Node != 2 {
			t.Errorf("member %d blames node %d", i, f.Node)
		}
	}
}
