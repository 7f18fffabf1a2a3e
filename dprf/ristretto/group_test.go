package ristretto

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"go.dedis.ch/kyber/v3"
	"go.dedis.ch/kyber/v3/share"
)

// order is the group order of RFC 9496: 2^252 + 27742317777372353535851937790883648493.
func order() *big.Int {
	q, _ := new(big.Int).SetString("27742317777372353535851937790883648493", 10)
	return q.Add(q, new(big.Int).Lsh(big.NewInt(1), 252))
}

func integer(t *testing.T, s kyber.Scalar) *big.Int {
	b := bin(t, s.(*Scalar))
	for i := range 16 {
		b[i], b[31-i] = b[31-i], b[i]
	}
	return new(big.Int).SetBytes(b)
}

// Scalars do what integers modulo the order do.
func TestScalarsAgainstIntegers(t *testing.T) {
	q, suite := order(), Suite{}
	check := func(what string, got kyber.Scalar, want *big.Int) {
		t.Helper()
		if integer(t, got).Cmp(new(big.Int).Mod(want, q)) != 0 {
			t.Errorf("%s is wrong", what)
		}
	}
	for range 200 {
		a, b := suite.Scalar().Pick(suite.RandomStream()), suite.Scalar().Pick(suite.RandomStream())
		x, y := integer(t, a), integer(t, b)
		z := func() *big.Int { return new(big.Int) }
		check("a+b", NewScalar().Add(a, b), z().Add(x, y))
		check("a-b", NewScalar().Sub(a, b), z().Sub(x, y))
		check("-a", NewScalar().Neg(a), z().Neg(x))
		check("ab", NewScalar().Mul(a, b), z().Mul(x, y))
		check("1/a", NewScalar().Inv(a), z().ModInverse(x, q))
		check("a/b", NewScalar().Div(a, b), z().Mul(x, z().ModInverse(y, q)))
		wide := make([]byte, 64)
		_, _ = rand.Read(wide)
		s := NewScalar().SetBytes(wide)
		for i := range 32 {
			wide[i], wide[63-i] = wide[63-i], wide[i]
		}
		check("64 bytes", s, z().SetBytes(wide))
		// The receiver may be an operand.
		check("a+=b", a.Clone().Add(a, b), z().Add(x, y))
		c := a.Clone()
		check("a*=a", c.Mul(c, c), z().Mul(x, x))
	}
	for _, v := range []int64{0, 1, -1, 63, -64, 1 << 62, -1 << 63, 1<<63 - 1} {
		check(fmt.Sprint(v), NewScalar().SetInt64(v), big.NewInt(v))
	}
}

// Elements follow the scalars, and encodings are the only ones.
func TestGroupLaws(t *testing.T) {
	suite := Suite{}
	for range 50 {
		a, b := suite.Scalar().Pick(suite.RandomStream()), suite.Scalar().Pick(suite.RandomStream())
		p := suite.Point().Pick(suite.RandomStream())
		ap, bp := suite.Point().Mul(a, p), suite.Point().Mul(b, p)
		for what, ok := range map[string]bool{
			"(a+b)p = ap+bp":  suite.Point().Mul(suite.Scalar().Add(a, b), p).Equal(suite.Point().Add(ap, bp)),
			"(a-b)p = ap-bp":  suite.Point().Mul(suite.Scalar().Sub(a, b), p).Equal(suite.Point().Sub(ap, bp)),
			"(ab)p = a(bp)":   suite.Point().Mul(suite.Scalar().Mul(a, b), p).Equal(suite.Point().Mul(a, bp)),
			"aG with no base": suite.Point().Mul(a, nil).Equal(suite.Point().Mul(a, suite.Point().Base())),
			"p-p = 0":         suite.Point().Sub(p, p).Equal(suite.Point().Null()),
			"in place":        p.Clone().Mul(a, p).Equal(ap),
			"a clone":         p.Clone().Equal(p) && !suite.Point().Add(p.Clone(), p).Equal(p),
		} {
			if !ok {
				t.Error(what, "does not hold")
			}
		}
		var buf bytes.Buffer
		if n, err := ap.MarshalTo(&buf); n != Size || err != nil {
			t.Fatal(n, err)
		}
		if n, err := suite.Point().UnmarshalFrom(&buf); n != Size || err != nil {
			t.Fatal(n, err)
		}
	}
	q := order().FillBytes(make([]byte, 32))
	for i := range 16 {
		q[i], q[31-i] = q[31-i], q[i]
	}
	for _, b := range [][]byte{nil, make([]byte, 31), make([]byte, 33), q, bytes.Repeat([]byte{0xff}, 32)} {
		if NewScalar().UnmarshalBinary(b) == nil {
			t.Errorf("%x is a scalar", b)
		}
		if len(b) != 32 && NewPoint().UnmarshalBinary(b) == nil {
			t.Errorf("%x is an element", b)
		}
	}
	if s := fmt.Sprintf("%v %#v %s", NewScalar(), NewScalar(), NewScalar()); strings.Contains(s, "0000") {
		t.Error("a scalar is printed:", s)
	}
}

// kyber's sharing on the group: t shares reconstruct, fewer do not, and public shares
// are those of the shares.
func TestSharing(t *testing.T) {
	suite := Suite{}
	poly := share.NewPriPoly(suite, 3, nil, suite.RandomStream())
	pub := poly.Commit(nil)
	shares := poly.Shares(5)
	for _, s := range shares {
		if !pub.Check(s) {
			t.Error("a share does not fit the public polynomial")
		}
	}
	if s, err := share.RecoverSecret(suite, shares[2:], 3, 5); err != nil || !s.Equal(poly.Secret()) {
		t.Error("three shares do not reconstruct", err)
	}
	if s, err := share.RecoverSecret(suite, shares[:2], 2, 5); err == nil && s.Equal(poly.Secret()) {
		t.Error("two shares reconstruct")
	}
}
