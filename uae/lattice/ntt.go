package lattice

import "math/bits"

// An ntt holds the constants of the inverse number-theoretic transform of
// Z_q[X]/(X^n+1), the only transform the scheme needs: keys and public values
// are drawn as values at the roots, and only a product comes back to
// coefficients. It is immutable after newNTT.
//
// Values are kept in [0, 4q) between passes (q < 2^60, so 16q fits a word) and
// every reduction is branch free, since the values depend on the key.
type ntt struct {
	n      int
	q      uint64
	qInv   uint64      // 1/q mod 2^64, for Montgomery products
	shift  int         // the length of q in bits
	blocks [][15]twist // factors of the first four layers, per 16 values
	layers [][]twist   // factors of each further layer
}

// A twist is a constant factor w with floor(w*2^64/q), which makes the product
// with any word three multiplications (Shoup's method).
type twist struct{ w, f uint64 }

// newNTT builds the tables for the root psi of order 2n. Value j of a vector
// belongs to psi^(2*rev(j)+1), rev reversing log2(n) bits.
func newNTT(n int, q, psi uint64) *ntt {
	t := &ntt{n: n, q: q, qInv: inverseWord(q), shift: bits.Len64(q)}
	logn := bits.Len(uint(n)) - 1
	inv := power(psi, 2*uint64(n)-1, q)
	root := make([]twist, n)
	for i, w := 0, uint64(1); i < n; i++ {
		root[bits.Reverse64(uint64(i))>>(64-logn)] = newTwist(w, q)
		w = mulMod(w, inv, q)
	}
	t.blocks = make([][15]twist, n/16)
	for i := range t.blocks {
		b := &t.blocks[i]
		copy(b[:8], root[n/2+8*i:])
		copy(b[8:12], root[n/4+4*i:])
		copy(b[12:14], root[n/8+2*i:])
		b[14] = root[n/16+i]
	}
	for h := n / 32; h >= 1; h /= 2 {
		t.layers = append(t.layers, root[h:2*h])
	}
	return t
}

func newTwist(w, q uint64) twist {
	f, _ := bits.Div64(w, 0, q)
	return twist{w, f}
}

// mul is x*w mod q in [0, 2q), for any x.
func (w twist) mul(x, q uint64) uint64 {
	h, _ := bits.Mul64(x, w.f)
	return x*w.w - h*q
}

// fold subtracts c from x if x >= c; x-c must fit a signed word.
func fold(x, c uint64) uint64 {
	x -= c
	return x + c&uint64(int64(x)>>63)
}

// mulInverse sets out to n * 2^-64 * InverseNTT(a o s), in [0, 4q): the
// pointwise product and the first two layers in one pass. The constant n*2^-64
// is part of the definition of the PRF.
func (t *ntt) mulInverse(out, a, s []uint64) {
	t.first(out[:t.n], a[:t.n], s[:t.n])
	step, q := 16, t.q
	for i, layer := range t.layers {
		for j := range layer {
			w := layer[j]
			b := out[2*step*j:][:2*step]
			x, y := b[:step], b[step:]
			if i%2 == 0 {
				butterflies(x, y, w.w, w.f, 4*q, q)
				continue
			}
			butterfliesWeak(x[:step/2], y, w.w, w.f, q, t.shift)
			butterflies(x[step/2:], y[step/2:], w.w, w.f, 4*q, q)
		}
		step *= 2
	}
}

func butterflies(b0, b1 []uint64, w, f, c, q uint64) {
	b1 = b1[:len(b0)]
	for j := 0; j < len(b0)-3; j += 4 {
		x, y := b0[j], b1[j]
		b0[j] = x + y
		x = x - y + c
		h, _ := bits.Mul64(x, f)
		b1[j] = x*w - h*q
		x, y = b0[j+1], b1[j+1]
		b0[j+1] = x + y
		x = x - y + c
		h, _ = bits.Mul64(x, f)
		b1[j+1] = x*w - h*q
		x, y = b0[j+2], b1[j+2]
		b0[j+2] = x + y
		x = x - y + c
		h, _ = bits.Mul64(x, f)
		b1[j+2] = x*w - h*q
		x, y = b0[j+3], b1[j+3]
		b0[j+3] = x + y
		x = x - y + c
		h, _ = bits.Mul64(x, f)
		b1[j+3] = x*w - h*q
	}
}

func butterfliesWeak(b0, b1 []uint64, w, f, q uint64, shift int) {
	b1 = b1[:len(b0)]
	c := 8 * q
	for j := 0; j < len(b0)-1; j += 2 {
		x, y := b0[j], b1[j]
		b0[j] = weak(x+y, q, shift)
		x = x - y + c
		h, _ := bits.Mul64(x, f)
		b1[j] = x*w - h*q
		x, y = b0[j+1], b1[j+1]
		b0[j+1] = weak(x+y, q, shift)
		x = x - y + c
		h, _ = bits.Mul64(x, f)
		b1[j+1] = x*w - h*q
	}
}

func weak(x, q uint64, shift int) uint64 { return x - x>>(shift&63)*q }

func bf(b *[16]uint64, i, j int, w *twist, c, q uint64) {
	x, y := b[i], b[j]
	b[i] = x + y
	b[j] = w.mul(x-y+c, q)
}

func (t *ntt) first(out, a, s []uint64) {
	q, qi, sh := t.q, t.qInv, t.shift
	for i := range t.blocks {
		w := &t.blocks[i]
		if len(out) < 16 || len(a) < 16 || len(s) < 16 {
			return
		}
		mont16((*[16]uint64)(out), (*[16]uint64)(a), (*[16]uint64)(s), q, qi)
		block16((*[16]uint64)(out), w, q, sh)
		out, a, s = out[16:], a[16:], s[16:]
	}
}

func mont16(b, a, s *[16]uint64, q, qi uint64) {
	for k := range b {
		b[k] = montgomery(a[k], s[k], q, qi)
	}
}

func block16(b *[16]uint64, w *[15]twist, q uint64, sh int) {
	c := 2 * q
	bf(b, 0, 1, &w[0], c, q)
	bf(b, 2, 3, &w[1], c, q)
	bf(b, 4, 5, &w[2], c, q)
	bf(b, 6, 7, &w[3], c, q)
	bf(b, 8, 9, &w[4], c, q)
	bf(b, 10, 11, &w[5], c, q)
	bf(b, 12, 13, &w[6], c, q)
	bf(b, 14, 15, &w[7], c, q)
	c = 4 * q
	bf(b, 0, 2, &w[8], c, q)
	bf(b, 1, 3, &w[8], c, q)
	bf(b, 4, 6, &w[9], c, q)
	bf(b, 5, 7, &w[9], c, q)
	bf(b, 8, 10, &w[10], c, q)
	bf(b, 9, 11, &w[10], c, q)
	bf(b, 12, 14, &w[11], c, q)
	bf(b, 13, 15, &w[11], c, q)
	c = 8 * q
	bf(b, 0, 4, &w[12], c, q)
	bf(b, 1, 5, &w[12], c, q)
	bf(b, 2, 6, &w[12], c, q)
	bf(b, 3, 7, &w[12], c, q)
	bf(b, 8, 12, &w[13], c, q)
	bf(b, 9, 13, &w[13], c, q)
	bf(b, 10, 14, &w[13], c, q)
	bf(b, 11, 15, &w[13], c, q)
	b[0], b[8] = weak(b[0], q, sh), weak(b[8], q, sh)
	bf(b, 0, 8, &w[14], c, q)
	bf(b, 1, 9, &w[14], c, q)
	bf(b, 2, 10, &w[14], c, q)
	bf(b, 3, 11, &w[14], c, q)
	bf(b, 4, 12, &w[14], c, q)
	bf(b, 5, 13, &w[14], c, q)
	bf(b, 6, 14, &w[14], c, q)
	bf(b, 7, 15, &w[14], c, q)
	b[1] = weak(b[1], q, sh)
	b[2] = weak(b[2], q, sh)
}

// montgomery is x*y/2^64 mod q in [0, 2q), for x, y < q.
func montgomery(x, y, q, qInv uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	m, _ := bits.Mul64(lo*qInv, q)
	return hi - m + q
}

func mulMod(x, y, q uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return bits.Rem64(hi, lo, q)
}

func power(x, e, q uint64) uint64 {
	r := uint64(1)
	for ; e > 0; e >>= 1 {
		if e&1 == 1 {
			r = mulMod(r, x, q)
		}
		x = mulMod(x, x, q)
	}
	return r
}

// inverseWord is 1/q mod 2^64 for odd q, by Newton's iteration.
func inverseWord(q uint64) uint64 {
	x := q
	for range 6 {
		x *= 2 - q*x
	}
	return x
}
