package dkg

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"math/bits"

	"go.dedis.ch/kyber/v3"
	pedersen "go.dedis.ch/kyber/v3/share/dkg/pedersen"

	"github.com/seed-a893640b/tae/dprf/ristretto"
	"github.com/seed-a893640b/tae/internal/labelhash"
	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/sig/bls"
)

const (
	labelStream     = "tae/v1/dkg/stream"
	labelGroupKey   = "tae/v1/dkg/group-key"
	labelCommitment = "tae/v1/dkg/commitment"
	labelPayload    = "tae/v1/dkg/payload"
	labelTranscript = "tae/v1/dkg/transcript"
	labelAbsent     = "tae/v1/dkg/absent"
)

const scalarSize = 32 // in both groups

// A group is one of the two groups, in the order of payloads.
type group struct {
	pedersen.Suite
	id   byte
	name string
}

var groups = [2]group{
	{ristretto.Suite{}, 1, "ristretto255"},
	{bls.KeyGroup{}, 2, "BLS12-381"},
}

func (g *group) signatureLen() int { return g.PointLen() + scalarSize }

// decodePoint decodes a point; the adapters refuse what is not canonical or not in
// the subgroup.
func (g *group) decodePoint(b []byte) (kyber.Point, bool) {
	p := g.Point()
	return p, p.UnmarshalBinary(b) == nil
}

func (g *group) decodeScalar(b []byte) (kyber.Scalar, bool) {
	s := g.Scalar()
	return s, s.UnmarshalBinary(b) == nil
}

func (g *group) isIdentity(p kyber.Point) bool { return p.Equal(g.Point().Null()) }

// encode is for our own points and scalars, whose encoding cannot fail.
func encode(m kyber.Marshaling) []byte {
	b, err := m.MarshalBinary()
	if err != nil {
		panic("internal error: a point or scalar does not encode")
	}
	return b
}

// A randomness draws everything that a member needs from its seed, each purpose and
// context from a stream of its own. So a member that restarts says again what it said
// before, and no nonce ever serves two messages: a context names all that a message
// depends on.
type randomness struct {
	seed    secret.Bytes
	params  Params
	group   byte
	purpose string
	context []byte
	count   uint32
}

// enter starts the streams of one purpose.
func (r *randomness) enter(purpose string, context ...[]byte) {
	r.purpose, r.context, r.count = purpose, nil, 0
	for _, c := range context {
		r.context = append(r.context, c...)
	}
}

func (r *randomness) next() cipher.Stream {
	key := labelhash.New(labelStream).Var(r.seed.Expose()).Fixed(r.params.Session[:]).Byte(byte(r.params.N)).Byte(byte(r.params.T)).
		Byte(byte(r.params.Self)).Byte(r.group).Var([]byte(r.purpose)).Var(r.context).Uint32(r.count).Sum()
	defer clear(key[:])
	r.count++
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("internal error: a hash is an AES-256 key")
	}
	return cipher.NewCTR(block, make([]byte, aes.BlockSize))
}

// Read gives kyber the randomness for a dealer's secret.
func (r *randomness) Read(b []byte) (int, error) {
	clear(b)
	r.next().XORKeyStream(b, b)
	return len(b), nil
}

// A suite is a group for kyber that draws from a member's randomness.
type suite struct {
	*group
	*randomness
}

func (s *suite) RandomStream() cipher.Stream { return s.next() }

// guard keeps a panic of kyber from taking the program down.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("dkg: internal error: %v", p)
		}
	}()
	return f()
}

// publicAt evaluates a public polynomial at an index 1..n, by doubling and adding:
// indices are short and public, and the groups' multiplications are made for secrets.
func (g *group) publicAt(commits []kyber.Point, index int) kyber.Point {
	v := g.Point().Null()
	for i := len(commits) - 1; i >= 0; i-- {
		base := v.Clone()
		v.Null()
		for bit := bits.Len(uint(index)) - 1; bit >= 0; bit-- {
			v.Add(v, v)
			if index>>bit&1 == 1 {
				v.Add(v, base)
			}
		}
		v.Add(v, commits[i])
	}
	return v
}

// fits reports whether a share is that of the public polynomial at an index.
func (g *group) fits(commits []kyber.Point, index int, v kyber.Scalar) bool {
	return g.publicAt(commits, index).Equal(g.Point().Mul(v, nil))
}

// lagrange is the coefficient of an index among some, at x.
func (g *group) lagrange(among []int, index, x int) kyber.Scalar {
	num, den, f := g.Scalar().One(), g.Scalar().One(), g.Scalar()
	for _, j := range among {
		if j != index {
			num.Mul(num, f.SetInt64(int64(x-j)))
			den.Mul(den, f.SetInt64(int64(index-j)))
		}
	}
	return num.Div(num, den)
}

var errNotDone = errors.New("dkg: the run is not done")
