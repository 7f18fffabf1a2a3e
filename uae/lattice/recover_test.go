package lattice

import (
	"bytes"
	"crypto/cipher"
	"math/bits"
	"slices"
	"testing"
)

// keyFrom divides: from exact coefficients of n/2^64 * InverseNTT(u o s) it
// computes s. Any noise in f makes the result useless.
func (r *ring) keyFrom(f, u []uint64) []uint64 {
	q := r.q
	inverse := func(x uint64) uint64 { return power(x, q-2, q) }
	factor := mulMod(power(2, 64, q), inverse(uint64(r.n)), q)
	s := make([]uint64, r.n)
	for j := range s {
		rev := bits.Reverse64(uint64(j)) >> (64 - bits.Len(uint(r.n-1)))
		v := at(f, power(r.psi, 2*rev+1, q), q)
		s[j] = mulMod(mulMod(v, factor, q), inverse(u[j]), q)
	}
	return s
}

// bodyWith encrypts one ring element of m under a seed with given errors.
func (s *Scheme) bodyWith(seed *[32]byte, errors cipher.Block, m []byte) []byte {
	w := worker{r: s.r, key: s.r.acquire(), err: errors}
	defer w.wipe()
	s.r.expandKey(w.key.f, seed, w.key)
	body := make([]byte, s.r.blockBody())
	w.encrypt(body, m, 0)
	return body
}

func (s *Scheme) unpacked(body []byte) []uint64 {
	c := make([]uint64, s.r.n)
	s.r.unpack(c, body)
	return c
}

func (r *ring) minus(a, b []uint64) []uint64 {
	d := make([]uint64, len(a))
	for i := range d {
		d[i] = (a[i] + r.q - b[i]) % r.q
	}
	return d
}

// The game of the published code's first fault. The adversary knows the key of
// one message of its own and the text of another's: if errors do not depend on
// the key, it knows those of the other message too, and one ring element gives
// the other key. The control has that fault.
func TestErrorsOfOneKeySayNothingOfAnother(t *testing.T) {
	s := must(New(R50))
	r := s.r
	mine, other := draw().seed(), draw().seed()
	m := make([]byte, r.blockPlain()) // encodes to middle in every place
	truth := make([]uint64, r.n)
	w := r.acquire()
	r.expandKey(truth, other, w)
	u := slices.Clone(r.h0(0, w))

	attack := func(mineErrors, otherErrors cipher.Block) bool {
		a := s.unpacked(s.bodyWith(mine, mineErrors, m))
		key := make([]uint64, r.n)
		r.expandKey(key, mine, w)
		product := make([]uint64, r.n)
		r.ntt.mulInverse(product, u, key)
		for i := range product {
			product[i] %= r.q
		}
		known := r.minus(a, product) // middle + error
		target := s.unpacked(s.bodyWith(other, otherErrors, m))
		return slices.Equal(r.keyFrom(r.minus(target, known), u), truth)
	}
	constant := newBlock(new([32]byte))
	if !attack(constant, constant) {
		t.Error("the attack on the control does not work")
	}
	e1, e2 := errorKey(mine), errorKey(other)
	if attack(newBlock(&e1), newBlock(&e2)) {
		t.Error("the key of another message was found")
	}
}

// An update must add errors: without, whoever has the old key and sees both
// bodies computes the new one. The control adds none.
func TestUpdateAddsErrors(t *testing.T) {
	s := must(New(R50))
	r := s.r
	from, to := draw().seed(), draw().seed()
	oldKey, newKey, w := make([]uint64, r.n), make([]uint64, r.n), r.acquire()
	r.expandKey(oldKey, from, w)
	r.expandKey(newKey, to, w)
	u := slices.Clone(r.h0(0, w))
	product := make([]uint64, r.n)
	r.ntt.mulInverse(product, u, r.minus(newKey, oldKey))

	e := errorKey(from)
	body := s.bodyWith(from, newBlock(&e), make([]byte, r.blockPlain()))
	attack := func(noise []byte) bool {
		next := make([]byte, len(body))
		r.update(next, body, product, noise)
		delta := r.keyFrom(r.minus(s.unpacked(next), s.unpacked(body)), u)
		return slices.Equal(r.minus(delta, r.minus(newKey, oldKey)), make([]uint64, r.n))
	}
	none := append(bytes.Repeat([]byte{0xff, 0xff, 0x1f, 0, 0, 0}, r.n), 0, 0) // 21 ones: error 0
	if !attack(none) {
		t.Error("the attack on the control does not work")
	}
	key := updateErrorKey(from, to)
	w.fillNoise(newBlock(&key), 0, r.n)
	if attack(w.noise) {
		t.Error("the new key was found from the old one")
	}
}
