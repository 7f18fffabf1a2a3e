package lattice

import (
	"bytes"
	"math"
	"slices"
	"testing"
)

// Tests against the faults found in the published C code, which draws errors
// from a pointer, keys with a short period or constant keys, and errors that are
// not centred.

// errorsOf recovers all errors of a ciphertext of m with knowledge of its key.
func (s *Scheme) errorsOf(seed *[32]byte, ct, m []byte) []int64 {
	w := s.newWorker(seed)
	defer w.wipe()
	t := s.r.acquire()
	defer s.r.release(t)
	var out []int64
	var c, plain [unit]uint64
	body := ct[HeaderSize:]
	for i := 0; s.r.blockPlain()*i < len(m); i++ {
		in, b := cut(m, i, s.r.blockPlain()), cut(body, i, s.r.blockBody())
		s.r.ntt.mulInverse(t.f, s.r.h0(i, t), w.key.f)
		for j := 0; (j+1)*s.r.body <= len(b); j++ {
			s.r.get(&c, b[j*s.r.body:])
			s.r.getPlain(&plain, in[j*s.r.plain:])
			for l := range c {
				v := reduce(c[l]+8*s.r.q-t.f[unit*j+l], s.r.q, s.r.ntt.shift)
				out = append(out, int64(v)-int64(plain[l]*spacing+middle))
			}
		}
	}
	return out
}

func agree(a, b []int64) (share float64) {
	for i := range a {
		if a[i] == b[i] {
			share++
		}
	}
	return share / float64(len(a))
}

// Errors depend on the whole key and on nothing else. Two independent centred
// binomial errors agree with probability about 1/11.5.
func TestErrorsDependOnTheKey(t *testing.T) {
	s := must(New(R60))
	k, m := s.KeyGen(), make([]byte, s.r.blockPlain())
	make1 := func(r *random) []int64 {
		ct := must(s.encrypt(nil, k, m, nil, r))
		return s.errorsOf(r.seed(), ct, m)
	}
	r := draw()
	e := make1(r)
	if agree(e, make1(r)) != 1 {
		t.Error("errors are not a function of the seed")
	}
	for _, bit := range []int{0, 1, 100, 255} { // also seeds that are close
		r2 := *r
		r2[bit/8] ^= 1 << (bit % 8)
		if a := agree(e, make1(&r2)); a < 0.06 || a > 0.12 {
			t.Errorf("seeds that differ in bit %d: errors agree in %.3f of places", bit, a)
		}
	}
	if a := agree(e[:2048], e[2048:]); a > 0.12 {
		t.Errorf("errors repeat within a ring element: %.3f", a)
	}
}

// Blocks have errors and masks of their own.
func TestBlocksDiffer(t *testing.T) {
	s := must(New(R50))
	k, m, r := s.KeyGen(), make([]byte, 3*9728), draw()
	ct := must(s.encrypt(nil, k, m, nil, r))
	n := s.r.blockBody()
	b := ct[HeaderSize:]
	if bytes.Equal(b[:n], b[n:2*n]) || bytes.Equal(b[n:2*n], b[2*n:]) {
		t.Error("masks repeat")
	}
	e := s.errorsOf(r.seed(), ct, m)
	if a := agree(e[:2048], e[2048:4096]); a > 0.13 {
		t.Errorf("errors repeat from block to block: %.3f", a)
	}
}

// Errors are centred, bounded and of the right variance, and those of updates
// add up like independent ones: 10.5 (N+1), not (N+1)^2.
func TestErrorDistribution(t *testing.T) {
	for _, p := range []Params{R60, R50} {
		s := must(New(p))
		k, m, r := s.KeyGen(), make([]byte, 4*s.r.blockPlain()), draw()
		ct := must(s.encrypt(nil, k, m, nil, r))
		for _, updates := range []int{0, 9} {
			for range updates {
				r = draw()
				ct = must(s.ReEncrypt(nil, must(s.reKeyGen(k, k, ct[:HeaderSize], r)), ct))
			}
			e := s.errorsOf(r.seed(), ct, m)
			var sum, square, largest float64
			for _, x := range e {
				sum += float64(x)
				square += float64(x * x)
				largest = max(largest, math.Abs(float64(x)))
			}
			n, count := float64(len(e)), float64(updates+1)
			mean, variance := sum/n, square/n/count
			if math.Abs(mean) > 5*math.Sqrt(10.5*count/n) || variance < 9.5 || variance > 11.5 {
				t.Errorf("%d, %d updates: mean %.3f, variance per error %.2f", p, updates, mean, variance)
			}
			if largest > eta*count {
				t.Errorf("%d, %d updates: error %v", p, updates, largest)
			}
		}
	}
}

// An update adds its error and nothing else, and the same one if it is applied
// again: averaging over repetitions removes nothing.
func TestUpdateErrorIsDeterministic(t *testing.T) {
	s := must(New(R60))
	k, m := s.KeyGen(), make([]byte, 960)
	ct := must(s.Encrypt(nil, k, m, nil))
	token := must(s.ReKeyGen(k, k, ct[:HeaderSize]))
	a, b := must(s.ReEncrypt(nil, token, ct)), must(s.ReEncrypt(nil, token, ct))
	if !bytes.Equal(a, b) {
		t.Error("two applications of a token differ")
	}
	var zero, one [32]byte
	one[31] = 1
	if updateErrorKey(&zero, &one) == updateErrorKey(&one, &zero) || errorKey(&zero) == updateErrorKey(&zero, &zero) {
		t.Error("error keys coincide")
	}
}

// Keys are uniform over the ring: no value twice, no period, unrelated for
// seeds that differ in a bit.
func TestKeysAreUniform(t *testing.T) {
	for _, p := range []Params{R60, R50} {
		r := must(newRing(p))
		w := r.acquire()
		var seed [32]byte
		a, b := make([]uint64, r.n), make([]uint64, r.n)
		r.expandKey(a, &seed, w)
		seed[31] = 1
		r.expandKey(b, &seed, w)
		all := append(slices.Clone(a), b...)
		for _, i := range []int{0, 1} {
			v := make([]uint64, r.n)
			r.uniform(v, stream(r.public, uint64(i)), w.stream)
			all = append(all, v...)
		}
		seen := map[uint64]bool{}
		var top, parity int
		for _, x := range all {
			if x >= r.q || seen[x] {
				t.Fatalf("%d: value %d twice or out of range", p, x)
			}
			seen[x] = true
			if x > r.q/2 {
				top++
			}
			parity += int(x & 1)
		}
		n := len(all)
		if limit := 3 * int(math.Sqrt(float64(n))); abs(2*top-n) > 2*limit || abs(2*parity-n) > 2*limit {
			t.Errorf("%d: %d of %d above q/2, %d odd", p, top, n, parity)
		}
	}
}

func abs(x int) int { return max(x, -x) }

// Values from q on are skipped, not reduced. The control reduces: on a stream of
// nothing but q its value is 0.
func TestUniformRejects(t *testing.T) {
	r := must(newRing(R60))
	v := make([]uint64, 2)
	r.uniform(v, &words{[]uint64{q60, 5, q60 + 7, 1<<60 - 1, 9 | 15<<60}}, make([]byte, 16))
	if v[0] != 5 || v[1] != 9 {
		t.Errorf("drew %d", v)
	}
}

// words is a stream of given words.
type words struct{ w []uint64 }

func (s *words) XORKeyStream(dst, _ []byte) {
	for ; len(dst) >= 8; dst = dst[8:] {
		le.PutUint64(dst, s.w[0])
		s.w = s.w[1:]
	}
}

// A token is the difference of two uniform keys, so it is uniform, and it is
// never zero or small.
func TestTokenIsNotSmall(t *testing.T) {
	s := must(New(R60))
	k := s.KeyGen()
	ct := must(s.Encrypt(nil, k, nil, nil))
	tok, err := s.parseToken(must(s.ReKeyGen(k, k, ct[:HeaderSize])))
	if err != nil {
		t.Fatal(err)
	}
	delta := make([]uint64, s.r.n)
	s.r.unpack(delta, tok.Part[32:])
	small := 0
	for _, x := range delta {
		if min(x, q60-x) < q60/1024 {
			small++
		}
	}
	if small > 40 {
		t.Errorf("%d of %d values are small", small, len(delta))
	}
}

// What a worker leaves in the pool is wiped.
func TestPoolIsWiped(t *testing.T) {
	s := must(New(R60))
	w := s.newWorker(draw().seed())
	f := w.key.f
	w.wipe()
	if slices.Max(f) != 0 {
		t.Error("a key stays in memory")
	}
}
