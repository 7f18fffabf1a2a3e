package dprf

import (
	"crypto/rand"
	"math/big"

	"github.com/gtank/ristretto255"

	"github.com/seed-a893640b/tae/internal/labelhash"
)

// A Statement is what a batch proof is about. Everything in it is hashed before any
// weight is drawn: with weights that depend on single items, as in RFC 9497, a lying
// node could search for a batch in which wrong values cancel.
type Statement struct {
	Operation  uint8
	Keyset     [16]byte
	Suite      uint8
	Epoch      uint16
	Generation uint32
	Node       uint8
	Public     [ElementSize]byte // the public share as proven
	// Positions are the places of the inputs in the request that is answered.
	Positions []uint16
	Inputs    *Inputs
	Values    [][ElementSize]byte // of each input
}

const (
	labelStatementDDH = "tae/v1/ddh/statement"
	labelWeight       = "tae/v1/ddh/weight"
	labelNonce        = "tae/v1/ddh/nonce"
	labelChallenge    = "tae/v1/ddh/challenge"

	// ProofSize is the length of a batch proof in bytes: challenge and response.
	ProofSize = 64
)

// seed hashes the whole statement.
func (s *Statement) seed() [32]byte {
	h := labelhash.New(labelStatementDDH).Byte(s.Operation).Fixed(s.Keyset[:]).Byte(s.Suite).Uint16(s.Epoch).
		Uint32(s.Generation).Byte(s.Node).Fixed(s.Public[:]).Uint32(uint32(s.Inputs.Len()))
	for i := range s.Inputs.ids {
		h.Uint16(s.Positions[i]).Fixed(s.Inputs.ids[i][:])
	}
	for i := range s.Values {
		h.Fixed(s.Values[i][:])
	}
	return h.Sum()
}

// weights are the coefficients of the composites: 1, then 128 bits each from the
// seed. A false statement passes with probability 2^-128 per trial of the seed.
func weights(seed *[32]byte, count int) []*ristretto255.Scalar {
	list := make([]*ristretto255.Scalar, count)
	list[0] = scalarOf(big.NewInt(1))
	var b [ElementSize]byte
	for i := 1; i < count; i++ {
		w := labelhash.New(labelWeight).Fixed(seed[:]).Uint32(uint32(i)).Sum()
		copy(b[:16], w[:16])
		list[i] = ristretto255.NewScalar()
		if err := list[i].Decode(b[:]); err != nil {
			panic("internal error: 128 bits are a canonical scalar")
		}
	}
	return list
}

// msmChunk is how many points a multi-scalar multiplication takes at once: its
// tables leave the cache beyond.
const msmChunk = 256

func weighted(w []*ristretto255.Scalar, points []*ristretto255.Element) *ristretto255.Element {
	if len(points) == 1 { // the weight is 1
		e := *points[0]
		return &e
	}
	sum := ristretto255.NewElement()
	for len(points) > 0 {
		n := min(msmChunk, len(points))
		sum.Add(sum, ristretto255.NewElement().VarTimeMultiScalarMult(w[:n], points[:n]))
		w, points = w[n:], points[n:]
	}
	return sum
}

// wide hashes to 64 bytes and reduces them to a scalar.
func wide(label string, fields ...[]byte) *ristretto255.Scalar {
	var b [64]byte
	defer clear(b[:])
	for half := range 2 {
		h := labelhash.New(label).Byte(byte(half))
		for _, f := range fields {
			h.Fixed(f)
		}
		sum := h.Sum()
		copy(b[32*half:], sum[:])
	}
	return ristretto255.NewScalar().FromUniformBytes(b[:])
}

// Prove proves that every value of the statement is the share times the hash of its
// input. One proof serves any number of items.
func (s *DDHShare) Prove(st *Statement) [ProofSize]byte {
	var system [32]byte
	_, _ = rand.Read(system[:])
	return s.prove(st, &system)
}

func (s *DDHShare) prove(st *Statement, system *[32]byte) (proof [ProofSize]byte) {
	points := st.Inputs.points
	seed := st.seed()
	a := weighted(weights(&seed, len(points)), points)
	b := ristretto255.NewElement().ScalarMult(&s.k, a)
	ea, eb := a.Encode(nil), b.Encode(nil)
	key := s.k.Encode(nil)
	defer clear(key)
	// The nonce also hashes share and statement, so that a bad random number
	// generator does not repeat it over different statements.
	r := wide(labelNonce, key, system[:], seed[:], ea, eb)
	t1 := ristretto255.NewElement().ScalarBaseMult(r)
	t2 := ristretto255.NewElement().ScalarMult(r, a)
	c := challenge(&seed, ea, eb, t1, t2)
	response := ristretto255.NewScalar().Multiply(c, &s.k)
	response.Subtract(r, response)
	c.Encode(proof[:0])
	response.Encode(proof[:32])
	return proof
}

func challenge(seed *[32]byte, a, b []byte, t1, t2 *ristretto255.Element) *ristretto255.Scalar {
	return wide(labelChallenge, seed[:], a, b, t1.Encode(nil), t2.Encode(nil))
}

// Verify checks a batch proof and returns the decoded values. It works on public
// data and is not constant time.
func (st *Statement) Verify(proof []byte) ([]*ristretto255.Element, bool) {
	points := st.Inputs.points
	public, err := ParseElement(st.Public[:])
	if err != nil || len(points) == 0 || len(points) != len(st.Values) || len(points) != len(st.Positions) || len(proof) != ProofSize {
		return nil, false
	}
	values := make([]*ristretto255.Element, len(st.Values))
	for i := range values {
		if values[i], err = ParseElement(st.Values[i][:]); err != nil {
			return nil, false
		}
	}
	var c, s ristretto255.Scalar
	if c.Decode(proof[:32]) != nil || s.Decode(proof[32:]) != nil {
		return nil, false
	}
	seed := st.seed()
	w := weights(&seed, len(points))
	a, b := weighted(w, points), weighted(w, values)
	t1 := ristretto255.NewElement().VarTimeDoubleScalarBaseMult(&c, public, &s)
	t2 := ristretto255.NewElement().VarTimeMultiScalarMult([]*ristretto255.Scalar{&s, &c}, []*ristretto255.Element{a, b})
	return values, challenge(&seed, a.Encode(nil), b.Encode(nil), t1, t2).Equal(&c) == 1
}
