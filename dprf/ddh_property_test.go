package dprf

import (
	"crypto/rand"
	"math/big"
	"testing"

	"github.com/gtank/ristretto255"
)

// The coefficients interpolate: for any polynomial f of degree below t, the sum of
// coefficient times f(i) over a quorum is Delta f(0), over the integers where n is
// small and modulo the group order otherwise.
func TestCoefficientsInterpolate(t *testing.T) {
	order := groupOrder()
	for n := 2; n <= 24; n++ {
		for th := 2; th <= n; th++ {
			p := Params{n, th}
			q := randomQuorum(p)
			f := make([]*big.Int, th)
			for i := range f {
				f[i], _ = rand.Int(rand.Reader, order)
			}
			sum := new(big.Int)
			for a, node := range q.Nodes() {
				y := new(big.Int)
				for i := th - 1; i >= 0; i-- {
					y.Add(y.Mul(y, big.NewInt(int64(node))), f[i])
				}
				sum.Add(sum, y.Mul(y, p.Coefficients(q)[a]))
			}
			want := new(big.Int).Mul(p.Delta(), f[0])
			if n <= maxSmallDelta {
				if sum.Cmp(want) != 0 {
					t.Fatalf("%v quorum %v: the integers do not interpolate", p, q)
				}
			}
			if sum.Sub(sum, want).Mod(sum, order).Sign() != 0 {
				t.Fatalf("%v quorum %v: the coefficients do not interpolate", p, q)
			}
		}
	}
}

// The sum with short integers is the one with full scalars, at the ends of the range
// as well.
func TestSmallSum(t *testing.T) {
	for range 50 {
		k := []int64{0, 1, -1, 1<<61 - 1, -(1<<61 - 1), -1 << 63}
		var points []*ristretto255.Element
		var scalars []*ristretto255.Scalar
		for i := range k {
			if i > 1 {
				x, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
				if i%2 == 0 {
					k = append(k, x.Int64())
				}
			}
		}
		for _, x := range k {
			var b [64]byte
			_, _ = rand.Read(b[:])
			points = append(points, ristretto255.NewElement().FromUniformBytes(b[:]))
			scalars = append(scalars, scalarOf(big.NewInt(x)))
		}
		if smallSum(k, points).Equal(ristretto255.NewElement().VarTimeMultiScalarMult(scalars, points)) != 1 {
			t.Fatalf("another sum with %v", k)
		}
	}
}

// Identities that differ in one bit hash to different elements, always the same ones.
func TestInputsAreSeparated(t *testing.T) {
	ids := someIDs(2)
	ids[1] = ids[0]
	ids[1][31] ^= 1
	in := NewInputs(ids)
	if in.points[0].Equal(in.points[1]) == 1 || in.points[0].Equal(ristretto255.NewElement()) == 1 {
		t.Error("two identities hash to one element, or one to the identity")
	}
	if again := NewInputs(ids); again.points[0].Equal(in.points[0]) != 1 || again.points[1].Equal(in.points[1]) != 1 {
		t.Error("hashing is not deterministic")
	}
}
