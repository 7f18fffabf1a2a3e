package dkg

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"go.dedis.ch/kyber/v3"
	"golang.org/x/crypto/cryptobyte"

	"github.com/seed-a893640b/tae/internal/secret"
)

// A Repair gives one index its lost shares back, by t helpers and without a change for
// anybody else. With the Lagrange coefficients l_i of the helpers at the lost index
// the share is the sum of l_i s_i. Helper i adds to its term, for every other helper j,
// a random r_ij that it has sent to j, and takes off the r_ji that j has sent to it.
// The sum stays the same; the terms alone say nothing.
//
//	helper i    Blind    to all helpers and the repaired node: the points r_ij G, signed;
//	                     to j only: r_ij
//	helper i    Sum      to the repaired node only: the masked term
//	            Recover  checks every term against the points and adds them up
//
// The repaired node learns its own share, and nothing about others' even with t-2
// helpers: together they hold t-1 shares then. It must be the node that the keyset's
// certificate has at the index; to know that is for the caller.
//
//	blind   = u8 version = 1 | u8 1 | session 32 | u8 lost index | u8 sender | per other helper: point 32 | point 96
//	private = u8 version = 1 | u8 2 | session 32 | u8 lost index | u8 sender | u8 receiver | r 32 | r 32
//	sum     = u8 version = 1 | u8 3 | session 32 | u8 lost index | u8 sender | per helper: digest 32 of its blind | term 32 | term 32
type Repair struct {
	Public  *Public
	Index   int      // that lost its shares
	Helpers []int    // t indices, ascending
	Session [32]byte // digest that binds keyset, epoch, generation and this repair
}

const (
	repairBlind   = 1
	repairPrivate = 2
	repairSum     = 3
)

func (r *Repair) check() error {
	ok := r.Public != nil && r.Index >= 1 && r.Index <= MaxN && len(r.Helpers) == r.Public.T() && r.Helpers[0] >= 1 &&
		r.Helpers[len(r.Helpers)-1] <= MaxN && !slices.Contains(r.Helpers, r.Index)
	for i := 1; ok && i < len(r.Helpers); i++ {
		ok = r.Helpers[i-1] < r.Helpers[i]
	}
	if !ok {
		return fmt.Errorf("dkg: no repair of index %d by helpers %v", r.Index, r.Helpers)
	}
	return nil
}

func (r *Repair) header(kind byte, members ...int) []byte {
	b := append([]byte{version, kind}, r.Session[:]...)
	b = append(b, byte(r.Index))
	for _, m := range members {
		b = append(b, byte(m))
	}
	return b
}

// body checks the header and returns the rest.
func (r *Repair) body(b []byte, kind byte, members ...int) (cryptobyte.String, error) {
	rest, ok := bytes.CutPrefix(b, r.header(kind, members...))
	if !ok {
		return nil, errPayload
	}
	return cryptobyte.String(rest), nil
}

func (r *Repair) others(self int) []int {
	return slices.DeleteFunc(slices.Clone(r.Helpers), func(h int) bool { return h == self })
}

// mask derives r_ij from the helper's seed.
func (r *Repair) mask(g, self, to int, seed secret.Bytes) kyber.Scalar {
	draw := &randomness{seed: seed, params: Params{Session: r.Session, Self: self}, group: groups[g].id}
	context := []byte{byte(r.Index), byte(to)}
	for _, h := range r.Helpers {
		context = append(context, byte(h))
	}
	draw.enter("repair", context)
	return groups[g].Scalar().Pick(draw.next())
}

func (r *Repair) helper(self int, seed secret.Bytes) error {
	if err := r.check(); err != nil {
		return err
	}
	if !slices.Contains(r.Helpers, self) || seed.Len() != 32 {
		return fmt.Errorf("dkg: node %d does not help, or has no seed of 32 bytes", self)
	}
	return nil
}

// Blind makes a helper's public payload, and the private one for every other helper.
// The seed is 32 random bytes of this repair only, the same for Sum.
func (r *Repair) Blind(self int, seed secret.Bytes) (public []byte, private map[int]secret.Bytes, err error) {
	if err := r.helper(self, seed); err != nil {
		return nil, nil, err
	}
	public = r.header(repairBlind, self)
	private = map[int]secret.Bytes{}
	for _, to := range r.others(self) {
		b := r.header(repairPrivate, self, to)
		for g := range groups {
			m := r.mask(g, self, to, seed)
			public = append(public, encode(groups[g].Point().Mul(m, nil))...)
			b = append(b, encode(m)...)
		}
		private[to] = secret.New(b)
	}
	return public, private, nil
}

// blinding is, by receiver, the points of a helper.
type blinding map[int][2]kyber.Point

func (r *Repair) parseBlind(from int, b []byte) (blinding, error) {
	s, err := r.body(b, repairBlind, from)
	if err != nil {
		return nil, err
	}
	points := blinding{}
	for _, to := range r.others(from) {
		var both [2]kyber.Point
		for g := range groups {
			in := reader{group: &groups[g], s: &s}
			if both[g] = in.point(); in.bad {
				return nil, errPayload
			}
		}
		points[to] = both
	}
	if !s.Empty() {
		return nil, errPayload
	}
	return points, nil
}

// parseBlinds needs those of all helpers. A malformed one is its sender's fault.
func (r *Repair) parseBlinds(public map[int][]byte) (map[int]blinding, []digest, error) {
	all := map[int]blinding{}
	var seen []digest
	for _, h := range r.Helpers {
		b, ok := public[h]
		if !ok {
			return nil, nil, fmt.Errorf("dkg: no blinding of node %d", h)
		}
		points, err := r.parseBlind(h, b)
		if err != nil {
			return nil, nil, &Fault{h, fmt.Sprintf("sent a blinding that %v", err)}
		}
		all[h] = points
		seen = append(seen, digestOf(b))
	}
	return all, seen, nil
}

func readScalars(s *cryptobyte.String) (both [2]kyber.Scalar, err error) {
	for g := range groups {
		in := reader{group: &groups[g], s: s}
		if both[g] = in.scalar(); in.bad {
			return both, errPayload
		}
	}
	if !s.Empty() {
		return both, errPayload
	}
	return both, nil
}

func (r *Repair) parsePrivate(from, to int, b []byte) ([2]kyber.Scalar, error) {
	s, err := r.body(b, repairPrivate, from, to)
	if err != nil {
		return [2]kyber.Scalar{}, err
	}
	return readScalars(&s)
}

func (r *Repair) parseSum(from int, b []byte) (seen []digest, terms [2]kyber.Scalar, err error) {
	s, err := r.body(b, repairSum, from)
	if err != nil {
		return nil, terms, err
	}
	for range r.Helpers {
		var d digest
		if !s.CopyBytes(d[:]) {
			return nil, terms, errPayload
		}
		seen = append(seen, d)
	}
	terms, err = readScalars(&s)
	return seen, terms, err
}

// Sum makes a helper's secret payload for the repaired node, from its shares, all
// public payloads and the private ones for it. A Fault names a helper whose private
// payload is not what its public one says.
func (r *Repair) Sum(self int, share, blsShare, seed secret.Bytes, public map[int][]byte, private map[int]secret.Bytes) (secret.Bytes, error) {
	none := secret.Bytes{}
	if err := r.helper(self, seed); err != nil {
		return none, err
	}
	if err := r.Public.CheckShare(self, share, blsShare); err != nil {
		return none, err
	}
	points, seen, err := r.parseBlinds(public)
	if err != nil {
		return none, err
	}
	own, _, err := r.Blind(self, seed)
	if err != nil {
		return none, err
	}
	if !bytes.Equal(own, public[self]) {
		return none, errors.New("dkg: the own blinding is another one")
	}
	var terms [2]kyber.Scalar
	for g, s := range [2]secret.Bytes{share, blsShare} {
		v, _ := groups[g].decodeScalar(s.Expose())
		terms[g] = v.Mul(v, groups[g].lagrange(r.Helpers, self, r.Index))
	}
	for _, from := range r.others(self) {
		b, ok := private[from]
		if !ok {
			return none, fmt.Errorf("dkg: no blinding for this node from node %d", from)
		}
		masks, err := r.parsePrivate(from, self, b.Expose())
		if err != nil {
			return none, &Fault{from, fmt.Sprintf("sent a private blinding that %v", err)}
		}
		for g := range groups {
			if !groups[g].Point().Mul(masks[g], nil).Equal(points[from][self][g]) {
				return none, &Fault{from, "sent another blinding than it published"}
			}
			terms[g].Add(terms[g], r.mask(g, self, from, seed))
			terms[g].Sub(terms[g], masks[g])
		}
	}
	b := appendDigests(r.header(repairSum, self), seen)
	return secret.New(append(append(b, encode(terms[0])...), encode(terms[1])...)), nil
}

// Recover checks the terms of all helpers and adds them to the lost shares. A Fault
// names a helper whose term is wrong; it names nobody where the helpers may have been
// shown different blindings.
func (r *Repair) Recover(public map[int][]byte, sums map[int]secret.Bytes) (share, blsShare secret.Bytes, err error) {
	none := secret.Bytes{}
	if err := r.check(); err != nil {
		return none, none, err
	}
	polys, err := r.Public.decode()
	if err != nil {
		return none, none, err
	}
	points, seen, err := r.parseBlinds(public)
	if err != nil {
		return none, none, err
	}
	total := [2]kyber.Scalar{groups[0].Scalar().Zero(), groups[1].Scalar().Zero()}
	for _, h := range r.Helpers {
		b, ok := sums[h]
		if !ok {
			return none, none, fmt.Errorf("dkg: no term of node %d", h)
		}
		theirs, terms, err := r.parseSum(h, b.Expose())
		if err != nil {
			return none, none, &Fault{h, fmt.Sprintf("sent a term that %v", err)}
		}
		for i := range seen {
			if theirs[i] != seen[i] {
				return none, none, &Fault{0, fmt.Sprintf("this node and node %d have different blindings of node %d: it showed two, or one of the two is wrong", h, r.Helpers[i])}
			}
		}
		for g := range groups {
			if !groups[g].Point().Mul(terms[g], nil).Equal(r.expected(g, h, polys[g], points)) {
				return none, none, &Fault{h, "sent a wrong term"}
			}
			total[g].Add(total[g], terms[g])
		}
	}
	share, blsShare = secret.New(encode(total[0])), secret.New(encode(total[1]))
	return share, blsShare, r.Public.CheckShare(r.Index, share, blsShare)
}

// expected is the term of a helper times the generator.
func (r *Repair) expected(g, helper int, poly []kyber.Point, points map[int]blinding) kyber.Point {
	sum := groups[g].publicAt(poly, helper)
	sum.Mul(groups[g].lagrange(r.Helpers, helper, r.Index), sum)
	for _, other := range r.others(helper) {
		sum.Add(sum, points[helper][other][g])
		sum.Sub(sum, points[other][helper][g])
	}
	return sum
}
