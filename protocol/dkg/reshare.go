package dkg

import (
	"errors"
	"fmt"
	"slices"

	"go.dedis.ch/kyber/v3"
	"go.dedis.ch/kyber/v3/share"
	pedersen "go.dedis.ch/kyber/v3/share/dkg/pedersen"

	"github.com/seed-a893640b/tae/internal/labelhash"
	"github.com/seed-a893640b/tae/internal/secret"
)

// Old describes the shares that a reshare replaces. The members of a reshare are
// numbered: 1..N are the receivers under their new indices, then come the dealers that
// leave.
type Old struct {
	N      int
	Public *Public // of the epoch; its length is the old threshold

	// Index is, by member, the old index under which it deals, 0 for a member that
	// does not deal. At least the old threshold of members must deal.
	Index []int

	// The own old shares, when this member deals.
	Share, BLSShare secret.Bytes
}

type reshare struct {
	Old
	polys [2][]kyber.Point
}

// NewReshare starts a reshare of one epoch's keys, which stay what they are: same
// public keys, new shares, new N, T and members. With the same members and numbers it is
// a refresh. Old and new shares do not combine. The seed is as in New.
func NewReshare(p Params, old Old, seed secret.Bytes) (*Run, error) {
	if old.Public == nil {
		return nil, errors.New("dkg: no old public polynomials")
	}
	polys, err := old.Public.decode()
	if err != nil {
		return nil, err
	}
	old.Index = slices.Clone(old.Index)
	re := &reshare{old, polys}
	if err := re.check(p); err != nil {
		return nil, err
	}
	var shares [2]kyber.Scalar
	if index := old.Index[p.Self-1]; index > 0 {
		if err := old.Public.CheckShare(index, old.Share, old.BLSShare); err != nil {
			return nil, err
		}
		for g, s := range [2]secret.Bytes{old.Share, old.BLSShare} {
			shares[g], _ = groups[g].decodeScalar(s.Expose())
		}
	}
	return newRun(p, re, shares, seed)
}

func (re *reshare) check(p Params) error {
	t := re.Public.T()
	if t > re.N || re.N > MaxN || len(re.Index) < p.N || len(re.Index) > p.N+re.N {
		return fmt.Errorf("dkg: no reshare of n = %d, t = %d with %d members", re.N, t, len(re.Index))
	}
	if err := p.check(len(re.Index)); err != nil {
		return err
	}
	dealers := map[int]bool{}
	for m, index := range re.Index {
		switch {
		case index < 0 || index > re.N || index > 0 && dealers[index]:
			return fmt.Errorf("dkg: member %d cannot deal under the old index %d", m+1, index)
		case index == 0 && m >= p.N:
			return fmt.Errorf("dkg: member %d neither deals nor receives", m+1)
		case index > 0:
			dealers[index] = true
		}
	}
	if len(dealers) < t {
		return fmt.Errorf("dkg: %d members deal, %d are needed", len(dealers), t)
	}
	return nil
}

// configure tells kyber about the old shares. kyber knows dealers by their place in
// the list of all old members; members that do not deal get keys that nobody uses.
func (re *reshare) configure(g int, r *Run, c *pedersen.Config) {
	h := &r.halves[g]
	c.OldNodes = make([]kyber.Point, re.N)
	for i := range c.OldNodes {
		seed := labelhash.New(labelAbsent).Byte(h.group.id).Fixed(r.params.Session[:]).Byte(byte(i + 1)).Sum()
		c.OldNodes[i] = h.group.Point().Pick(h.group.XOF(seed[:]))
	}
	for m, index := range re.Index {
		if index > 0 {
			c.OldNodes[index-1] = h.keys[m+1]
		}
	}
	c.OldThreshold = re.Public.T()
	c.PublicCoeffs = slices.Clone(re.polys[g])
	if h.oldShare != nil {
		c.Share = &pedersen.DistKeyShare{Commits: slices.Clone(re.polys[g]), Share: &share.PriShare{I: r.kyberIndex(r.params.Self), V: h.oldShare}}
	}
}

// continues reports whether a dealer deals its old share.
func (re *reshare) continues(dealer int, polys [2][]kyber.Point) bool {
	for g := range groups {
		if !groups[g].publicAt(re.polys[g], re.Index[dealer-1]).Equal(polys[g][0]) {
			return false
		}
	}
	return true
}

// first are the dealers whose dealings are combined: as many as the old threshold, by
// old index, as kyber takes them.
func (re *reshare) first() (dealers []int) {
	for m, index := range re.Index {
		if index > 0 {
			dealers = append(dealers, m+1)
		}
	}
	slices.SortFunc(dealers, func(a, b int) int { return re.Index[a-1] - re.Index[b-1] })
	return dealers[:re.Public.T()]
}

func (re *reshare) weight(g, dealer int) kyber.Scalar {
	var among []int
	for _, d := range re.first() {
		among = append(among, re.Index[d-1])
	}
	return groups[g].lagrange(among, re.Index[dealer-1], 0)
}
