package lattice

import (
	"bytes"
	"slices"
	"testing"

	"github.com/seed-a893640b/tae/uae"
)

// The attack of ePrint 2020/222 section 5.4: a server that re-encrypts whatever
// bodies it is shown under a token. The challenge was encrypted under k1, the
// adversary has k2, and the oracle refuses to move the challenge itself to k2.
// It moves a changed one, and the change can be taken back. This is why the
// guarantee is called relaxed; in package nested the same adversary fails.
func TestReEncryptionOracleAttack(t *testing.T) {
	s := must(New(R60))
	k1, k2 := s.KeyGen(), s.KeyGen()
	challenge := must(s.Encrypt(nil, k1, []byte("secret"), nil))
	token := must(s.ReKeyGen(k1, k2, challenge[:HeaderSize]))
	oracle := func(ct []byte) []byte {
		if bytes.Equal(ct, challenge) {
			return nil
		}
		return must(s.ReEncrypt(nil, token, ct))
	}
	shift := func(ct []byte, v uint64) []byte {
		out := slices.Clone(ct)
		s.setCoefficient(out, 0, (s.coefficient(out, 0)+v)%s.r.q)
		return out
	}
	const change = 1 << 59
	answer := oracle(shift(challenge, change))
	if _, err := s.Decrypt(nil, k2, answer, nil); err != uae.ErrOpen {
		t.Errorf("the answer itself is ill-formed, but: %v", err)
	}
	moved := shift(answer, s.r.q-change)
	if m, err := s.Decrypt(nil, k2, moved, nil); err != nil || string(m) != "secret" {
		t.Errorf("the attack should work: %q, %v", m, err)
	}
}

// probe finds the sum of errors in coefficient i of a ciphertext from answers
// "opens" and "does not open" alone: the largest value that can be added.
func (s *Scheme) probe(ct []byte, i int, opens func(ct []byte) bool) (noise int64, queries int) {
	low, high := int64(0), int64(2*middle+1) // adding low opens, high does not
	for high-low > 1 {
		try := (low + high) / 2
		bad := slices.Clone(ct)
		s.setCoefficient(bad, i, (s.coefficient(bad, i)+uint64(try))%s.r.q)
		queries++
		if opens(bad) {
			low = try
		} else {
			high = try
		}
	}
	return middle - low, queries
}

// Whoever can change a ciphertext and see decryptions succeed or fail finds the
// noise of a coefficient exactly in 12 queries: the first step to the key, and
// enough to tell old from new. The answer "fail" to the first query is where an
// application must stop using the object; the end of the test shows that nothing
// is to be had then.
func TestNoiseProbing(t *testing.T) {
	s := must(New(R50))
	k, m := s.KeyGen(), make([]byte, 19*8)
	opens := func(ct []byte) bool {
		_, err := s.Decrypt(nil, k, ct, nil)
		return err == nil
	}
	age := func(ct []byte) float64 {
		var square float64
		const probes = 16
		for i := range probes {
			e, _ := s.probe(ct, i, opens)
			square += float64(e * e)
		}
		return square/probes/10.5 - 1
	}
	r := draw()
	ct := must(s.encrypt(nil, k, m, nil, r))
	truth := s.errorsOf(r.seed(), ct, m)
	for i := range 8 {
		if e, queries := s.probe(ct, i, opens); e != truth[i] || queries > 12 {
			t.Errorf("coefficient %d: found %d in %d queries, is %d", i, e, queries, truth[i])
		}
	}
	young := age(ct)
	for range 60 {
		ct = move(s, k, k, ct)
	}
	if old := age(ct); young > 5 || old < 15 {
		t.Errorf("the attack should tell ages: young looks like %.1f, 60 like %.1f", young, old)
	}
	failed := false
	locked := func(ct []byte) bool {
		failed = failed || !opens(ct)
		return !failed
	}
	_, _ = s.probe(ct, 0, locked) // the answer to one query is all it gives
	for i := 1; i < 8; i++ {
		if e, _ := s.probe(ct, i, locked); e != middle {
			t.Errorf("an owner that stops after one failure still answers: %d", e)
		}
	}
}
