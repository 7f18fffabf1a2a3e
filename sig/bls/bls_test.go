package bls

import (
	"fmt"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"go.dedis.ch/kyber/v3/share"

	"github.com/seed-a893640b/tae/internal/secret"
)

// deal makes shares at one place, which only a test may do.
func deal(t testing.TB, n, th int) (*PublicKey, []*KeyShare) {
	t.Helper()
	g := KeyGroup{}
	poly := share.NewPriPoly(g, th, nil, g.RandomStream())
	b, err := poly.Commit(nil).Commit().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	pub, err := ParsePublicKey(b)
	if err != nil {
		t.Fatal(err)
	}
	shares := make([]*KeyShare, n+1)
	for i := 1; i <= n; i++ {
		b, _ := poly.Eval(i - 1).V.MarshalBinary()
		if shares[i], err = NewKeyShare(secret.New(b)); err != nil {
			t.Fatal(err)
		}
	}
	return pub, shares
}

func sign(t testing.TB, shares []*KeyShare, nodes []int, m []byte) *Signature {
	t.Helper()
	var partials []*Signature
	for _, i := range nodes {
		s, err := shares[i].Sign(m)
		if err != nil {
			t.Fatal(err)
		}
		partials = append(partials, s)
	}
	s, err := Combine(nodes, partials)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestThresholdSignature(t *testing.T) {
	pub, shares := deal(t, 5, 3)
	m := []byte("message")
	want := sign(t, shares, []int{1, 2, 3}, m).Bytes()
	for _, q := range [][]int{{1, 2, 3}, {1, 3, 5}, {2, 4, 5}, {1, 2, 3, 4}} {
		s := sign(t, shares, q, m)
		if !pub.Verify(m, s) || s.Bytes() != want {
			t.Errorf("quorum %v: bad or another signature", q)
		}
		if pub.Verify([]byte("other"), s) {
			t.Errorf("quorum %v: signature on another message", q)
		}
	}
	if pub.Verify(m, sign(t, shares, []int{1, 2}, m)) {
		t.Error("two of three sign")
	}
	for i := 1; i <= 5; i++ {
		p := shares[i].Public()
		k, err := ParsePublicKey(p[:])
		if err != nil {
			t.Fatal(err)
		}
		s, _ := shares[i].Sign(m)
		if !k.Verify(m, s) {
			t.Errorf("partial signature of node %d does not verify", i)
		}
	}
}

func TestVerifyBatch(t *testing.T) {
	pub, shares := deal(t, 3, 2)
	for _, n := range []int{1, 2, 7, 8, 20} {
		var messages [][]byte
		var sigs []*Signature
		for i := range n {
			m := fmt.Appendf(nil, "message %d", i)
			messages, sigs = append(messages, m), append(sigs, sign(t, shares, []int{1, 2}, m))
		}
		check := func(bad ...int) {
			t.Helper()
			good, err := pub.VerifyBatch(messages, sigs)
			if err != nil {
				t.Fatal(err)
			}
			for i := range good {
				want := true
				for _, b := range bad {
					want = want && i != b
				}
				if good[i] != want {
					t.Errorf("%d signatures, bad %v: number %d is %v", n, bad, i, good[i])
				}
			}
		}
		check()
		if n < 2 {
			continue
		}
		// Two bad ones whose errors cancel in a plain sum.
		_, _, g, _ := bls12381.Generators()
		var up, down Signature
		up.p.Add(&sigs[0].p, &g)
		down.p.Sub(&sigs[n-1].p, &g)
		sigs[0], sigs[n-1] = &up, &down
		check(0, n-1)
	}
}

func TestDecodingChecksTheSubgroup(t *testing.T) {
	var f fp.Element
	f.SetUint64(5)
	j := bls12381.GeneratePointNotInG1(f)
	var outside bls12381.G1Affine
	outside.FromJacobian(&j)
	if outside.IsInSubGroup() {
		t.Fatal("the test's point is in the subgroup")
	}
	b := outside.Bytes()
	if _, err := ParseSignature(b[:]); err == nil {
		t.Error("a point outside the subgroup is accepted")
	}
	var infinity bls12381.G1Affine
	infinity.SetInfinity()
	b = infinity.Bytes()
	if _, err := ParseSignature(b[:]); err == nil {
		t.Error("the identity is accepted as a signature")
	}
	var inf2 bls12381.G2Affine
	b2 := inf2.Bytes()
	if _, err := ParsePublicKey(b2[:]); err == nil {
		t.Error("the identity is accepted as a public key")
	}
	for _, n := range []int{0, 47, 49, 96} {
		if _, err := ParseSignature(make([]byte, n)); err == nil {
			t.Errorf("%d bytes are accepted", n)
		}
	}
}

func BenchmarkBLS(b *testing.B) {
	pub, shares := deal(b, 3, 2)
	m := []byte("message")
	s := sign(b, shares, []int{1, 2}, m)
	b.Run("sign", func(b *testing.B) {
		for b.Loop() {
			shares[1].Sign(m)
		}
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			pub.Verify(m, s)
		}
	})
	enc := s.Bytes()
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			ParseSignature(enc[:])
		}
	})
	for _, n := range []int{8, 128} {
		var messages [][]byte
		var sigs []*Signature
		for i := range n {
			m := fmt.Appendf(nil, "message %d", i)
			messages, sigs = append(messages, m), append(sigs, sign(b, shares, []int{1, 2}, m))
		}
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			for b.Loop() {
				pub.VerifyBatch(messages, sigs)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/item")
		})
	}
}
