package dprf

import (
	"bytes"
	"crypto/aes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/seed-a893640b/tae/internal/secret"
)

// deal makes all keys at one place, which only a test may do.
func deal(t testing.TB, n, th int) (*Layout, []secret.Bytes, []*Share) {
	t.Helper()
	l, err := NewLayout(Params{n, th})
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]secret.Bytes, l.Keys())
	for i := range keys {
		b := make([]byte, KeySize)
		rand.Read(b)
		keys[i] = secret.New(b)
	}
	shares := make([]*Share, n+1)
	for node := 1; node <= n; node++ {
		var held []secret.Bytes
		for _, key := range l.HeldBy(node) {
			held = append(held, keys[key])
		}
		if shares[node], err = NewShare(l, node, held); err != nil {
			t.Fatal(err)
		}
	}
	return l, keys, shares
}

// quorums calls f with every set of exactly size nodes.
func quorums(n, size int, f func(Set)) {
	for q := Set(0); q < 1<<n; q++ {
		if q.Size() == size {
			f(q)
		}
	}
}

func evaluate(t testing.TB, l *Layout, shares []*Share, q Set, id *[IDSize]byte) (out [MaskSize]byte) {
	t.Helper()
	a, err := l.Assign(q)
	if err != nil {
		t.Fatal(err)
	}
	var sc Scratch
	for _, node := range q.Nodes() {
		for _, key := range a.Keys(node) {
			shares[node].AddMask(&sc, &out, id, key)
		}
	}
	return out
}

// reference is the function of the spec, written without precomputation.
func reference(keys []secret.Bytes, id [IDSize]byte) (out [MaskSize]byte) {
	for _, k := range keys {
		mk, _ := hkdf.Key(sha256.New, k.Expose(), nil, "tae/v1/dprf/mask", 32)
		b, _ := aes.NewCipher(mk)
		for c := 0; c < 2; c++ {
			in := [48]byte{0: 1, 6: byte(c)}
			copy(in[16:], id[:])
			var state [16]byte
			for i := 0; i < 48; i += 16 {
				for j := range state {
					state[j] ^= in[i+j]
				}
				b.Encrypt(state[:], state[:])
			}
			for j := range state {
				out[16*c+j] ^= state[j]
			}
		}
	}
	return out
}

func TestEveryQuorumEvaluatesTheSameFunction(t *testing.T) {
	for n := 2; n <= 7; n++ {
		for th := 2; th <= n; th++ {
			l, keys, shares := deal(t, n, th)
			id := [IDSize]byte{byte(n), byte(th), 31: 7}
			want := reference(keys, id)
			for size := th; size <= n; size++ {
				quorums(n, size, func(q Set) {
					if got := evaluate(t, l, shares, q, &id); got != want {
						t.Errorf("n=%d t=%d quorum %v: wrong value", n, th, q)
					}
				})
			}
		}
	}
}

// Every t-1 nodes miss the key of their complement, every t hold all.
func TestThresholdStructure(t *testing.T) {
	for n := 2; n <= 8; n++ {
		for th := 2; th <= n; th++ {
			l, err := NewLayout(Params{n, th})
			if err != nil {
				t.Fatal(err)
			}
			union := func(q Set) int {
				held := map[int]bool{}
				for _, node := range q.Nodes() {
					for _, key := range l.HeldBy(node) {
						held[key] = true
					}
				}
				return len(held)
			}
			quorums(n, th, func(q Set) {
				if union(q) != l.Keys() {
					t.Errorf("n=%d t=%d: %v miss a key", n, th, q)
				}
			})
			quorums(n, th-1, func(q Set) {
				if union(q) != l.Keys()-1 {
					t.Errorf("n=%d t=%d: %v hold %d of %d keys", n, th, q, union(q), l.Keys())
				}
			})
		}
	}
}

func TestAssignmentIsBalancedAndOnlyToHolders(t *testing.T) {
	for _, p := range []Params{{3, 2}, {5, 3}, {6, 4}, {7, 4}, {10, 6}, {12, 3}} {
		l, _ := NewLayout(p)
		quorums(p.N, p.T, func(q Set) {
			a, err := l.Assign(q)
			if err != nil {
				t.Fatal(err)
			}
			most, least := 0, l.Keys()
			for _, node := range q.Nodes() {
				keys := a.Keys(node)
				most, least = max(most, len(keys)), min(least, len(keys))
				for _, key := range keys {
					if !l.Set(key).Has(node) || !q.Has(node) {
						t.Fatalf("%v: key %d assigned to %d", q, key, node)
					}
				}
			}
			if most-least > 1 {
				t.Errorf("%v quorum %v: loads from %d to %d", p, q, least, most)
			}
		})
	}
}

func TestTags(t *testing.T) {
	l, _, shares := deal(t, 4, 2)
	id := [IDSize]byte{1}
	var sc Scratch
	tags := make([]byte, 0, TagSize*l.Keys())
	for key := 0; key < l.Keys(); key++ {
		var tag [TagSize]byte
		shares[l.Set(key).Nodes()[0]].Tag(&sc, &tag, 1, &id, key)
		tags = append(tags, tag[:]...)
	}
	for node := 1; node <= 4; node++ {
		if !shares[node].VerifyTags(&sc, 1, &id, tags) {
			t.Errorf("node %d refuses good tags", node)
		}
		if shares[node].VerifyTags(&sc, 2, &id, tags) {
			t.Errorf("node %d accepts tags of another mode", node)
		}
		if shares[node].VerifyTags(&sc, 1, &[IDSize]byte{2}, tags) || shares[node].VerifyTags(&sc, 1, &id, tags[1:]) {
			t.Errorf("node %d accepts foreign tags", node)
		}
		for bit := 0; bit < 8*len(tags); bit++ {
			bad := bytes.Clone(tags)
			bad[bit/8] ^= 1 << (bit % 8)
			held := l.Set(bit / 8 / TagSize).Has(node)
			if shares[node].VerifyTags(&sc, 1, &id, bad) == held {
				t.Errorf("node %d bit %d: held %v", node, bit, held)
			}
		}
	}
}

func TestParamsValidate(t *testing.T) {
	for _, c := range []struct {
		p    Params
		one  bool
		want error
	}{
		{Params{3, 2}, false, nil}, {Params{3, 3}, false, nil}, {Params{3, 1}, true, nil}, {Params{64, 2}, false, nil},
		{Params{3, 1}, false, ErrThreshold}, {Params{3, 0}, true, ErrThreshold}, {Params{3, 4}, false, ErrThreshold},
		{Params{65, 2}, false, ErrThreshold}, {Params{0, 0}, false, ErrThreshold}, {Params{24, 12}, false, ErrTooManyKeys},
		{Params{64, 32}, false, ErrTooManyKeys},
	} {
		if err := c.p.Validate(c.one); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%v: %v", c.p, err)
		}
	}
}

func TestAddMaskAllocatesNothing(t *testing.T) {
	_, _, shares := deal(t, 3, 2)
	var sc Scratch
	var out [MaskSize]byte
	id := [IDSize]byte{1}
	if n := testing.AllocsPerRun(100, func() { shares[1].AddMask(&sc, &out, &id, 0) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestContributions(t *testing.T) {
	s := Session{Keyset: [16]byte{1}, Epoch: 1, Attempt: 1}
	d := SetOf(1, 3)
	a, b := secret.Copy(bytes.Repeat([]byte{1}, 32)), secret.Copy(bytes.Repeat([]byte{2}, 32))
	c := s.Commit(1, d, a)
	if !s.CheckReveal(1, d, a, c) || s.CheckReveal(1, d, b, c) || s.CheckReveal(3, d, a, c) || s.CheckReveal(1, SetOf(1, 2), a, c) {
		t.Error("commitment does not bind sender, set and contribution")
	}
	k1, err := s.Key(d, []secret.Bytes{a, b})
	if err != nil {
		t.Fatal(err)
	}
	other := s
	other.Attempt = 2
	k2, _ := other.Key(d, []secret.Bytes{a, b})
	if k1.Equal(k2) || s.KeyCheck(d, k1) == other.KeyCheck(d, k1) {
		t.Error("another attempt makes the same key")
	}
	if _, err := s.Key(d, []secret.Bytes{a}); err == nil {
		t.Error("a missing contribution is accepted")
	}
}

func BenchmarkMask(b *testing.B) {
	_, _, shares := deal(b, 3, 2)
	var sc Scratch
	var out [MaskSize]byte
	id := [IDSize]byte{1}
	for b.Loop() {
		shares[1].AddMask(&sc, &out, &id, 0)
	}
}
