package protocol

import (
	"errors"
	"fmt"

	"github.com/gtank/ristretto255"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/dprf/ristretto"
	"github.com/seed-a893640b/tae/sig/bls"
)

// publicKeys are what verifying the answers of a TAE3 epoch needs.
type publicKeys struct {
	proven [][dprf.ElementSize]byte // per node, the public share that its proofs use
	sig    *bls.PublicKey
}

var errPolynomial = errors.New("protocol: the certificate's public polynomials are not valid group elements")

// Prepare computes what every operation under the certificate needs: the layout of
// the keys of TAE1, the verification keys of TAE3. Call it once, before the certificate
// is shared between goroutines.
func (c *Certificate) Prepare() error {
	if c.layout != nil || c.public != nil {
		return nil
	}
	if c.Suite == SuiteTAE1 {
		c.layout = c.Terms.Layout()
		return nil
	}
	poly := make([]*ristretto255.Element, len(c.KeyPoly))
	for i := range poly {
		var err error
		if poly[i], err = dprf.ParseElement(c.KeyPoly[i][:]); err != nil {
			return errPolynomial
		}
	}
	if len(poly) != c.T || len(c.SigPoly) != c.T {
		return errPolynomial
	}
	// A public key that is the identity hides nothing, and with a highest coefficient
	// that is fewer than t shares are enough.
	for _, i := range []int{0, c.T - 1} {
		if poly[i].Equal(ristretto255.NewElement()) == 1 {
			return errPolynomial
		}
		if _, err := bls.ParsePublicKey(c.SigPoly[i][:]); err != nil {
			return errPolynomial
		}
	}
	p := &publicKeys{proven: make([][dprf.ElementSize]byte, c.N+1)}
	for node := 1; node <= c.N; node++ {
		p.proven[node] = dprf.ProvenShare(c.Params(), evaluateAt(poly, node))
	}
	for i := range c.SigPoly {
		if err := new(bls.Point).UnmarshalBinary(c.SigPoly[i][:]); err != nil {
			return errPolynomial
		}
	}
	var err error
	if p.sig, err = bls.ParsePublicKey(c.SigPoly[0][:]); err != nil {
		return errPolynomial
	}
	c.public = p
	return nil
}

// Layout is the structure of the keys of TAE1, as Prepare has computed it.
func (c *Certificate) Layout() *dprf.Layout {
	if c.layout != nil {
		return c.layout
	}
	return c.Terms.Layout()
}

// evaluateAt evaluates a public polynomial at a node's index.
func evaluateAt(poly []*ristretto255.Element, node int) *ristretto255.Element {
	x := new(ristretto.Scalar).SetInt64(int64(node)).(*ristretto.Scalar).Inner()
	v := ristretto255.NewElement()
	for i := len(poly) - 1; i >= 0; i-- {
		v.VarTimeMultiScalarMult([]*ristretto255.Scalar{x}, []*ristretto255.Element{v})
		v.Add(v, poly[i])
	}
	return v
}

// partialKey is the public share that a node's partial signatures verify under.
func (c *Certificate) partialKey(node int) (*bls.PublicKey, error) {
	x := new(bls.Scalar).SetInt64(int64(node))
	v := new(bls.Point).Null()
	for i := c.T - 1; i >= 0; i-- {
		coefficient := new(bls.Point)
		if err := coefficient.UnmarshalBinary(c.SigPoly[i][:]); err != nil {
			return nil, errPolynomial
		}
		v.Mul(x, v.Clone())
		v.Add(v.Clone(), coefficient)
	}
	b, err := v.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return bls.ParsePublicKey(b)
}

// CheckShares checks a node's TAE3 shares against the public polynomials.
func (c *Certificate) CheckShares(share *dprf.DDHShare, key *bls.KeyShare) error {
	if err := c.Prepare(); err != nil {
		return err
	}
	if share.PublicShare() != c.public.proven[share.Node()] {
		return fmt.Errorf("protocol: the share of node %d does not fit the certificate's public polynomial", share.Node())
	}
	want, err := c.partialKey(share.Node())
	if err != nil {
		return err
	}
	if want.Bytes() != key.Public() {
		return fmt.Errorf("protocol: the signature share of node %d does not fit the certificate's public polynomial", share.Node())
	}
	return nil
}
