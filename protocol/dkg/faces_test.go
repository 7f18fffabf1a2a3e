package dkg

import (
	"bytes"
	"errors"
	mrand "math/rand/v2"
	"testing"

	"go.dedis.ch/kyber/v3"
)

// Who shows two things may go unnamed here (its two signatures name it), but nobody
// else is.
func TestTwoFaces(t *testing.T) {
	t.Parallel()
	other := func(r *Run) []byte {
		polys, commits := r.ownPolys()
		return r.forge(commits, func(g, to int) []byte { return r.text(g, to, polys[g], commits[g]) })
	}
	for phase := PhaseKeys; phase <= PhaseResponses; phase++ {
		c := fresh(t, 4, 2)
		c.say = func(p Phase, from, to int, b []byte) []byte {
			if p != phase || from != liar || to != 1 {
				return b
			}
			switch phase {
			case PhaseKeys: // another commitment
				return recommit(c.runs[liar], bytes.Clone(b), [2][]kyber.Point{})
			case PhaseDeals:
				return other(c.runs[liar])
			}
			return complain(0)(c.runs[liar], phase, b)
		}
		c.runPhases(nil)
		for m := 1; m <= 4; m++ {
			_, err := c.runs[m].Result()
			var f *Fault
			if errors.As(err, &f) && f.Node != 0 && f.Node != liar {
				t.Errorf("two %v: member %d blames node %d: %v", phase, m, f.Node, err)
			}
			if m == 1 && f == nil {
				t.Errorf("two %v: the member that was shown others notices nothing", phase)
			}
		}
	}
}

// Whatever a member changes in what it says, no other is blamed, and who ends without
// a fault has good keys.
func TestRandomLies(t *testing.T) {
	t.Parallel()
	rounds := 15
	if testing.Short() {
		rounds = 6
	}
	var old []*Result
	if !testing.Short() {
		old = freshResults(t, 3, 2)
	}
	for range rounds {
		c := fresh(t, 3, 2)
		if old != nil && mrand.IntN(3) == 0 {
			c = reshareOf(t, old, 3, 3, 2, []int{2, 0, 1, 3})
		}
		phase := PhaseKeys + Phase(mrand.IntN(3))
		c.say = func(p Phase, from, to int, b []byte) []byte {
			if p != phase || from != liar || mrand.IntN(2) == 0 {
				return b
			}
			b = bytes.Clone(b)
			switch mrand.IntN(4) {
			case 0:
				return b[:mrand.IntN(len(b))]
			case 1:
				return append(b, byte(mrand.IntN(256)))
			default:
				b[mrand.IntN(len(b))] ^= 1 << mrand.IntN(8)
				return b
			}
		}
		c.runPhases(nil)
		for m := 1; m <= 2; m++ {
			r, err := c.runs[m].Result()
			var f *Fault
			switch {
			case errors.As(err, &f):
				if f.Node != 0 && f.Node != liar {
					t.Errorf("%v: member %d blames node %d: %v", phase, m, f.Node, err)
				}
			case err == nil:
				if err := r.Public.CheckShare(m, r.Share, r.BLSShare); err != nil {
					t.Error(err)
				}
			case !errors.Is(err, errNotDone):
				t.Errorf("%v: member %d: %v", phase, m, err)
			}
		}
	}
}
