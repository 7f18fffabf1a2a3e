package ristretto

import (
	"crypto/cipher"
	"errors"
	"io"

	"github.com/gtank/ristretto255"
	"go.dedis.ch/kyber/v3"
)

// A Scalar is an integer modulo the group order. It implements kyber.Scalar: the
// receiver takes the result and is returned. Operations are constant time.
type Scalar struct{ s ristretto255.Scalar }

var errScalar = errors.New("ristretto: not a canonical scalar of 32 bytes")

// NewScalar returns zero.
func NewScalar() *Scalar { return new(Scalar) }

// Inner is the library's scalar, for code that works on many at once.
func (s *Scalar) Inner() *ristretto255.Scalar { return &s.s }

// FromInner wraps a copy of the library's scalar.
func FromInner(x *ristretto255.Scalar) *Scalar { return &Scalar{*x} }

// MarshalBinary is the canonical encoding: 32 bytes, little endian. It is secret
// where the scalar is.
func (s *Scalar) MarshalBinary() ([]byte, error) { return s.s.Encode(nil), nil }

// UnmarshalBinary refuses what is not canonical.
func (s *Scalar) UnmarshalBinary(b []byte) error {
	if len(b) != Size || s.s.Decode(b) != nil {
		return errScalar
	}
	return nil
}

// MarshalSize is 32.
func (s *Scalar) MarshalSize() int { return Size }

// MarshalTo writes the encoding.
func (s *Scalar) MarshalTo(w io.Writer) (int, error) { return w.Write(s.s.Encode(nil)) }

// UnmarshalFrom reads an encoding.
func (s *Scalar) UnmarshalFrom(r io.Reader) (int, error) { return unmarshalFrom(s, r) }

// String redacts: most scalars are secret.
func (s *Scalar) String() string { return "[redacted]" }

// GoString redacts.
func (s *Scalar) GoString() string { return "[redacted]" }

func inner(s kyber.Scalar) *ristretto255.Scalar { return &s.(*Scalar).s }

// Equal compares in constant time.
func (s *Scalar) Equal(o kyber.Scalar) bool { return s.s.Equal(inner(o)) == 1 }

// Set copies a.
func (s *Scalar) Set(a kyber.Scalar) kyber.Scalar { s.s = *inner(a); return s }

// Clone returns a copy.
func (s *Scalar) Clone() kyber.Scalar { c := *s; return &c }

// SetInt64 sets a small integer, which may be negative.
func (s *Scalar) SetInt64(v int64) kyber.Scalar {
	magnitude := uint64(v)
	if v < 0 {
		magnitude = -magnitude
	}
	s.setUint64(magnitude)
	if v < 0 {
		s.s.Negate(&s.s)
	}
	return s
}

func (s *Scalar) setUint64(v uint64) {
	var b [Size]byte
	for i := range 8 {
		b[i] = byte(v >> (8 * i))
	}
	if err := s.s.Decode(b[:]); err != nil {
		panic("internal error: a 64-bit integer is a canonical scalar")
	}
}

// Zero sets 0.
func (s *Scalar) Zero() kyber.Scalar { s.s.Zero(); return s }

// One sets 1.
func (s *Scalar) One() kyber.Scalar { s.setUint64(1); return s }

// Add sets a+b.
func (s *Scalar) Add(a, b kyber.Scalar) kyber.Scalar { s.s.Add(inner(a), inner(b)); return s }

// Sub sets a-b.
func (s *Scalar) Sub(a, b kyber.Scalar) kyber.Scalar { s.s.Subtract(inner(a), inner(b)); return s }

// Neg sets -a.
func (s *Scalar) Neg(a kyber.Scalar) kyber.Scalar { s.s.Negate(inner(a)); return s }

// Mul sets a*b.
func (s *Scalar) Mul(a, b kyber.Scalar) kyber.Scalar { s.s.Multiply(inner(a), inner(b)); return s }

// Div sets a/b; b must not be zero.
func (s *Scalar) Div(a, b kyber.Scalar) kyber.Scalar {
	var i ristretto255.Scalar
	i.Invert(inner(b))
	s.s.Multiply(inner(a), &i)
	return s
}

// Inv sets 1/a; a must not be zero.
func (s *Scalar) Inv(a kyber.Scalar) kyber.Scalar { s.s.Invert(inner(a)); return s }

// Pick sets a uniform scalar from 64 bytes of the stream.
func (s *Scalar) Pick(rand cipher.Stream) kyber.Scalar {
	b := uniform(rand)
	defer clear(b)
	s.s.FromUniformBytes(b)
	return s
}

// SetBytes sets b, little endian and at most 64 bytes, reduced.
func (s *Scalar) SetBytes(b []byte) kyber.Scalar {
	if len(b) > 64 {
		panic("internal error: more than 64 bytes to reduce")
	}
	var wide [64]byte
	copy(wide[:], b)
	s.s.FromUniformBytes(wide[:])
	return s
}

func uniform(rand cipher.Stream) []byte {
	b := make([]byte, 64)
	rand.XORKeyStream(b, b)
	return b
}
