package ristretto

import (
	"crypto/cipher"
	"encoding/hex"
	"errors"
	"io"

	"github.com/gtank/ristretto255"
	"go.dedis.ch/kyber/v3"
)

// A Point is an element of the group. It implements kyber.Point: the receiver
// takes the result and is returned. Operations are constant time except where
// their names say otherwise.
type Point struct{ e ristretto255.Element }

var errPoint = errors.New("ristretto: not a canonical element of 32 bytes")

// NewPoint returns the identity.
func NewPoint() *Point { return &Point{*ristretto255.NewElement()} }

// Element is the library's element, for code that works on many at once.
func (p *Point) Element() *ristretto255.Element { return &p.e }

// FromElement wraps a copy of the library's element.
func FromElement(e *ristretto255.Element) *Point { return &Point{*e} }

// MarshalBinary is the canonical encoding of RFC 9496: 32 bytes.
func (p *Point) MarshalBinary() ([]byte, error) { return p.e.Encode(nil), nil }

// UnmarshalBinary refuses what is not canonical.
func (p *Point) UnmarshalBinary(b []byte) error {
	if len(b) != Size || p.e.Decode(b) != nil {
		return errPoint
	}
	return nil
}

// MarshalSize is 32.
func (p *Point) MarshalSize() int { return Size }

// MarshalTo writes the encoding.
func (p *Point) MarshalTo(w io.Writer) (int, error) { return w.Write(p.e.Encode(nil)) }

// UnmarshalFrom reads an encoding.
func (p *Point) UnmarshalFrom(r io.Reader) (int, error) { return unmarshalFrom(p, r) }

type unmarshaler interface{ UnmarshalBinary([]byte) error }

func unmarshalFrom(u unmarshaler, r io.Reader) (int, error) {
	b := make([]byte, Size)
	n, err := io.ReadFull(r, b)
	if err != nil {
		return n, err
	}
	return n, u.UnmarshalBinary(b)
}

func (p *Point) String() string { return hex.EncodeToString(p.e.Encode(nil)) }

func element(p kyber.Point) *ristretto255.Element { return &p.(*Point).e }

// Equal compares in constant time.
func (p *Point) Equal(o kyber.Point) bool { return p.e.Equal(element(o)) == 1 }

// Null sets the identity.
func (p *Point) Null() kyber.Point { p.e.Zero(); return p }

// Base sets the generator.
func (p *Point) Base() kyber.Point { p.e.Base(); return p }

// Pick sets a uniform element from 64 bytes of the stream.
func (p *Point) Pick(rand cipher.Stream) kyber.Point {
	p.e.FromUniformBytes(uniform(rand))
	return p
}

// Set copies a.
func (p *Point) Set(a kyber.Point) kyber.Point { p.e = *element(a); return p }

// Clone returns a copy.
func (p *Point) Clone() kyber.Point { c := *p; return &c }

// EmbedLen is 0: no data can be embedded.
func (p *Point) EmbedLen() int { return 0 }

// Embed picks a random element; there is no room for data.
func (p *Point) Embed(_ []byte, rand cipher.Stream) kyber.Point { return p.Pick(rand) }

// Data always fails: no data can be embedded.
func (p *Point) Data() ([]byte, error) {
	return nil, errors.New("ristretto: elements hold no data")
}

// Add sets a+b.
func (p *Point) Add(a, b kyber.Point) kyber.Point { p.e.Add(element(a), element(b)); return p }

// Sub sets a-b.
func (p *Point) Sub(a, b kyber.Point) kyber.Point { p.e.Subtract(element(a), element(b)); return p }

// Neg sets -a.
func (p *Point) Neg(a kyber.Point) kyber.Point { p.e.Negate(element(a)); return p }

// Mul sets s*q, or s times the generator when q is nil.
func (p *Point) Mul(s kyber.Scalar, q kyber.Point) kyber.Point {
	if q == nil {
		p.e.ScalarBaseMult(inner(s))
	} else {
		p.e.ScalarMult(inner(s), element(q))
	}
	return p
}
