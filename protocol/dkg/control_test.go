package dkg

import (
	"fmt"
	"strings"
	"testing"

	"go.dedis.ch/kyber/v3/share"
	pedersen "go.dedis.ch/kyber/v3/share/dkg/pedersen"
	vss "go.dedis.ch/kyber/v3/share/vss/pedersen"
)

// Controls: why the length of the polynomials and justifications are not left to
// kyber.
func TestControlLongerPolynomial(t *testing.T) {
	t.Parallel()
	const n, th = 4, 2
	for g := range groups {
		// The sum of an honest polynomial and one with a coefficient more.
		honest, long := share.NewPriPoly(groups[g], th, nil, groups[g].RandomStream()), share.NewPriPoly(groups[g], th+1, nil, groups[g].RandomStream())
		secret := groups[g].Scalar().Add(honest.Secret(), long.Secret())
		var list []*share.PriShare
		for i := range n {
			list = append(list, &share.PriShare{I: i, V: groups[g].Scalar().Add(honest.Eval(i).V, long.Eval(i).V)})
		}
		if v, _ := share.RecoverSecret(groups[g], list[:th], th, n); v.Equal(secret) {
			t.Error("control: t shares reconstruct although a polynomial was longer")
		}
		if v, _ := share.RecoverSecret(groups[g], list[:th+1], th+1, n); !v.Equal(secret) {
			t.Error("control: t+1 shares should reconstruct")
		}
	}
	// kyber approves such a deal: the threshold that it was told counts for nothing.
	c := fresh(t, 3, 2)
	c.runPhases(only(PhaseResponses, func(*Run, []byte) []byte { return nil }))
	r := c.runs[1]
	h := &r.halves[0]
	poly := share.NewPriPoly(groups[0], 3, nil, groups[0].RandomStream())
	_, list := poly.Commit(nil).Info()
	v, err := vss.NewVerifier(h.suite, h.long, h.keys[2], h.receiverKeys)
	if err != nil {
		t.Fatal(err)
	}
	v.SetThreshold(2)
	if err := v.VerifyDeal(plain(h.sessionID(2, list), 1, poly.Eval(0).V, list), true); err != nil {
		t.Error("control: kyber should take a longer polynomial:", err)
	}
}

func TestControlKyberJustification(t *testing.T) {
	c := fresh(t, 3, 2)
	c.runPhases(only(PhaseResponses, func(*Run, []byte) []byte { return nil }))
	h := &c.runs[1].halves[0]
	v, err := vss.NewVerifier(h.suite, h.long, h.keys[2], h.receiverKeys)
	if err != nil {
		t.Fatal(err)
	}
	poly := share.NewPriPoly(groups[0], 2, nil, groups[0].RandomStream())
	_, list := poly.Commit(nil).Info()
	sid := h.sessionID(2, list)
	bad := groups[0].Scalar().One()
	if v.VerifyDeal(plain(sid, 1, bad, list), true) == nil {
		t.Fatal("a bad share verifies")
	}
	v.UnsafeSetResponseDKG(0, vss.StatusComplaint)
	other := share.NewPriPoly(groups[0], 2, nil, groups[0].RandomStream())
	_, otherList := other.Commit(nil).Info()
	err = v.ProcessJustification(&vss.Justification{SessionID: sid, Index: 0, Deal: plain(sid, 1, other.Eval(0).V, otherList)})
	if err != nil {
		t.Error("control: kyber should take a justification with another polynomial:", err)
	}
	v.UnsafeSetResponseDKG(1, vss.StatusApproval)
	v.UnsafeSetResponseDKG(2, vss.StatusApproval)
	if d := v.Deal(); d == nil || !d.SecShare.V.Equal(bad) {
		t.Error("control: kyber should go on with the bad share")
	}
}

// kyber takes a deal with too few coefficients and panics when it makes the new share
// of it; a deal without a share makes it panic at once.
func TestControlKyberPanics(t *testing.T) {
	old := freshResults(t, 3, 2)
	c := reshareOf(t, old, 3, 3, 2, []int{3, 2, 1})
	c.runPhases(only(PhaseResponses, func(*Run, []byte) []byte { return nil }))
	one, r := c.runs[1], c.runs[liar]
	h := &r.halves[0]
	again := func() *pedersen.DistKeyGenerator {
		if err := one.startKyber(0); err != nil {
			t.Fatal(err)
		}
		return one.halves[0].handler
	}
	deal := func(d *vss.Deal) *pedersen.Deal {
		text, err := encodeDeal(d)
		if err != nil {
			t.Fatal(err)
		}
		x := h.ephemeral(r.transcript(PhaseKeys), 1)
		e := h.group.Point().Mul(x, nil)
		b := r.sealWith(0, e, h.group.Point().Mul(x, h.keys[1]), text)
		return r.toKyber(liar, &sealed{e, b[32:96], b[96 : len(b)-64], b[len(b)-64:]})
	}
	panics := func(f func()) (what string) {
		defer func() {
			if p := recover(); p != nil {
				what = fmt.Sprint(p)
			}
		}()
		f()
		return ""
	}

	constant := share.NewPriPoly(groups[0], 1, old[1].scalar(0), groups[0].RandomStream())
	_, list := constant.Commit(nil).Info()
	short := plain(h.sessionID(liar, list), 1, constant.Secret(), list)
	short.T = 2
	kyber := again()
	if _, err := kyber.ProcessDeal(deal(short)); err != nil {
		t.Fatal("control: kyber should take a deal with too few coefficients:", err)
	}
	for _, d := range []int{1, 2} {
		if _, err := kyber.ProcessDeal(one.toKyber(d, one.in[PhaseDeals][d].halves[0].sealed[1])); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range kyber.Verifiers() {
		for m := range uint32(3) {
			v.UnsafeSetResponseDKG(m, vss.StatusApproval)
		}
	}
	if what := panics(func() { _, _ = kyber.DistKeyShare() }); !strings.Contains(what, "out of range") {
		t.Errorf("control: kyber should panic on a short polynomial: %q", what)
	}
	short.SecShare = nil
	if what := panics(func() { _, _ = again().ProcessDeal(deal(short)) }); what == "" {
		t.Error("control: kyber should panic on a deal without a share")
	}
}

// Why polynomials are committed to before any is seen: who deals last draws again until
// the key pleases it.
func TestControlChosenKey(t *testing.T) {
	honest := groups[0].Point().Pick(groups[0].RandomStream())
	for range 2000 {
		key := groups[0].Point().Mul(groups[0].Scalar().Pick(groups[0].RandomStream()), nil)
		if encode(key.Add(key, honest))[31]&0x7c == 0 {
			return // five bits chosen
		}
	}
	t.Error("control: the last dealer should be able to choose bits of the key")
}
