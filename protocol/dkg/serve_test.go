package dkg

import (
	"testing"

	"github.com/gtank/ristretto255"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/sig/bls"
)

// The keys do their work: quorums agree on the function's values and on signatures,
// public shares are those that proofs and partial signatures verify under, and a
// reshare changes neither values nor signatures.
func TestKeysServe(t *testing.T) {
	t.Parallel()
	in := dprf.NewInputs([][dprf.IDSize]byte{{1}})
	message := []byte("root")
	work := func(results []*Result, n, th int, nodes ...int) (value string, signature [bls.SignatureSize]byte) {
		t.Helper()
		p := dprf.Params{N: n, T: th}
		pub, err := bls.ParsePublicKey(results[1].Public.BLS[0][:])
		if err != nil {
			t.Fatal(err)
		}
		var values []*ristretto255.Element
		var partials []*bls.Signature
		for _, i := range nodes {
			share, err := dprf.NewDDHShare(p, i, results[i].Share)
			if err != nil {
				t.Fatal(err)
			}
			key, err := bls.NewKeyShare(results[i].BLSShare)
			if err != nil {
				t.Fatal(err)
			}
			ddh, public, err := results[1].Public.Shares(i)
			if err != nil {
				t.Fatal(err)
			}
			e, err := dprf.ParseElement(ddh[:])
			if err != nil || dprf.ProvenShare(p, e) != share.PublicShare() || key.Public() != public {
				t.Errorf("node %d: the public shares are others: %v", i, err)
			}
			v, err := dprf.ParseElement(share.Evaluate(in)[0][:])
			if err != nil {
				t.Fatal(err)
			}
			s, err := key.Sign(message)
			if err != nil {
				t.Fatal(err)
			}
			values, partials = append(values, v), append(partials, s)
		}
		s, err := bls.Combine(nodes, partials)
		if err != nil || !pub.Verify(message, s) {
			t.Errorf("quorum %v: the combined signature does not verify: %v", nodes, err)
		}
		return string(dprf.NewCombiner(p, dprf.SetOf(nodes...)).Combine(values).Encode(nil)), s.Bytes()
	}
	old := freshResults(t, 3, 2)
	value, signature := work(old, 3, 2, 1, 2)
	c := reshareOf(t, old, 3, 4, 3, []int{2, 0, 3, 0})
	c.run(inOrder)
	results := c.done(4, 3)
	for _, again := range [][]int{{1, 2, 3}, {1, 3, 4}, {2, 3, 4}} {
		if v, s := work(results, 4, 3, again...); v != value || s != signature {
			t.Errorf("quorum %v has another value or signature after the reshare", again)
		}
	}
	if v, s := work(old, 3, 2, 2, 3); v != value || s != signature {
		t.Error("another quorum has another value or signature")
	}
}
