package dkg

import (
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.dedis.ch/kyber/v3"
	"go.dedis.ch/kyber/v3/share"
)

// reshareOf starts a reshare of results, which are by old index.
func reshareOf(t testing.TB, old []*Result, oldN, n, th int, index []int) *cluster {
	t.Helper()
	c := &cluster{t: t, runs: make([]*Run, len(index)+1)}
	session := random32()
	for m := 1; m <= len(index); m++ {
		o := Old{N: oldN, Public: old[1].Public, Index: index}
		if i := index[m-1]; i > 0 {
			o.Share, o.BLSShare = old[i].Share, old[i].BLSShare
		}
		var err error
		if c.runs[m], err = NewReshare(Params{n, th, m, session}, o, randomSeed()); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func freshResults(t testing.TB, n, th int) []*Result {
	c := fresh(t, n, th)
	c.run(inOrder)
	return c.done(n, th)
}

func TestReshare(t *testing.T) {
	t.Parallel()
	old := freshResults(t, 3, 2)
	key := [2]kyber.Point{old[1].Public.key(0), old[1].Public.key(1)}
	n := 3
	for step, c := range []struct {
		n, t  int
		index []int
	}{
		{5, 3, []int{2, 0, 0, 3, 0, 1}}, // 1 leaves, 2 and 3 stay under other indices, three come
		{4, 2, []int{1, 5, 0, 0, 3, 4}}, // old 2 stays as 4 and does not deal
		{4, 2, []int{1, 2, 3, 4}},       // refresh
		{4, 3, []int{0, 0, 0, 0, 4, 2}}, // all new, as few dealers as possible
		{2, 2, []int{4, 0, 1, 3}},
	} {
		if testing.Short() && step == 1 {
			return
		}
		cl := reshareOf(t, old, n, c.n, c.t, c.index)
		cl.run(mrand.IntN)
		results := cl.done(c.n, c.t)
		for g := range groups {
			if !results[1].Public.key(g).Equal(key[g]) {
				t.Fatalf("reshare to (%d,%d) changes the public key", c.n, c.t)
			}
		}
		old, n = results, c.n
	}
}

// After a refresh t-1 old shares and a new one are worth nothing together.
func TestOldSharesAreUseless(t *testing.T) {
	t.Parallel()
	const n, th = 4, 3
	old := freshResults(t, n, th)
	c := reshareOf(t, old, n, n, th, []int{1, 2, 3, 4})
	c.run(inOrder)
	results := c.done(n, th)
	for fresh := range th + 1 { // so many new shares
		mixed := append([]*Result{nil}, old[1:]...)
		for i := 1; i <= fresh; i++ {
			mixed[i] = results[i]
		}
		for g := range groups {
			if got, want := reconstructs(g, mixed, []int{0, 1, 2}), fresh == 0 || fresh == th; got != want {
				t.Errorf("%s: %d new shares and %d old ones reconstruct: %v", groups[g].name, fresh, th-fresh, got)
			}
		}
	}
	for i := 1; i <= n; i++ {
		if results[1].Public.CheckShare(i, old[i].Share, old[i].BLSShare) == nil {
			t.Errorf("the old share of %d fits the new polynomials", i)
		}
	}
}

// A dealer of another secret than its old share is named; without the check its
// dealing would be as good as any, and the key another.
func TestReshareOfAnotherSecret(t *testing.T) {
	t.Parallel()
	old := freshResults(t, 3, 2)
	c := reshareOf(t, old, 3, 3, 2, []int{3, 2, 1}) // the liar is among the first two
	var polys [2]*share.PriPoly
	var commits [2][]kyber.Point
	c.runPhases(func(r *Run, phase Phase, b []byte) []byte {
		switch phase {
		case PhaseKeys:
			polys, commits = morePolys(2, old[1].scalar(0), groups[1].Scalar().One())
			return recommit(r, b, commits)
		case PhaseDeals:
			return r.forge(commits, func(g, to int) []byte { return r.text(g, to, polys[g], commits[g]) })
		}
		return b
	})
	for m := 1; m <= 2; m++ {
		_, err := c.runs[m].Result()
		var f *Fault
		if !errors.As(err, &f) || f.Node != liar || !strings.Contains(f.Reason, "another secret than its old share") {
			t.Errorf("member %d: %v", m, err)
		}
		if r := c.runs[m]; r.combine(1)[0].Equal(old[1].Public.key(1)) == (slices.Contains(r.reshare.first(), liar)) {
			t.Error("control: the liar's dealing should change the key")
		}
	}
}

// In a reshare too a bad share names its dealer and a false complaint its maker, for
// those that leave as well.
func TestReshareLiars(t *testing.T) {
	t.Parallel()
	old := freshResults(t, 3, 2)
	for _, c := range []struct {
		n     int
		index []int // the liar is member 3
		lie   func(*Run, Phase, []byte) []byte
	}{
		{2, []int{0, 2, 1, 3}, badShare(1, wrongShare, honestly)}, // it leaves
		{3, []int{2, 0, 1, 3}, badShare(0, wrongShare, honestly)}, // it stays
		{3, []int{2, 3, 0, 1}, complain(1)},                       // it comes
	} {
		cl := reshareOf(t, old, 3, c.n, 2, c.index)
		cl.runPhases(c.lie)
		for _, m := range []int{1, 2, 4} {
			_, err := cl.runs[m].Result()
			var f *Fault
			if !errors.As(err, &f) || f.Node != liar {
				t.Errorf("%v, member %d: %v", c.index, m, err)
			}
		}
	}
}

func TestParams(t *testing.T) {
	old := freshResults(t, 3, 2)
	for _, p := range []Params{{N: 2, T: 1, Self: 1}, {N: 1, T: 2, Self: 1}, {N: 65, T: 2, Self: 1}, {N: 3, T: 4, Self: 1}, {N: 3, T: 2, Self: 4}, {N: 3, T: 2}} {
		if _, err := New(p, randomSeed()); err == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
	for _, index := range [][]int{{1, 0, 0}, {1, 1, 2}, {1, 2}, {1, 2, 4}, {1, 2, -1}, {1, 2, 3, 0}} {
		if _, err := NewReshare(Params{N: 3, T: 2, Self: 1}, Old{3, old[1].Public, index, old[1].Share, old[1].BLSShare}, randomSeed()); err == nil {
			t.Errorf("a reshare with dealers %v is accepted", index)
		}
	}
	if _, err := NewReshare(Params{N: 3, T: 2, Self: 1}, Old{3, old[1].Public, []int{1, 2, 3}, old[2].Share, old[1].BLSShare}, randomSeed()); !errors.Is(err, ErrShare) {
		t.Error("a wrong old share is dealt:", err)
	}
}

func TestPublic(t *testing.T) {
	r := freshResults(t, 3, 2)[2]
	b := r.Public.Append(nil)
	p, err := ParsePublic(b)
	if err != nil || string(p.Append(nil)) != string(b) {
		t.Fatal(err)
	}
	for i := range b {
		if _, err := ParsePublic(b[:i]); err == nil {
			t.Fatalf("%d bytes of %d are accepted", i, len(b))
		}
	}
	if _, err := ParsePublic(append(b, 0)); err == nil {
		t.Error("a byte more is accepted")
	}
	zero := append([]byte(nil), b...)
	clear(zero[2:34])
	if _, err := ParsePublic(zero); err == nil {
		t.Error("the identity is accepted as a public key")
	}
	if r.Public.CheckShare(1, r.Share, r.BLSShare) == nil || r.Public.CheckShare(2, r.BLSShare, r.Share) == nil ||
		r.Public.CheckShare(0, r.Share, r.BLSShare) == nil {
		t.Error("a share fits another index or group")
	}
	ddh, key, err := r.Public.Shares(2)
	if err != nil || string(ddh[:]) != string(encode(groups[0].Point().Mul(r.scalar(0), nil))) ||
		string(key[:]) != string(encode(groups[1].Point().Mul(r.scalar(1), nil))) {
		t.Error("wrong public shares", err)
	}
	if s := fmt.Sprintf("%v %+v", r, *r); strings.Contains(s, fmt.Sprint(r.Share.Expose())) {
		t.Error("a share is printed")
	}
}
