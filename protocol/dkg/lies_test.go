package dkg

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.dedis.ch/kyber/v3"
	"go.dedis.ch/kyber/v3/share"
	"go.dedis.ch/kyber/v3/sign/schnorr"
)

const liar = 3

// runPhases delivers phase by phase. A lie changes what the liar says to everybody,
// and the liar's own state with it, so that it goes on consistently.
func (c *cluster) runPhases(lie func(r *Run, phase Phase, b []byte) []byte) {
	for phase := PhaseKeys; phase < PhaseDone; phase++ {
		payloads := map[int][]byte{}
		for from, r := range c.runs {
			if from == 0 {
				continue
			}
			b := r.Say(phase)
			if from == liar && lie != nil {
				if b = lie(r, phase, bytes.Clone(b)); b != nil {
					if p, err := r.parse(phase, liar, b); err == nil {
						r.own[phase], r.in[phase][liar] = b, p
					}
				}
			}
			payloads[from] = b
		}
		for to := 1; to < len(c.runs); to++ {
			for from := 1; from < len(c.runs); from++ {
				b := payloads[from]
				if b != nil && c.say != nil {
					b = c.say(phase, from, to, b)
				}
				if b != nil && from != to {
					_ = c.runs[to].Add(phase, from, b)
				}
			}
		}
	}
}

// forge makes a deals payload of its own polynomials and deals.
func (r *Run) forge(commits [2][]kyber.Point, text func(g, to int) []byte) []byte {
	b := appendDigests(r.header(PhaseDeals), r.digests(PhaseKeys))
	for g := range r.halves {
		b = append(b, byte(len(commits[g])))
		for _, c := range commits[g] {
			b = append(b, encode(c)...)
		}
		for _, to := range r.receivers(r.params.Self) {
			b = append(b, r.seal(g, to, text(g, to))...)
		}
	}
	return b
}

// seal seals any text as kyber's dealer seals deals, under the same ephemeral key.
func (r *Run) seal(g, to int, text []byte) []byte {
	h := &r.halves[g]
	x := h.ephemeral(r.transcript(PhaseKeys), to)
	return r.sealWith(g, h.group.Point().Mul(x, nil), h.group.Point().Mul(x, h.keys[to]), text)
}

func (r *Run) sealWith(g int, ephemeral, dh kyber.Point, text []byte) []byte {
	h, e := &r.halves[g], encode(ephemeral)
	gcm, context, err := h.aead(r.params.Self, dh)
	if err != nil {
		panic(err)
	}
	cipher := gcm.Seal(nil, make([]byte, nonceSize), text, context)
	s1, _ := schnorr.Sign(h.group, h.long, e)
	s2, _ := schnorr.Sign(h.group, h.long, signedDeal(r.kyberIndex(r.params.Self), cipher))
	return append(append(append(e, s1...), cipher...), s2...)
}

// text is what an honest dealer with these polynomials seals.
func (r *Run) text(g, to int, poly *share.PriPoly, commits []kyber.Point) []byte {
	b, err := encodeDeal(plain(r.halves[g].sessionID(r.params.Self, commits), to, poly.Eval(to-1).V, commits))
	if err != nil {
		panic(err)
	}
	return b
}

func (r *Run) ownPolys() (polys [2]*share.PriPoly, commits [2][]kyber.Point) {
	for g := range r.halves {
		polys[g], commits[g] = r.halves[g].poly, r.halves[g].commits()
	}
	return polys, commits
}

// recommit makes the liar's group keys commit to other polynomials.
func recommit(r *Run, b []byte, polys [2][]kyber.Point) []byte {
	c := commitmentTo(r.params.Session, r.params.Self, polys)
	return append(b[:len(b)-32], c[:]...)
}

func morePolys(t int, g0, g1 kyber.Scalar) (polys [2]*share.PriPoly, commits [2][]kyber.Point) {
	for g, constant := range [2]kyber.Scalar{g0, g1} {
		polys[g] = share.NewPriPoly(groups[g], t, constant, groups[g].RandomStream())
		_, commits[g] = polys[g].Commit(nil).Info()
	}
	return polys, commits
}

// only lets a lie tell in one phase.
func only(phase Phase, f func(r *Run, b []byte) []byte) func(*Run, Phase, []byte) []byte {
	return func(r *Run, p Phase, b []byte) []byte {
		if p == phase {
			return f(r, b)
		}
		return b
	}
}

// badShare deals member 1 a share in group g that text makes; the liar justifies by
// justify.
func badShare(g int, text func(r *Run, good []byte) []byte, justify func(r *Run, b []byte) []byte) func(*Run, Phase, []byte) []byte {
	return func(r *Run, phase Phase, b []byte) []byte {
		switch phase {
		case PhaseDeals:
			polys, commits := r.ownPolys()
			return r.forge(commits, func(gg, to int) []byte {
				good := r.text(gg, to, polys[gg], commits[gg])
				if gg == g && to == 1 {
					return text(r, good)
				}
				return good
			})
		case PhaseJustifications:
			return justify(r, b)
		}
		return b
	}
}

func wrongShare(_ *Run, good []byte) []byte {
	b := bytes.Clone(good)
	b[shareAt+16] ^= 1
	return b
}

func honestly(_ *Run, b []byte) []byte { return b }

func longer(by int) func(*Run, Phase, []byte) []byte {
	var polys [2]*share.PriPoly
	var commits [2][]kyber.Point
	return func(r *Run, phase Phase, b []byte) []byte {
		switch phase {
		case PhaseKeys:
			polys, commits = morePolys(r.params.T+by, nil, nil)
			return recommit(r, b, commits)
		case PhaseDeals:
			return r.forge(commits, func(g, to int) []byte { return r.text(g, to, polys[g], commits[g]) })
		}
		return b
	}
}

// complain makes the liar complain about dealer 1 in one group.
func complain(g int) func(*Run, Phase, []byte) []byte {
	return only(PhaseResponses, func(r *Run, _ []byte) []byte {
		b := appendDigests(r.header(PhaseResponses), r.digests(PhaseDeals))
		for _, d := range r.dealersOf(liar) {
			approvals := []byte{1, 1}
			if d == 1 {
				approvals[g] = 0
			}
			b = append(b, approvals...)
		}
		return b
	})
}

var lies = []struct {
	name, reason string
	lie          func(*Run, Phase, []byte) []byte
}{
	{"wrong share", "dealt node 1 a bad ristretto255 share", badShare(0, wrongShare, honestly)},
	{"wrong BLS share", "dealt node 1 a bad BLS12-381 share", badShare(1, wrongShare, honestly)},
	{"wrong share, empty justification", "does not justify", badShare(0, wrongShare, func(r *Run, _ []byte) []byte {
		return append(appendDigests(r.header(PhaseJustifications), r.digests(PhaseResponses)), 0, 0)
	})},
	{"wrong share, wrong justification", "cannot open", badShare(1, wrongShare, func(_ *Run, b []byte) []byte { b[len(b)-1] ^= 1; return b })},
	{"wrong share, another justified", "does not justify", badShare(0, wrongShare, func(_ *Run, b []byte) []byte { b[len(b)-33] = 2; return b })},
	{"other coefficients for one member", "dealt node 1 a bad ristretto255 share", badShare(0, func(r *Run, _ []byte) []byte {
		polys, commits := morePolys(r.params.T, nil, nil)
		return r.text(0, 1, polys[0], commits[0])
	}, honestly)},
	{"garbage in a seal", "dealt node 1 a bad BLS12-381 share", badShare(1, func(_ *Run, b []byte) []byte { _, _ = rand.Read(b); return b }, honestly)},
	{"another receiver's share in a seal", "dealt node 1 a bad ristretto255 share", badShare(0, func(r *Run, _ []byte) []byte {
		polys, commits := r.ownPolys()
		return r.text(0, 2, polys[0], commits[0])
	}, honestly)},
	{"a coefficient too few", "another number of coefficients", longer(-1)},
	{"a coefficient too many", "another number of coefficients", longer(1)},
	{"coefficients that it did not commit to", "other polynomials than it committed to", only(PhaseDeals, func(r *Run, _ []byte) []byte {
		polys, commits := morePolys(r.params.T, nil, nil)
		return r.forge(commits, func(g, to int) []byte { return r.text(g, to, polys[g], commits[g]) })
	})},
	{"garbage for deals", "malformed", only(PhaseDeals, func(r *Run, b []byte) []byte { _, _ = rand.Read(b[headerSize+32*r.members+1:]); return b })},
	{"no deals", "malformed", only(PhaseDeals, func(r *Run, _ []byte) []byte { return r.header(PhaseDeals) })},
	{"a byte more", "malformed", only(PhaseDeals, func(_ *Run, b []byte) []byte { return append(b, 0) })},
	{"no seal for the last member", "malformed", only(PhaseDeals, func(_ *Run, b []byte) []byte { return b[:len(b)-1] })},
	{"another version", "malformed", only(PhaseKeys, func(_ *Run, b []byte) []byte { b[0]++; return b })},
	{"an identity as group key", "malformed", only(PhaseKeys, func(_ *Run, b []byte) []byte { clear(b[headerSize:][:32]); return b })},
	{"complains about a good share", "complains about a good ristretto255 share from node 1", complain(0)},
	{"complains about a good BLS share", "complains about a good BLS12-381 share from node 1", complain(1)},
	{"garbage for responses", "malformed", only(PhaseResponses, func(_ *Run, b []byte) []byte { b[len(b)-1] = 2; return b })},
}

func TestLiars(t *testing.T) {
	for i, c := range lies {
		if testing.Short() && i%4 != 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, p := range [][2]int{{3, 2}, {5, 3}} {
				if p[0] > 3 && (testing.Short() || i%9 != 0) {
					continue
				}
				cl := fresh(t, p[0], p[1])
				cl.runPhases(c.lie)
				for m := 1; m <= p[0]; m++ {
					if m == liar {
						continue
					}
					_, err := cl.runs[m].Result()
					var f *Fault
					if !errors.As(err, &f) || f.Node != liar || !strings.Contains(f.Reason, c.reason) {
						t.Errorf("(%d,%d), member %d: %v", p[0], p[1], m, err)
					}
				}
			}
		})
	}
}

// Nobody can take another's group key, or say for itself what another has proven.
func TestStolenGroupKey(t *testing.T) {
	c := fresh(t, 3, 2)
	c.runPhases(only(PhaseKeys, func(r *Run, b []byte) []byte {
		copy(b[headerSize:len(b)-32], c.runs[1].Say(PhaseKeys)[headerSize:])
		return b
	}))
	_, err := c.runs[1].Result()
	var f *Fault
	if !errors.As(err, &f) || f.Node != liar || !strings.Contains(f.Reason, "without proof") {
		t.Error(err)
	}
}

// A liar repeats member 1's ephemeral key to member 2, to have what member 1 sealed
// for member 2 opened in the quarrel. It cannot justify and is named. As a control:
// had the receiver to prove its complaint with the point that opens the liar's seal,
// that point would open member 1's.
func TestCopiedEphemeralKey(t *testing.T) {
	t.Parallel()
	c := fresh(t, 3, 2)
	one, two := c.runs[1], c.runs[2]
	c.runPhases(func(r *Run, phase Phase, b []byte) []byte {
		if phase != PhaseDeals {
			return b
		}
		e := one.in[PhaseDeals][1].halves[0].sealed[2].ephemeral
		polys, commits := r.ownPolys()
		forged := r.forge(commits, func(g, to int) []byte { return r.text(g, to, polys[g], commits[g]) })
		p, _ := r.parse(PhaseDeals, liar, forged)
		s := p.halves[0].sealed[2]
		old := append(append(append(encode(s.ephemeral), s.keySig...), s.cipher...), s.sig...)
		return bytes.Replace(forged, old, r.sealWith(0, e, r.halves[0].group.Point().Base(), make([]byte, len(s.cipher)-gcmTag)), 1)
	})
	for m := 1; m <= 2; m++ {
		_, err := c.runs[m].Result()
		var f *Fault
		if !errors.As(err, &f) || f.Node != liar || !strings.Contains(f.Reason, "cannot open what it dealt node 2") {
			t.Errorf("member %d: %v", m, err)
		}
	}
	h := &two.halves[0]
	point := h.group.Point().Mul(h.long, two.in[PhaseDeals][liar].halves[0].sealed[2].ephemeral)
	if v, err := c.runs[liar].open(0, 1, 2, point); err != nil || !v.Equal(one.halves[0].poly.Eval(1).V) {
		t.Error("control: the point should open member 1's share for member 2:", err)
	}
}

// A dealer that owes a justification and is silent is missing by name.
func TestMissingJustification(t *testing.T) {
	c := fresh(t, 3, 2)
	c.runPhases(badShare(1, wrongShare, func(*Run, []byte) []byte { return nil }))
	for m := 1; m <= 2; m++ {
		if p, list := c.runs[m].Phase(), fmt.Sprint(c.runs[m].Missing(PhaseJustifications)); p != PhaseJustifications || list != "[3]" {
			t.Errorf("member %d waits for %v of %s", m, p, list)
		}
	}
}

// Payloads of another session are the sender's fault, with and without its header.
func TestReplay(t *testing.T) {
	t.Parallel()
	old := fresh(t, 3, 2)
	old.runPhases(nil)
	for phase := PhaseKeys; phase <= PhaseResponses; phase++ {
		for _, patch := range []bool{false, true} {
			c := fresh(t, 3, 2)
			c.runPhases(only(phase, func(r *Run, b []byte) []byte {
				replay := bytes.Clone(old.runs[liar].Say(phase))
				if patch {
					copy(replay, r.header(phase))
					copy(replay[headerSize:], b[headerSize:headerSize+32*len(r.senders(phase-1))])
				}
				return replay
			}))
			_, err := c.runs[1].Result()
			var f *Fault
			if phase == PhaseResponses && patch { // approvals hold nothing of the session but what was patched
				continue
			}
			if !errors.As(err, &f) || f.Node != liar {
				t.Errorf("replayed %v, patched %v: %v", phase, patch, err)
			}
		}
	}
}
