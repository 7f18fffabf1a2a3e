package bls

import (
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"math/big"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"go.dedis.ch/kyber/v3"
	"go.dedis.ch/kyber/v3/util/random"
	"go.dedis.ch/kyber/v3/xof/blake2xb"
)

// Sizes in bytes.
const (
	ScalarSize    = fr.Bytes // 32
	PublicKeySize = bls12381.SizeOfG2AffineCompressed
	SignatureSize = bls12381.SizeOfG1AffineCompressed
)

// KeyGroup is G2, where public keys are, for kyber's sharing and key generation. Its
// zero value is ready for use, and it is safe for concurrent use.
type KeyGroup struct{}

func (KeyGroup) String() string { return "bls12-381 g2" }

// ScalarLen is 32.
func (KeyGroup) ScalarLen() int { return ScalarSize }

// Scalar returns a new scalar, zero.
func (KeyGroup) Scalar() kyber.Scalar { return new(Scalar) }

// PointLen is 96.
func (KeyGroup) PointLen() int { return PublicKeySize }

// Point returns a new element, the identity.
func (KeyGroup) Point() kyber.Point { return new(Point) }

// Hash is SHA-256.
func (KeyGroup) Hash() hash.Hash { return sha256.New() }

// XOF is BLAKE2Xb.
func (KeyGroup) XOF(seed []byte) kyber.XOF { return blake2xb.New(seed) }

// RandomStream is the system's randomness.
func (KeyGroup) RandomStream() cipher.Stream { return random.New() }

// A Scalar is an integer modulo the group order. It implements kyber.Scalar. Field
// operations are constant time; inversion is not, and is used on public values and
// on fresh random ones only.
type Scalar struct{ e fr.Element }

var errScalar = errors.New("bls: not a canonical scalar of 32 bytes")

func scalar(s kyber.Scalar) *fr.Element { return &s.(*Scalar).e }

// MarshalBinary is the canonical encoding: 32 bytes, big endian.
func (s *Scalar) MarshalBinary() ([]byte, error) { b := s.e.Bytes(); return b[:], nil }

// UnmarshalBinary refuses what is not canonical.
func (s *Scalar) UnmarshalBinary(b []byte) error {
	if len(b) != ScalarSize || s.e.SetBytesCanonical(b) != nil {
		return errScalar
	}
	return nil
}

// MarshalSize is 32.
func (s *Scalar) MarshalSize() int { return ScalarSize }

// MarshalTo writes the encoding.
func (s *Scalar) MarshalTo(w io.Writer) (int, error) { b := s.e.Bytes(); return w.Write(b[:]) }

// UnmarshalFrom reads an encoding.
func (s *Scalar) UnmarshalFrom(r io.Reader) (int, error) { return unmarshalFrom(s, ScalarSize, r) }

// String redacts: most scalars are secret.
func (s *Scalar) String() string { return "[redacted]" }

// GoString redacts.
func (s *Scalar) GoString() string { return "[redacted]" }

// Equal compares; constant time.
func (s *Scalar) Equal(o kyber.Scalar) bool { var d fr.Element; return d.Sub(&s.e, scalar(o)).IsZero() }

// Set copies a.
func (s *Scalar) Set(a kyber.Scalar) kyber.Scalar { s.e = *scalar(a); return s }

// Clone returns a copy.
func (s *Scalar) Clone() kyber.Scalar { c := *s; return &c }

// SetInt64 sets a small integer, which may be negative.
func (s *Scalar) SetInt64(v int64) kyber.Scalar { s.e.SetInt64(v); return s }

// Zero sets 0.
func (s *Scalar) Zero() kyber.Scalar { s.e.SetZero(); return s }

// One sets 1.
func (s *Scalar) One() kyber.Scalar { s.e.SetOne(); return s }

// Add sets a+b.
func (s *Scalar) Add(a, b kyber.Scalar) kyber.Scalar { s.e.Add(scalar(a), scalar(b)); return s }

// Sub sets a-b.
func (s *Scalar) Sub(a, b kyber.Scalar) kyber.Scalar { s.e.Sub(scalar(a), scalar(b)); return s }

// Neg sets -a.
func (s *Scalar) Neg(a kyber.Scalar) kyber.Scalar { s.e.Neg(scalar(a)); return s }

// Mul sets a*b.
func (s *Scalar) Mul(a, b kyber.Scalar) kyber.Scalar { s.e.Mul(scalar(a), scalar(b)); return s }

// Div sets a/b; b must not be zero.
func (s *Scalar) Div(a, b kyber.Scalar) kyber.Scalar { s.e.Div(scalar(a), scalar(b)); return s }

// Inv sets 1/a; a must not be zero.
func (s *Scalar) Inv(a kyber.Scalar) kyber.Scalar { s.e.Inverse(scalar(a)); return s }

// Pick sets a uniform scalar from 64 bytes of the stream.
func (s *Scalar) Pick(stream cipher.Stream) kyber.Scalar {
	b := make([]byte, 64)
	defer clear(b)
	stream.XORKeyStream(b, b)
	s.e.SetBytes(b)
	return s
}

// SetBytes sets b, big endian, reduced.
func (s *Scalar) SetBytes(b []byte) kyber.Scalar { s.e.SetBytes(b); return s }

// A Point is an element of G2. It implements kyber.Point. Every decoded point is
// checked to lie in the subgroup of prime order.
type Point struct{ p bls12381.G2Affine }

var errPoint = errors.New("bls: not a compressed element of the subgroup G2")

func point(p kyber.Point) *bls12381.G2Affine { return &p.(*Point).p }

// MarshalBinary is the compressed encoding: 96 bytes.
func (p *Point) MarshalBinary() ([]byte, error) { b := p.p.Bytes(); return b[:], nil }

// UnmarshalBinary refuses what is not the compressed encoding of a subgroup element.
func (p *Point) UnmarshalBinary(b []byte) error {
	if !canonical(b, PublicKeySize) {
		return errPoint
	}
	if _, err := p.p.SetBytes(b); err != nil {
		return errPoint
	}
	if again := p.p.Bytes(); string(again[:]) != string(b) {
		return errPoint
	}
	return nil
}

// canonical checks length and the bit that marks the compressed form.
func canonical(b []byte, size int) bool { return len(b) == size && b[0]&0x80 != 0 }

// MarshalSize is 96.
func (p *Point) MarshalSize() int { return PublicKeySize }

// MarshalTo writes the encoding.
func (p *Point) MarshalTo(w io.Writer) (int, error) { b := p.p.Bytes(); return w.Write(b[:]) }

// UnmarshalFrom reads an encoding.
func (p *Point) UnmarshalFrom(r io.Reader) (int, error) { return unmarshalFrom(p, PublicKeySize, r) }

func unmarshalFrom(u interface{ UnmarshalBinary([]byte) error }, size int, r io.Reader) (int, error) {
	b := make([]byte, size)
	n, err := io.ReadFull(r, b)
	if err != nil {
		return n, err
	}
	return n, u.UnmarshalBinary(b)
}

func (p *Point) String() string { b := p.p.Bytes(); return hex.EncodeToString(b[:]) }

// Equal compares public points.
func (p *Point) Equal(o kyber.Point) bool { return p.p.Equal(point(o)) }

// Null sets the identity.
func (p *Point) Null() kyber.Point { p.p.SetInfinity(); return p }

// Base sets the generator.
func (p *Point) Base() kyber.Point { _, _, _, g := bls12381.Generators(); p.p = g; return p }

// Pick sets a random multiple of the generator.
func (p *Point) Pick(stream cipher.Stream) kyber.Point { return p.Mul(new(Scalar).Pick(stream), nil) }

// Set copies a.
func (p *Point) Set(a kyber.Point) kyber.Point { p.p = *point(a); return p }

// Clone returns a copy.
func (p *Point) Clone() kyber.Point { c := *p; return &c }

// EmbedLen is 0: no data can be embedded.
func (p *Point) EmbedLen() int { return 0 }

// Embed picks a random element; there is no room for data.
func (p *Point) Embed(_ []byte, stream cipher.Stream) kyber.Point { return p.Pick(stream) }

// Data always fails: no data can be embedded.
func (p *Point) Data() ([]byte, error) { return nil, errors.New("bls: elements hold no data") }

// Add sets a+b.
func (p *Point) Add(a, b kyber.Point) kyber.Point { p.p.Add(point(a), point(b)); return p }

// Sub sets a-b.
func (p *Point) Sub(a, b kyber.Point) kyber.Point { p.p.Sub(point(a), point(b)); return p }

// Neg sets -a.
func (p *Point) Neg(a kyber.Point) kyber.Point { p.p.Neg(point(a)); return p }

// Mul sets s*q, or s times the generator when q is nil. The library's multiplication
// is not constant time and s may be secret, so it is blinded: (s-r)q + rq.
func (p *Point) Mul(s kyber.Scalar, q kyber.Point) kyber.Point {
	base := new(Point).Base()
	if q != nil {
		base = q
	}
	a, b := blind(scalar(s))
	var x, y bls12381.G2Affine
	x.ScalarMultiplication(point(base), a)
	y.ScalarMultiplication(point(base), b)
	p.p.Add(&x, &y)
	wipe(a, b)
	return p
}

// blind splits a secret into two summands that are uniform each: what the time of
// multiplying by one of them tells is independent of the secret. It protects against
// averaging over many runs, not against one trace of both halves.
func blind(s *fr.Element) (a, b *big.Int) {
	var wide [64]byte
	defer clear(wide[:])
	_, _ = rand.Read(wide[:])
	var r, d fr.Element
	r.SetBytes(wide[:])
	d.Sub(s, &r)
	a, b = new(big.Int), new(big.Int)
	d.BigInt(a)
	r.BigInt(b)
	return a, b
}

func wipe(list ...*big.Int) {
	for _, x := range list {
		clear(x.Bits())
	}
}
