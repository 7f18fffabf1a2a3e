package dkg

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"go.dedis.ch/kyber/v3"
	"go.dedis.ch/kyber/v3/share"

	"github.com/seed-a893640b/tae/internal/secret"
)

// A mending is a repair with all that its helpers say.
type mending struct {
	Repair
	shares  map[int][2]secret.Bytes
	seeds   map[int]secret.Bytes
	public  map[int][]byte
	private map[int]map[int]secret.Bytes // by receiver, sender
}

// mend makes a dealt sharing at one place, which only a test may do, and blinds.
func mend(t *testing.T, th, index int, helpers ...int) *mending {
	t.Helper()
	polys, commits := morePolys(th, nil, nil)
	m := &mending{Repair{publicOf(commits), index, helpers, random32()}, map[int][2]secret.Bytes{}, map[int]secret.Bytes{},
		map[int][]byte{}, map[int]map[int]secret.Bytes{}}
	for i := 1; i <= 8; i++ {
		m.shares[i] = [2]secret.Bytes{secret.New(encode(polys[0].Eval(i - 1).V)), secret.New(encode(polys[1].Eval(i - 1).V))}
		m.private[i] = map[int]secret.Bytes{}
	}
	for _, h := range helpers {
		m.seeds[h] = randomSeed()
		public, private, err := m.Blind(h, m.seeds[h])
		if err != nil {
			t.Fatal(err)
		}
		m.public[h] = public
		for to, b := range private {
			m.private[to][h] = b
		}
	}
	return m
}

func (m *mending) sum(h int) (secret.Bytes, error) {
	return m.Sum(h, m.shares[h][0], m.shares[h][1], m.seeds[h], m.public, m.private[h])
}

func (m *mending) sums(t *testing.T) map[int]secret.Bytes {
	t.Helper()
	sums := map[int]secret.Bytes{}
	for _, h := range m.Helpers {
		s, err := m.sum(h)
		if err != nil {
			t.Fatal(err)
		}
		sums[h] = s
	}
	return sums
}

func TestRepair(t *testing.T) {
	for _, m := range []*mending{mend(t, 2, 2, 1, 3), mend(t, 3, 1, 2, 4, 7), mend(t, 4, 8, 1, 2, 3, 5)} {
		a, b, err := m.Recover(m.public, m.sums(t))
		if err != nil || !a.Equal(m.shares[m.Index][0]) || !b.Equal(m.shares[m.Index][1]) {
			t.Errorf("index %d: %v", m.Index, err)
		}
	}
	m := mend(t, 2, 2, 1, 3)
	for _, bad := range []Repair{{m.Public, 1, []int{1, 3}, m.Session}, {m.Public, 2, []int{1, 3, 4}, m.Session},
		{m.Public, 2, []int{3, 1}, m.Session}, {m.Public, 2, []int{1, 1}, m.Session}, {m.Public, 0, []int{1, 3}, m.Session}, {m.Public, 2, []int{1, 65}, m.Session}} {
		if _, _, err := bad.Blind(1, randomSeed()); err == nil {
			t.Errorf("index %d, helpers %v: accepted", bad.Index, bad.Helpers)
		}
	}
}

func TestRepairLiars(t *testing.T) {
	named := func(what string, err error, node int, reason string) {
		t.Helper()
		var f *Fault
		if !errors.As(err, &f) || f.Node != node || !strings.Contains(f.Reason, reason) {
			t.Errorf("%s: %v", what, err)
		}
	}
	flip := func(b []byte, at int) []byte { b = bytes.Clone(b); b[at] ^= 1; return b }
	m := mend(t, 3, 1, 2, 4, 7)
	good := m.sums(t)
	sums := func(h int, b []byte) map[int]secret.Bytes {
		s := map[int]secret.Bytes{h: secret.New(b)}
		for k, v := range good {
			if k != h {
				s[k] = v
			}
		}
		return s
	}
	s4 := good[4].Expose()
	for g := range 2 {
		_, _, err := m.Recover(m.public, sums(4, flip(s4, len(s4)-64+32*g+16)))
		named("wrong term", err, 4, "wrong term")
	}
	_, _, err := m.Recover(m.public, sums(4, s4[:len(s4)-1]))
	named("short term", err, 4, "malformed")
	_, _, err = m.Recover(m.public, sums(4, good[7].Expose()))
	named("another's term", err, 4, "malformed")

	p := m.private[7][4]
	m.private[7][4] = secret.New(flip(p.Expose(), 50))
	_, err = m.sum(7)
	named("wrong private blinding", err, 4, "another blinding than it published")
	m.private[7][4] = p

	// Helper 4 shows the repaired node another blinding than the helpers: helper 2's
	// term would not fit it, and helper 2 must not be blamed.
	shown := map[int][]byte{2: m.public[2], 7: m.public[7]}
	other, _, _ := m.Blind(4, randomSeed())
	shown[4] = other
	_, _, err = m.Recover(shown, good)
	named("two faces", err, 0, "it showed two")
	shown[4] = other[:40]
	_, _, err = m.Recover(shown, good)
	named("malformed blinding", err, 4, "malformed")
}

// What the repaired node and t-2 helpers see is the same under two sharings in which
// the shares of the others differ, so it does not tell them. (The published points
// hide the masks as a public key hides its secret.) Without masks, as a control, the
// term gives the helper's share away.
func TestRepairShowsNothingElse(t *testing.T) {
	m := mend(t, 3, 1, 2, 4, 7) // helper 2 is corrupt, 4 and 7 are honest
	for g := range groups {
		gr := &groups[g]
		// z vanishes at the t-1 indices that the corrupt hold, 1 and 2.
		z := func(x int64) kyber.Scalar {
			return gr.Scalar().Mul(gr.Scalar().SetInt64(x-1), gr.Scalar().SetInt64(x-2))
		}
		term := func(h int, v kyber.Scalar, masks ...kyber.Scalar) kyber.Scalar { // masks added, taken off
			out := gr.Scalar().Mul(v, gr.lagrange(m.Helpers, h, m.Index))
			for i, k := range masks {
				if i%2 == 0 {
					out.Add(out, k)
				} else {
					out.Sub(out, k)
				}
			}
			return out
		}
		v := map[int]kyber.Scalar{}
		for _, h := range m.Helpers {
			v[h], _ = gr.decodeScalar(m.shares[h][g].Expose())
		}
		mask := func(i, j int) kyber.Scalar { return m.mask(g, i, j, m.seeds[i]) }
		// The terms as Sum makes them.
		for _, h := range []int{4, 7} {
			s, _ := m.sum(h)
			_, terms, err := m.parseSum(h, s.Expose())
			o := 11 - h
			if err != nil || !terms[g].Equal(term(h, v[h], mask(h, 2), mask(2, h), mask(h, o), mask(o, h))) {
				t.Fatal("the test's formula is not the code's", err)
			}
			if terms[g].Equal(term(h, v[h])) {
				t.Error("a term is not masked")
			}
		}
		// Another sharing, and another mask between the honest.
		v4, v7 := gr.Scalar().Add(v[4], z(4)), gr.Scalar().Add(v[7], z(7))
		r47 := gr.Scalar().Sub(mask(4, 7), gr.Scalar().Mul(z(4), gr.lagrange(m.Helpers, 4, m.Index)))
		if !term(4, v4, mask(4, 2), mask(2, 4), r47, mask(7, 4)).Equal(term(4, v[4], mask(4, 2), mask(2, 4), mask(4, 7), mask(7, 4))) ||
			!term(7, v7, mask(7, 2), mask(2, 7), mask(7, 4), r47).Equal(term(7, v[7], mask(7, 2), mask(2, 7), mask(7, 4), mask(4, 7))) {
			t.Errorf("%s: the view tells the sharings apart", gr.name)
		}
		// Both are sharings that give the corrupt the same shares.
		list := []*share.PriShare{{I: 1, V: v[2]}, {I: 3, V: v4}, {I: 6, V: v7}}
		p, err := share.RecoverPriPoly(gr, list, 3, 3)
		own, _ := gr.decodeScalar(m.shares[1][g].Expose())
		if err != nil || !p.Eval(0).V.Equal(own) || p.Eval(3).V.Equal(v[4]) {
			t.Errorf("%s: not another sharing: %v", gr.name, err)
		}
		// Control.
		if got := gr.Scalar().Div(term(4, v[4]), gr.lagrange(m.Helpers, 4, m.Index)); !got.Equal(v[4]) {
			t.Error("control: an unmasked term should give the share away")
		}
	}
}
