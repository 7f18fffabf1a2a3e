package dprf

import (
	"crypto/rand"
	"math/big"
	"testing"

	"github.com/gtank/ristretto255"
	"go.dedis.ch/kyber/v3/share"

	"github.com/seed-a893640b/tae/dprf/ristretto"
	"github.com/seed-a893640b/tae/internal/secret"
)

// dealDDH makes shares at one place with kyber's polynomials, which only a test may
// do.
func dealDDH(t testing.TB, n, th int) (Params, *ristretto255.Scalar, []*DDHShare, *share.PubPoly) {
	t.Helper()
	suite := ristretto.Suite{}
	poly := share.NewPriPoly(suite, th, nil, suite.RandomStream())
	p := Params{n, th}
	shares := make([]*DDHShare, n+1)
	for node := 1; node <= n; node++ {
		b, err := poly.Eval(node - 1).V.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if shares[node], err = NewDDHShare(p, node, secret.New(b)); err != nil {
			t.Fatal(err)
		}
	}
	return p, poly.Secret().(*ristretto.Scalar).Inner(), shares, poly.Commit(nil)
}

func someIDs(n int) [][IDSize]byte {
	ids := make([][IDSize]byte, n)
	for i := range ids {
		rand.Read(ids[i][:])
	}
	return ids
}

func decodeAll(t testing.TB, values [][ElementSize]byte) []*ristretto255.Element {
	t.Helper()
	list := make([]*ristretto255.Element, len(values))
	for i := range values {
		var err error
		if list[i], err = ParseElement(values[i][:]); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

func TestDDHEveryQuorum(t *testing.T) {
	for _, c := range []Params{{2, 2}, {3, 2}, {5, 3}, {6, 4}, {7, 7}, {16, 3}, {17, 2}, {24, 12}} {
		p, key, shares, public := dealDDH(t, c.N, c.T)
		in := NewInputs(someIDs(1))
		want := ristretto255.NewElement().ScalarMult(key, in.points[0])
		count := 0
		check := func(q Set) {
			var values []*ristretto255.Element
			for _, node := range q.Nodes() {
				values = append(values, decodeAll(t, shares[node].Evaluate(in))[0])
			}
			if NewCombiner(p, q).Combine(values).Equal(want) != 1 {
				t.Fatalf("%v quorum %v: wrong value", p, q)
			}
			count++
		}
		if c.N <= 7 {
			quorums(c.N, c.T, check)
			quorums(c.N, min(c.T+1, c.N), check)
		} else {
			for range 50 {
				check(randomQuorum(c))
			}
		}
		for node := 1; node <= c.N; node++ {
			s := public.Eval(node - 1).V.(*ristretto.Point).Element()
			if ProvenShare(p, s) != shares[node].PublicShare() {
				t.Errorf("%v node %d: the public polynomial gives another public share", p, node)
			}
		}
	}
}

func randomQuorum(p Params) (q Set) {
	for q.Size() < p.T {
		x, _ := rand.Int(rand.Reader, big.NewInt(int64(p.N)))
		q |= SetOf(int(x.Int64()) + 1)
	}
	return q
}

// Up to 16 nodes every coefficient is an integer of at most 61 bits.
func TestCoefficientsAreShort(t *testing.T) {
	for n := 2; n <= maxSmallDelta; n++ {
		for th := 2; th <= n; th++ {
			for range 20 {
				q := randomQuorum(Params{n, th})
				for _, c := range (Params{n, th}).Coefficients(q) {
					if c.BitLen() > 61 {
						t.Fatalf("n=%d quorum %v: %d bits", n, q, c.BitLen())
					}
				}
				if c := NewCombiner(Params{n, th}, q); c.small == nil {
					t.Fatalf("n=%d quorum %v: not combined with short integers", n, q)
				}
			}
		}
	}
}

func statement(s *DDHShare, in *Inputs) *Statement {
	return &Statement{Operation: 1, Keyset: [16]byte{9}, Suite: 3, Epoch: 1, Generation: 1, Node: uint8(s.Node()), Public: s.PublicShare(),
		Positions: make([]uint16, in.Len()), Inputs: in, Values: s.Evaluate(in)}
}

func TestBatchProof(t *testing.T) {
	_, _, shares, _ := dealDDH(t, 3, 2)
	for _, count := range []int{1, 2, 16, 300} {
		in := NewInputs(someIDs(count))
		st := statement(shares[1], in)
		proof := shares[1].Prove(st)
		if _, ok := st.Verify(proof[:]); !ok {
			t.Fatalf("%d items: a good proof is refused", count)
		}
		refused := func(what string, change func(*Statement)) {
			t.Helper()
			bad := *st
			bad.Values = append([][ElementSize]byte(nil), st.Values...)
			change(&bad)
			if _, ok := bad.Verify(proof[:]); ok {
				t.Errorf("%d items: accepted with %s", count, what)
			}
		}
		refused("another operation", func(s *Statement) { s.Operation++ })
		refused("another keyset", func(s *Statement) { s.Keyset[0]++ })
		refused("another suite", func(s *Statement) { s.Suite++ })
		refused("another epoch", func(s *Statement) { s.Epoch++ })
		refused("another generation", func(s *Statement) { s.Generation++ })
		refused("another node", func(s *Statement) { s.Node++ })
		refused("another public share", func(s *Statement) { s.Public = shares[2].PublicShare() })
		refused("another node's value", func(s *Statement) { s.Values[count-1] = shares[2].Evaluate(in)[count-1] })
		refused("another position", func(s *Statement) {
			s.Positions = append([]uint16(nil), s.Positions...)
			s.Positions[count-1]++
		})
		refused("other inputs", func(s *Statement) { s.Inputs = NewInputs(someIDs(count)) })
		refused("a value that is no element", func(s *Statement) { s.Values[0][31] = 0xff })
		if count > 1 {
			refused("values swapped", func(s *Statement) { s.Values[0], s.Values[1] = s.Values[1], s.Values[0] })
		}
		for bit := range 8 * ProofSize {
			bad := proof
			bad[bit/8] ^= 1 << (bit % 8)
			if count <= 2 {
				if _, ok := st.Verify(bad[:]); ok {
					t.Errorf("bit %d of the proof does not matter", bit)
				}
			}
		}
	}
}

// A wrong value may not cancel against another one: with all weights equal, as a
// control, it does.
func TestWrongValuesDoNotCancel(t *testing.T) {
	_, _, shares, _ := dealDDH(t, 3, 2)
	in := NewInputs(someIDs(2))
	st := statement(shares[1], in)
	values := decodeAll(t, st.Values)
	var d, up, down ristretto255.Element
	d.Base()
	up.Add(values[0], &d).Encode(st.Values[0][:0])
	down.Subtract(values[1], &d).Encode(st.Values[1][:0])
	proof := shares[1].Prove(st) // the best a liar can do: prove the composites
	if _, ok := st.Verify(proof[:]); ok {
		t.Error("two wrong values cancel")
	}
	good := ristretto255.NewElement().Add(values[0], values[1])
	if bad := ristretto255.NewElement().Add(&up, &down); bad.Equal(good) != 1 {
		t.Error("control: with equal weights the wrong values should cancel")
	}
}

func TestNonceDependsOnEverything(t *testing.T) {
	_, _, shares, _ := dealDDH(t, 3, 2)
	var system [32]byte // a generator that always gives the same
	a := statement(shares[1], NewInputs(someIDs(1)))
	b := statement(shares[1], NewInputs(someIDs(1)))
	pa, pb := shares[1].prove(a, &system), shares[1].prove(b, &system)
	// With one nonce r for both, s_a + c_a k = s_b + c_b k gives k away.
	var ca, sa, cb, sb, num, den ristretto255.Scalar
	ca.Decode(pa[:32])
	sa.Decode(pa[32:])
	cb.Decode(pb[:32])
	sb.Decode(pb[32:])
	num.Subtract(&sa, &sb)
	den.Subtract(&cb, &ca)
	den.Invert(&den)
	num.Multiply(&num, &den)
	if num.Equal(&shares[1].k) == 1 {
		t.Error("a repeated random value gives the share away")
	}
}

func BenchmarkDDH(b *testing.B) {
	p, _, shares, _ := dealDDH(b, 3, 2)
	for _, count := range []int{1, 16, 128} {
		in := NewInputs(someIDs(count))
		st := statement(shares[1], in)
		proof := shares[1].Prove(st)
		name := map[int]string{1: "batch=1", 16: "batch=16", 128: "batch=128"}[count]
		per := func(b *testing.B) { b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count), "ns/item") }
		b.Run("hash/"+name, func(b *testing.B) {
			for b.Loop() {
				NewInputs(in.ids)
			}
			per(b)
		})
		b.Run("evaluate/"+name, func(b *testing.B) {
			for b.Loop() {
				shares[1].Evaluate(in)
			}
			per(b)
		})
		b.Run("prove/"+name, func(b *testing.B) {
			for b.Loop() {
				shares[1].Prove(st)
			}
			per(b)
		})
		b.Run("verify/"+name, func(b *testing.B) {
			for b.Loop() {
				st.Verify(proof[:])
			}
			per(b)
		})
	}
	in := NewInputs(someIDs(1))
	values := append(decodeAll(b, shares[1].Evaluate(in)), decodeAll(b, shares[2].Evaluate(in))...)
	c := NewCombiner(p, SetOf(1, 2))
	b.Run("combine", func(b *testing.B) {
		for b.Loop() {
			c.Combine(values)
		}
	})
}
