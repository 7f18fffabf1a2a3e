package dkg

import (
	"errors"
	"fmt"
	"slices"

	"go.dedis.ch/kyber/v3"
	pedersen "go.dedis.ch/kyber/v3/share/dkg/pedersen"
	vss "go.dedis.ch/kyber/v3/share/vss/pedersen"
	"go.dedis.ch/kyber/v3/sign/schnorr"
	"golang.org/x/crypto/cryptobyte"

	"github.com/seed-a893640b/tae/internal/secret"
)

// sayKeys makes the ceremony's public keys and commits to the own dealing.
func (r *Run) sayKeys() error {
	b := r.header(PhaseKeys)
	var polys [2][]kyber.Point
	for g := range r.halves {
		h := &r.halves[g]
		h.suite.enter("group key proof")
		sig, err := schnorr.Sign(h.suite, h.long, groupKeyMessage(g, r.params.Session, r.params.Self))
		if err != nil {
			return err
		}
		b = append(append(b, encode(h.group.Point().Mul(h.long, nil))...), sig...)
		if h.poly != nil {
			polys[g] = h.commits()
		}
	}
	var c digest
	if polys[0] != nil {
		c = commitmentTo(r.params.Session, r.params.Self, polys)
	}
	return r.say(PhaseKeys, append(b, c[:]...))
}

// closeKeys has all group keys: kyber can start, and this member deals.
func (r *Run) closeKeys() error {
	for g := range r.halves {
		h := &r.halves[g]
		h.keys = make([]kyber.Point, r.members+1)
		for m := 1; m <= r.members; m++ {
			h.keys[m] = r.in[PhaseKeys][m].keys[g]
			for other := 1; other < m; other++ {
				// Both have proven that they know the secret, so both are to blame.
				if h.keys[m].Equal(h.keys[other]) {
					return r.blame(m, fmt.Sprintf("has the group key of node %d", other))
				}
			}
		}
		h.receiverKeys = h.keys[1 : r.params.N+1]
		if err := r.startKyber(g); err != nil {
			return err
		}
	}
	if r.kyberIndex(r.params.Self) < 0 {
		return nil
	}
	return r.sayDeals()
}

func (r *Run) startKyber(g int) (err error) {
	h := &r.halves[g]
	c := &pedersen.Config{Suite: h.suite, Longterm: h.long, NewNodes: slices.Clone(h.receiverKeys), Threshold: r.params.T,
		Reader: h.suite, UserReaderOnly: true}
	if r.reshare != nil {
		r.reshare.configure(g, r, c)
	}
	h.suite.enter("dealing") // the streams of draw
	h.handler, err = pedersen.NewDistKeyHandler(c)
	return err
}

func (r *Run) sayDeals() error {
	b := appendDigests(r.header(PhaseDeals), r.digests(PhaseKeys))
	for g := range r.halves {
		h := &r.halves[g]
		h.suite.enter("deals", r.transcript(PhaseKeys))
		deals, err := h.handler.Deals()
		if err != nil {
			return err
		}
		b = append(b, byte(r.params.T))
		for _, c := range h.commits() {
			b = append(b, encode(c)...)
		}
		for _, to := range r.receivers(r.params.Self) {
			s, err := h.group.fromKyber(deals[to-1])
			if err != nil {
				return err
			}
			if !h.group.Point().Mul(h.ephemeral(r.transcript(PhaseKeys), to), nil).Equal(s.ephemeral) {
				return errors.New("dkg: internal error: kyber draws in another order")
			}
			b = append(append(append(append(b, encode(s.ephemeral)...), s.keySig...), s.cipher...), s.sig...)
		}
	}
	return r.say(PhaseDeals, b)
}

// closeDeals has all dealings: this member responds.
func (r *Run) closeDeals() error {
	if err := r.checkSeen(PhaseDeals); err != nil {
		return err
	}
	for _, d := range r.senders(PhaseDeals) {
		p := r.in[PhaseDeals][d]
		polys := [2][]kyber.Point{p.halves[0].commits, p.halves[1].commits}
		if commitmentTo(r.params.Session, d, polys) != r.in[PhaseKeys][d].commitment {
			return r.blame(d, "deals other polynomials than it committed to")
		}
		if r.reshare != nil && !r.reshare.continues(d, polys) {
			return r.blame(d, "deals another secret than its old share")
		}
	}
	if !r.receiver() {
		return nil
	}
	b := appendDigests(r.header(PhaseResponses), r.digests(PhaseDeals))
	for _, d := range r.dealersOf(r.params.Self) {
		for g := range r.halves {
			switch err := r.respond(g, d); {
			case errors.Is(err, errDeal):
				b = append(b, 0)
			case err != nil:
				return err
			default:
				b = append(b, 1)
			}
		}
	}
	return r.say(PhaseResponses, b)
}

// respond opens the own share and hands the deal to kyber when it is good.
func (r *Run) respond(g, dealer int) error {
	h := &r.halves[g]
	in := r.in[PhaseDeals][dealer]
	s := in.halves[g].sealed[r.params.Self]
	if _, err := r.open(g, dealer, r.params.Self, h.group.Point().Mul(h.long, s.ephemeral)); err != nil {
		return err
	}
	h.suite.enter("response", in.digest[:])
	response, err := h.handler.ProcessDeal(r.toKyber(dealer, s))
	if err == nil && response.Response.Status != vss.StatusApproval {
		err = errors.New("dkg: internal error: kyber refuses a deal that verifies")
	}
	return err
}

// closeResponses has all responses: who is complained about has to justify.
func (r *Run) closeResponses() error {
	if err := r.checkSeen(PhaseResponses); err != nil {
		return err
	}
	for g := range groups {
		for _, m := range r.senders(PhaseResponses) {
			for _, d := range r.dealersOf(m) {
				if r.in[PhaseResponses][m].approvals[d][g] {
					r.approve(g, d, m)
				} else {
					r.owed[d] = append(r.owed[d], complaint{g, m})
				}
			}
		}
	}
	if owed := r.owed[r.params.Self]; len(owed) > 0 {
		return r.justify(owed)
	}
	return nil
}

// approve tells kyber of an approval. It needs no signature of kyber's: the payload
// that its sender signed names all that it approves.
func (r *Run) approve(g, dealer, receiver int) {
	if r.receiver() {
		r.halves[g].handler.Verifiers()[uint32(r.kyberIndex(dealer))].UnsafeSetResponseDKG(uint32(receiver-1), vss.StatusApproval)
	}
}

func (r *Run) justify(owed []complaint) error {
	b := appendDigests(r.header(PhaseJustifications), r.digests(PhaseResponses))
	c := cryptobyte.NewBuilder(b)
	c.AddUint16(uint16(len(owed)))
	for _, x := range owed {
		c.AddUint8(groups[x.group].id)
		c.AddUint8(uint8(x.receiver))
		c.AddBytes(encode(r.halves[x.group].ephemeral(r.transcript(PhaseKeys), x.receiver)))
	}
	return r.say(PhaseJustifications, c.BytesOrPanic())
}

// closeJustifications has a justification, if one is owed, and judges it; without
// complaints the keys are made. Every complaint ends in a fault, of the dealer or of
// the receiver, so the first one that can be judged is enough.
func (r *Run) closeJustifications() error {
	if err := r.checkSeen(PhaseJustifications); err != nil {
		return err
	}
	for _, d := range r.senders(PhaseJustifications) {
		if p := r.in[PhaseJustifications][d]; p != nil {
			return r.judge(d, p.justified)
		}
	}
	return r.finish()
}

// judge opens the seal of a share with the dealer's secret: what the receiver saw.
func (r *Run) judge(dealer int, given []justified) error {
	for i, owed := range r.owed[dealer] {
		if len(given) != len(r.owed[dealer]) || given[i].complaint != owed {
			return r.blame(dealer, fmt.Sprintf("does not justify what it dealt node %d", owed.receiver))
		}
	}
	j := given[0]
	h := &r.halves[j.group]
	s := r.in[PhaseDeals][dealer].halves[j.group].sealed[j.receiver]
	if !h.group.Point().Mul(j.ephemeral, nil).Equal(s.ephemeral) {
		return r.blame(dealer, fmt.Sprintf("cannot open what it dealt node %d", j.receiver))
	}
	_, err := r.open(j.group, dealer, j.receiver, h.group.Point().Mul(j.ephemeral, h.keys[j.receiver]))
	switch {
	case errors.Is(err, errDeal):
		return r.blame(dealer, fmt.Sprintf("dealt node %d a bad %s share", j.receiver, h.group.name))
	case err != nil:
		return err
	}
	return r.blame(j.receiver, fmt.Sprintf("complains about a good %s share from node %d", h.group.name, dealer))
}

// finish takes the keys from kyber and checks them against what they must be.
func (r *Run) finish() error {
	var polys [2][]kyber.Point
	for g := range r.halves {
		polys[g] = r.combine(g)
		if groups[g].isIdentity(polys[g][0]) {
			return r.blame(0, "the keys of this run are not usable")
		}
		if r.reshare != nil && !polys[g][0].Equal(r.reshare.polys[g][0]) {
			return errors.New("dkg: internal error: the reshare changes the public key")
		}
	}
	result := &Result{Public: publicOf(polys)}
	if r.receiver() {
		var shares [2]secret.Bytes
		for g := range r.halves {
			v, err := r.ownShare(g, polys[g])
			if err != nil {
				return err
			}
			shares[g] = secret.New(encode(v))
		}
		result.Share, result.BLSShare = shares[0], shares[1]
	}
	r.result = result
	return nil
}

func (r *Run) ownShare(g int, poly []kyber.Point) (kyber.Scalar, error) {
	h := &r.halves[g]
	if len(h.handler.QUAL()) != len(r.senders(PhaseDeals)) {
		return nil, errors.New("dkg: internal error: kyber disqualifies a dealer that all approved")
	}
	key, err := h.handler.DistKeyShare()
	if err != nil {
		return nil, err
	}
	same := len(key.Commits) == len(poly) && key.Share.I == r.params.Self-1
	for i := range poly {
		same = same && key.Commits[i].Equal(poly[i])
	}
	if !same || !h.group.fits(poly, r.params.Self, key.Share.V) {
		return nil, errors.New("dkg: internal error: kyber's share is not that of the public polynomials")
	}
	return key.Share.V, nil
}

// combine makes the public polynomial from the dealings: their sum, or in a reshare
// the combination of the first t that reconstructs the old secret.
func (r *Run) combine(g int) []kyber.Point {
	dealers := r.senders(PhaseDeals)
	if r.reshare != nil {
		dealers = r.reshare.first()
	}
	sum := make([]kyber.Point, r.params.T)
	for i := range sum {
		sum[i] = groups[g].Point().Null()
	}
	for _, d := range dealers {
		for i, c := range r.in[PhaseDeals][d].halves[g].commits {
			if r.reshare != nil {
				c = groups[g].Point().Mul(r.reshare.weight(g, d), c)
			}
			sum[i].Add(sum[i], c)
		}
	}
	return sum
}
