package ristretto

import (
	"bytes"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/gtank/ristretto255"
)

// unhex is a byte string that JSON writes in hexadecimal.
type unhex []byte

func (u *unhex) UnmarshalText(b []byte) (err error) {
	*u, err = hex.DecodeString(string(b))
	return err
}

func vectors(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

func bin(t *testing.T, m interface{ MarshalBinary() ([]byte, error) }) []byte {
	t.Helper()
	b, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func pointOf(t *testing.T, b []byte) *Point {
	t.Helper()
	p := NewPoint()
	if err := p.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	return p
}

func scalarOf(t *testing.T, b []byte) *Scalar {
	t.Helper()
	s := NewScalar()
	if err := s.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	return s
}

// The vectors of RFC 9496 appendix A on the adapter.
func TestRFC9496(t *testing.T) {
	var v struct {
		Multiples, Invalid []unhex
		Map                []struct{ In, Out unhex }
	}
	vectors(t, "rfc9496.json", &v)
	if len(v.Multiples) != 16 || len(v.Invalid) != 29 || len(v.Map) != 11 {
		t.Fatal("vectors are missing")
	}
	sum := NewPoint()
	for i, want := range v.Multiples {
		if got := bin(t, NewPoint().Mul(NewScalar().SetInt64(int64(i)), nil)); !bytes.Equal(got, want) {
			t.Errorf("%d times the generator is %x", i, got)
		}
		if got := bin(t, sum); !bytes.Equal(got, want) || !sum.Equal(pointOf(t, want)) {
			t.Errorf("the sum of %d generators is %x", i, got)
		}
		sum.Add(sum, NewPoint().Base())
		if neg := NewPoint().Mul(NewScalar().SetInt64(-int64(i)), nil); !neg.Equal(NewPoint().Neg(pointOf(t, want))) {
			t.Errorf("-%d times the generator is wrong", i)
		}
	}
	for _, b := range v.Invalid {
		if NewPoint().UnmarshalBinary(b) == nil {
			t.Errorf("%x is accepted", b)
		}
	}
	for _, m := range v.Map {
		e := ristretto255.NewElement().FromUniformBytes(m.In)
		if got := bin(t, FromElement(e)); !bytes.Equal(got, m.Out) {
			t.Errorf("%x maps to %x", m.In, got)
		}
	}
}

// expand_message_xmd with SHA-512, RFC 9380 appendix K.3.
func TestRFC9380(t *testing.T) {
	var v struct {
		DST     string
		Vectors []struct {
			Msg string
			Len int
			Out unhex
		}
	}
	vectors(t, "rfc9380-k3.json", &v)
	if len(v.Vectors) != 10 {
		t.Fatal("vectors are missing")
	}
	for _, x := range v.Vectors {
		out := make([]byte, x.Len)
		expandXMD(out, []byte(x.Msg), []byte(v.DST))
		if !bytes.Equal(out, x.Out) {
			t.Errorf("%q to %d bytes: %x", x.Msg, x.Len, out)
		}
	}
}

// The verifiable mode of RFC 9497 for ristretto255-SHA512 (appendix A.1.2): our group
// and hashing reproduce blinded and evaluated elements and, by the RFC's own formulas,
// the published proofs.
func TestRFC9497(t *testing.T) {
	var v struct {
		DST, SK, PK unhex
		Vectors     []struct {
			Input, Blind, Blinded, Evaluated []unhex
			Proof, R                         unhex
		}
	}
	vectors(t, "rfc9497-a12.json", &v)
	if len(v.Vectors) != 3 {
		t.Fatal("vectors are missing")
	}
	context := string(bytes.TrimPrefix(v.DST, []byte("HashToGroup-")))
	sk := scalarOf(t, v.SK)
	if !bytes.Equal(bin(t, NewPoint().Mul(sk, nil)), v.PK) {
		t.Fatal("another public key")
	}
	for i, x := range v.Vectors {
		for k := range x.Input {
			p := FromElement(HashToGroup(ristretto255.NewElement(), x.Input[k], v.DST))
			blinded := NewPoint().Mul(scalarOf(t, x.Blind[k]), p)
			if got := bin(t, blinded); !bytes.Equal(got, x.Blinded[k]) {
				t.Errorf("vector %d: blinded element %x", i, got)
			}
			if got := bin(t, NewPoint().Mul(sk, blinded)); !bytes.Equal(got, x.Evaluated[k]) {
				t.Errorf("vector %d: evaluated element %x", i, got)
			}
		}
		m := composite(t, context, v.PK, x.Blinded, x.Evaluated, x.Blinded)
		z := composite(t, context, v.PK, x.Blinded, x.Evaluated, x.Evaluated)
		if !z.Equal(NewPoint().Mul(sk, m)) {
			t.Errorf("vector %d: the composites do not fit each other", i)
		}
		r := scalarOf(t, x.R)
		c := hashed(context, framed(v.PK, bin(t, m), bin(t, z), bin(t, NewPoint().Mul(r, nil)), bin(t, NewPoint().Mul(r, m))), "Challenge")
		s := NewScalar().Sub(r, NewScalar().Mul(c, sk))
		if got := append(bin(t, c), bin(t, s.(*Scalar))...); !bytes.Equal(got, x.Proof) {
			t.Errorf("vector %d: proof %x", i, got)
		}
		// And as a verifier computes it.
		c, s = scalarOf(t, x.Proof[:32]), scalarOf(t, x.Proof[32:])
		t2 := NewPoint().Add(NewPoint().Mul(s, nil), NewPoint().Mul(c, pointOf(t, v.PK)))
		t3 := NewPoint().Add(NewPoint().Mul(s, m), NewPoint().Mul(c, z))
		if !hashed(context, framed(v.PK, bin(t, m), bin(t, z), bin(t, t2), bin(t, t3)), "Challenge").Equal(c) {
			t.Errorf("vector %d: the published proof does not verify", i)
		}
	}
}

// framed puts every part behind its length as two bytes.
func framed(parts ...[]byte) (b []byte) {
	for _, p := range parts {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(p))), p...)
	}
	return b
}

func hashed(context string, transcript []byte, what string) *Scalar {
	s := ristretto255.NewScalar()
	return FromInner(HashToScalar(s, append(transcript, what...), []byte("HashToScalar-"+context)))
}

// composite is the sum of the elements, weighted as in ComputeComposites.
func composite(t *testing.T, context string, pk []byte, c, d, of []unhex) *Point {
	seed := sha512.Sum512(framed(pk, []byte("Seed-"+context)))
	sum := NewPoint()
	for i := range c {
		transcript := binary.BigEndian.AppendUint16(framed(seed[:]), uint16(i))
		w := hashed(context, append(transcript, framed(c[i], d[i])...), "Composite")
		sum.Add(sum, NewPoint().Mul(w, pointOf(t, of[i])))
	}
	return sum
}
