package lattice

import "math/bits"

// An ntt holds the constants of the inverse number-theoretic transform of
// Z_q[X]/(X^n+1), the only transform the scheme needs: keys and public values
// are drawn as values at the roots, and only a product comes back to
// coefficients. It is immutable after newNTT.
//
// The layers follow Harvey, "Faster arithmetic for number-theoretic
// transforms": factors with precomputed quotients, and sums that are reduced
// only where they could overflow. With q < 2^60, 16q fits a word. Nothing
// branches on a value, since values depend on the key.
//
// The ring package of lattigo has such a transform too. For one prime this one
// takes three quarters of its time, as the product, the first layers and the
// scaling share a pass over memory, and with AVX2 less than half.
type ntt struct {
	n      int
	q      uint64
	qInv   uint64      // 1/q mod 2^64, for Montgomery products
	shift  int         // the length of q in bits: q = 2^shift - 2^14 + 1
	root   []twist     // powers of 1/psi, place i having exponent rev(i)
	blocks [][15]twist // the factors of the first four layers, per 16 values
	vector bool        // use layerAVX2
}

// A twist is a constant factor w with f = floor(w*2^64/q), which makes the
// product with any word three multiplications (Shoup).
type twist struct{ w, f uint64 }

// newNTT builds the tables for a root psi with psi^n = -1. Value j of a vector
// belongs to psi^(2*rev(j)+1), rev reversing log2(n) bits.
func newNTT(n int, q, psi uint64) *ntt {
	t := &ntt{n: n, q: q, qInv: inverseWord(q), shift: bits.Len64(q), vector: haveAVX2()}
	logn := bits.Len(uint(n)) - 1
	inv := power(psi, 2*uint64(n)-1, q)
	t.root = make([]twist, n)
	for i, w := 0, uint64(1); i < n; i++ {
		f, _ := bits.Div64(w, 0, q)
		t.root[bits.Reverse64(uint64(i))>>(64-logn)] = twist{w, f}
		w = mulMod(w, inv, q)
	}
	t.blocks = make([][15]twist, n/16)
	for i := range t.blocks {
		b := &t.blocks[i]
		copy(b[:8], t.root[n/2+8*i:])
		copy(b[8:12], t.root[n/4+4*i:])
		copy(b[12:14], t.root[n/8+2*i:])
		b[14] = t.root[n/16+i]
	}
	return t
}

// factors is one factor for each block of the layer that pairs values step
// apart.
func (t *ntt) factors(step int) []twist { return t.root[t.n/(2*step) : t.n/step] }

// mulInverse sets out to n * 2^-64 * InverseNTT(a o s) for a, s in [0, q). The
// constant is part of the definition of the PRF and saves a scaling. Results
// are in [0, 8q).
func (t *ntt) mulInverse(out, a, s []uint64) {
	t.product(out[:t.n], a[:t.n], s[:t.n])
	if t.vector {
		for i, step := 0, 4; step < t.n; i, step = i+1, 2*step {
			layerAVX2(out[:t.n], t.factors(step), step, t.q, t.shift, i%2 == 1)
		}
		return
	}
	q := t.q
	for i, step := 0, 16; step < t.n; i, step = i+1, 2*step {
		for j, w := range t.factors(step) {
			b := out[2*step*j:][:2*step]
			x, y := b[:step], b[step:]
			if i%2 == 0 { // values below 4q
				butterflies(x, y, w, 4*q, q)
				continue
			}
			// The first half are sums, below 8q, the others below 4q.
			butterfliesWeak(x[:step/2], y, w, q, t.shift)
			butterflies(x[step/2:], y[step/2:], w, 4*q, q)
		}
	}
}

// butterflies sets x, y to x+y, (x-y)w for y <= c. x+y grows, (x-y)w is below
// 2q.
func butterflies(x, y []uint64, t twist, c, q uint64) {
	y = y[:len(x)]
	w, f := t.w, t.f
	for j := 0; j < len(x)-1; j += 2 {
		a, b := x[j], y[j]
		x[j] = a + b
		a += c - b
		h, _ := bits.Mul64(a, f)
		y[j] = a*w - h*q
		a, b = x[j+1], y[j+1]
		x[j+1] = a + b
		a += c - b
		h, _ = bits.Mul64(a, f)
		y[j+1] = a*w - h*q
	}
}

// butterfliesWeak is the same for x, y below 8q, with x+y reduced to little more
// than q.
func butterfliesWeak(x, y []uint64, t twist, q uint64, shift int) {
	y = y[:len(x)]
	w, f, c := t.w, t.f, 8*q
	for j := 0; j < len(x)-1; j += 2 {
		a, b := x[j], y[j]
		x[j] = weak(a+b, q, shift)
		a += c - b
		h, _ := bits.Mul64(a, f)
		y[j] = a*w - h*q
		a, b = x[j+1], y[j+1]
		x[j+1] = weak(a+b, q, shift)
		a += c - b
		h, _ = bits.Mul64(a, f)
		y[j+1] = a*w - h*q
	}
}

// weak reduces any x: q is a little less than 2^shift, so the quotient by a
// shift is at most the true one, and x is left below 2^shift + 16*2^14.
func weak(x, q uint64, shift int) uint64 { return x - x>>(shift&63)*q }

// reduce is x mod q for any x below 16q, in [0, q).
func reduce(x, q uint64, shift int) uint64 {
	x = weak(x, q, shift) - q
	return x + q&uint64(int64(x)>>63)
}

// product multiplies and runs the first layers, on 16 values at a time: four
// layers, or the two that layerAVX2 leaves. Results are below 4q.
func (t *ntt) product(out, a, s []uint64) {
	q, qi := t.q, t.qInv
	for i := range t.blocks {
		if len(out) < 16 || len(a) < 16 || len(s) < 16 {
			return // never: the lengths are n
		}
		b, x, y := (*[16]uint64)(out), (*[16]uint64)(a), (*[16]uint64)(s)
		b[0], b[1] = montgomery(x[0], y[0], q, qi), montgomery(x[1], y[1], q, qi)
		b[2], b[3] = montgomery(x[2], y[2], q, qi), montgomery(x[3], y[3], q, qi)
		b[4], b[5] = montgomery(x[4], y[4], q, qi), montgomery(x[5], y[5], q, qi)
		b[6], b[7] = montgomery(x[6], y[6], q, qi), montgomery(x[7], y[7], q, qi)
		b[8], b[9] = montgomery(x[8], y[8], q, qi), montgomery(x[9], y[9], q, qi)
		b[10], b[11] = montgomery(x[10], y[10], q, qi), montgomery(x[11], y[11], q, qi)
		b[12], b[13] = montgomery(x[12], y[12], q, qi), montgomery(x[13], y[13], q, qi)
		b[14], b[15] = montgomery(x[14], y[14], q, qi), montgomery(x[15], y[15], q, qi)
		layers12(b, &t.blocks[i], q)
		if t.vector {
			b[0], b[4] = weak(b[0], q, t.shift), weak(b[4], q, t.shift)
			b[8], b[12] = weak(b[8], q, t.shift), weak(b[12], q, t.shift)
		} else {
			layers34(b, &t.blocks[i], q, t.shift)
		}
		out, a, s = out[16:], a[16:], s[16:]
	}
}

// layers12 and layers34 are written out: as loops they take half as long again.
//
// layers12 takes values below 2q. The sums of sums, every fourth, can then come
// to 8q, the others to 4q.
func layers12(b *[16]uint64, w *[15]twist, q uint64) {
	c := 2 * q
	butterfly(b, 0, 1, &w[0], c, q)
	butterfly(b, 2, 3, &w[1], c, q)
	butterfly(b, 4, 5, &w[2], c, q)
	butterfly(b, 6, 7, &w[3], c, q)
	butterfly(b, 8, 9, &w[4], c, q)
	butterfly(b, 10, 11, &w[5], c, q)
	butterfly(b, 12, 13, &w[6], c, q)
	butterfly(b, 14, 15, &w[7], c, q)
	c = 4 * q
	butterfly(b, 0, 2, &w[8], c, q)
	butterfly(b, 1, 3, &w[8], c, q)
	butterfly(b, 4, 6, &w[9], c, q)
	butterfly(b, 5, 7, &w[9], c, q)
	butterfly(b, 8, 10, &w[10], c, q)
	butterfly(b, 9, 11, &w[10], c, q)
	butterfly(b, 12, 14, &w[11], c, q)
	butterfly(b, 13, 15, &w[11], c, q)
}

// layers34 takes what layers12 leaves. Only three places can come to 16q or
// above 4q in the end.
func layers34(b *[16]uint64, w *[15]twist, q uint64, shift int) {
	c := 8 * q
	butterfly(b, 0, 4, &w[12], c, q)
	butterfly(b, 1, 5, &w[12], c, q)
	butterfly(b, 2, 6, &w[12], c, q)
	butterfly(b, 3, 7, &w[12], c, q)
	butterfly(b, 8, 12, &w[13], c, q)
	butterfly(b, 9, 13, &w[13], c, q)
	butterfly(b, 10, 14, &w[13], c, q)
	butterfly(b, 11, 15, &w[13], c, q)
	b[0], b[8] = weak(b[0], q, shift), weak(b[8], q, shift)
	butterfly(b, 0, 8, &w[14], c, q)
	butterfly(b, 1, 9, &w[14], c, q)
	butterfly(b, 2, 10, &w[14], c, q)
	butterfly(b, 3, 11, &w[14], c, q)
	butterfly(b, 4, 12, &w[14], c, q)
	butterfly(b, 5, 13, &w[14], c, q)
	butterfly(b, 6, 14, &w[14], c, q)
	butterfly(b, 7, 15, &w[14], c, q)
	b[1] = weak(b[1], q, shift)
	b[2], b[3] = weak(b[2], q, shift), weak(b[3], q, shift)
}

func butterfly(b *[16]uint64, i, j int, w *twist, c, q uint64) {
	x, y := b[i], b[j]
	b[i] = x + y
	x += c - y
	h, _ := bits.Mul64(x, w.f)
	b[j] = x*w.w - h*q
}

// montgomery is x*y/2^64 mod q in [0, 2q), for x, y below q.
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
