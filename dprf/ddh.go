package dprf

import (
	"errors"
	"fmt"
	"math/big"
	"math/bits"

	"github.com/gtank/ristretto255"

	"github.com/seed-a893640b/tae/dprf/ristretto"
	"github.com/seed-a893640b/tae/internal/secret"
)

// ElementSize is the length in bytes of a value of the DDH function, and of a
// scalar or public share.
const ElementSize = ristretto.Size

// groupDST separates our hash to the group from everybody else's (RFC 9380 section
// 3.1).
const groupDST = "tae/v1/ddh-ristretto255_XMD:SHA-512_R255MAP_RO_"

// maxSmallDelta is the largest n for which (n-1)! times a Lagrange coefficient is
// used as a small integer: at most 61 bits.
const maxSmallDelta = 16

// ErrElement reports bytes that are not a canonical group element.
var ErrElement = errors.New("dprf: not a canonical group element")

// Inputs are identities with their hashes to the group, which are computed once and
// serve the answers of all nodes. They are immutable.
type Inputs struct {
	ids    [][IDSize]byte
	points []*ristretto255.Element
}

// NewInputs hashes the identities, at least one.
func NewInputs(ids [][IDSize]byte) *Inputs {
	in := &Inputs{ids: ids, points: make([]*ristretto255.Element, len(ids))}
	for i := range ids {
		in.points[i] = ristretto.HashToGroup(ristretto255.NewElement(), ids[i][:], []byte(groupDST))
	}
	return in
}

// Len is the number of identities.
func (in *Inputs) Len() int { return len(in.ids) }

// Delta is the factor by which shares are divided and combinations multiplied:
// (n-1)! for n up to 16, else 1. With it every Lagrange coefficient of indices 1..n
// becomes an integer, so that a client combines with short multiplications.
func (p Params) Delta() *big.Int {
	if p.N > maxSmallDelta {
		return big.NewInt(1)
	}
	return new(big.Int).MulRange(1, int64(max(p.N-1, 1)))
}

func scalarOf(x *big.Int) *ristretto255.Scalar {
	var q, m big.Int
	q.SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	b := m.Mod(x, &q).FillBytes(make([]byte, 32))
	for i := range 16 { // the library is little endian
		b[i], b[31-i] = b[31-i], b[i]
	}
	s := ristretto255.NewScalar()
	if err := s.Decode(b); err != nil {
		panic("internal error: a reduced integer is a canonical scalar")
	}
	return s
}

// A DDHShare is one node's share of the DDH function, divided by Delta. It is
// immutable and safe for concurrent use.
type DDHShare struct {
	node   int
	k      ristretto255.Scalar
	public [ElementSize]byte // k times the generator
}

// NewDDHShare takes the node's share s_i, a canonical scalar of 32 bytes.
func NewDDHShare(p Params, node int, share secret.Bytes) (*DDHShare, error) {
	s := &DDHShare{node: node}
	if node < 1 || node > p.N || share.Len() != ElementSize || s.k.Decode(share.Expose()) != nil {
		return nil, fmt.Errorf("dprf: no usable share of node %d", node)
	}
	var inverse ristretto255.Scalar
	inverse.Invert(scalarOf(p.Delta()))
	s.k.Multiply(&s.k, &inverse)
	var e ristretto255.Element
	e.ScalarBaseMult(&s.k).Encode(s.public[:0])
	return s, nil
}

// Node is the index of the node.
func (s *DDHShare) Node() int { return s.node }

// PublicShare is the public share as proofs use it.
func (s *DDHShare) PublicShare() [ElementSize]byte { return s.public }

// ProvenShare turns the public share S_i of the public polynomial into the one that
// proofs use, S_i divided by Delta.
func ProvenShare(p Params, public *ristretto255.Element) [ElementSize]byte {
	var inverse ristretto255.Scalar
	inverse.Invert(scalarOf(p.Delta()))
	var out [ElementSize]byte
	new(ristretto255.Element).ScalarMult(&inverse, public).Encode(out[:0])
	return out
}

// Evaluate returns this node's value of every input, encoded. Constant time.
func (s *DDHShare) Evaluate(in *Inputs) [][ElementSize]byte {
	values := make([][ElementSize]byte, in.Len())
	var v ristretto255.Element
	for i, p := range in.points {
		v.ScalarMult(&s.k, p).Encode(values[i][:0])
	}
	return values
}

// Coefficients are the integers Delta lambda_i for the members of q in ascending
// order, lambda_i being the Lagrange coefficient at zero. They are exact.
func (p Params) Coefficients(q Set) []*big.Int {
	nodes := q.Nodes()
	list := make([]*big.Int, len(nodes))
	for a, i := range nodes {
		num, den := p.Delta(), big.NewInt(1)
		for _, j := range nodes {
			if j != i {
				num.Mul(num, big.NewInt(int64(j)))
				den.Mul(den, big.NewInt(int64(j-i)))
			}
		}
		if new(big.Int).Rem(num, den).Sign() == 0 {
			list[a] = num.Quo(num, den)
			continue
		}
		// Without a Delta the coefficient is a fraction modulo the order.
		order := groupOrder()
		list[a] = num.Mul(num, den.ModInverse(den.Mod(den, order), order)).Mod(num, order)
	}
	return list
}

func groupOrder() *big.Int {
	q, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	return q
}

// A Combiner combines the values of one quorum.
type Combiner struct {
	small   []int64                // integer coefficients, or nil
	scalars []*ristretto255.Scalar // otherwise
}

// NewCombiner prepares the coefficients of a quorum.
func NewCombiner(p Params, q Set) *Combiner {
	c := &Combiner{}
	for _, x := range p.Coefficients(q) {
		if p.N <= maxSmallDelta && x.IsInt64() {
			c.small = append(c.small, x.Int64())
		}
		c.scalars = append(c.scalars, scalarOf(x))
	}
	if len(c.small) != len(c.scalars) {
		c.small = nil
	}
	return c
}

// Combine returns the sum of the values, in the order of the quorum's nodes, each
// times its coefficient: the function's value. Variable time: the values are known
// to the client that combines them.
func (c *Combiner) Combine(values []*ristretto255.Element) *ristretto255.Element {
	if c.small == nil {
		return ristretto255.NewElement().VarTimeMultiScalarMult(c.scalars, values)
	}
	return smallSum(c.small, values)
}

// smallSum is Straus's method without tables, from the highest bit set: for short
// integers it costs a tenth of a multiplication by full scalars.
func smallSum(k []int64, points []*ristretto255.Element) *ristretto255.Element {
	signed := make([]ristretto255.Element, len(points))
	magnitude := make([]uint64, len(points))
	top := 0
	for i, x := range k {
		signed[i] = *points[i]
		magnitude[i] = uint64(x)
		if x < 0 {
			signed[i].Negate(points[i])
			magnitude[i] = -magnitude[i]
		}
		top = max(top, bits.Len64(magnitude[i]))
	}
	sum := ristretto255.NewElement()
	for bit := top - 1; bit >= 0; bit-- {
		sum.Add(sum, sum)
		for i := range signed {
			if magnitude[i]>>bit&1 == 1 {
				sum.Add(sum, &signed[i])
			}
		}
	}
	return sum
}

// ParseElement decodes an element; ErrElement when it is not canonical.
func ParseElement(b []byte) (*ristretto255.Element, error) {
	e := ristretto255.NewElement()
	if len(b) != ElementSize || e.Decode(b) != nil {
		return nil, ErrElement
	}
	return e, nil
}
