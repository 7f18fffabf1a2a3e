package lattice

import (
	"math/bits"
	"math/rand/v2"
	"testing"
)

// at evaluates f at x by Horner's rule.
func at(f []uint64, x, q uint64) uint64 {
	var r uint64
	for i := len(f) - 1; i >= 0; i-- {
		r = (mulMod(r, x, q) + f[i]) % q
	}
	return r
}

// schoolbook is f*g mod X^n+1.
func schoolbook(f, g []uint64, q uint64) []uint64 {
	n := len(f)
	r := make([]uint64, n)
	for i, x := range f {
		for j, y := range g {
			p := mulMod(x, y, q)
			if k := i + j; k < n {
				r[k] = (r[k] + p) % q
			} else {
				r[k-n] = (r[k-n] + q - p) % q
			}
		}
	}
	return r
}

// The transform against its definition: values at the roots of two polynomials
// give the coefficients of the product, times n/2^64.
func TestMulInverse(t *testing.T) {
	for _, c := range []struct {
		q, g uint64
		ns   []int
	}{{q60, 5, []int{32, 64, 128, 256, 4096}}, {q50, 11, []int{32, 512, 2048}}} {
		for _, n := range c.ns {
			if testing.Short() && n > 512 {
				continue
			}
			psi := power(c.g, (c.q-1)/uint64(2*n), c.q)
			tr := newNTT(n, c.q, psi)
			rng := rand.New(rand.NewPCG(1, uint64(n)))
			f, g := make([]uint64, n), make([]uint64, n)
			for i := range f {
				f[i], g[i] = rng.Uint64N(c.q), rng.Uint64N(c.q)
			}
			a, s, out := make([]uint64, n), make([]uint64, n), make([]uint64, n)
			for j := range a {
				e := 2*(bits.Reverse64(uint64(j))>>(64-bits.Len(uint(n-1)))) + 1
				x := power(psi, e, c.q)
				a[j], s[j] = at(f, x, c.q), at(g, x, c.q)
			}
			bothWays(t, tr, out, a, s)
			r := power(2, 64, c.q)
			for i, p := range schoolbook(f, g, c.q) {
				if out[i] >= 8*c.q {
					t.Fatalf("n=%d: value %d out of range", n, i)
				}
				if mulMod(out[i]%c.q, r, c.q) != mulMod(p, uint64(n), c.q) {
					t.Fatalf("q=%d n=%d: coefficient %d differs", c.q, n, i)
				}
			}
		}
	}
}

// bothWays runs mulInverse in Go and, where there is AVX2, in assembly, and
// requires that they agree.
func bothWays(t *testing.T, tr *ntt, out, a, s []uint64) {
	t.Helper()
	plain := *tr
	plain.vector = false
	plain.mulInverse(out, a, s)
	if !tr.vector {
		return
	}
	other := make([]uint64, len(out))
	tr.mulInverse(other, a, s)
	for i := range out {
		if out[i]%tr.q != other[i]%tr.q || other[i] >= 8*tr.q || out[i] >= 8*tr.q {
			t.Fatalf("q=%d n=%d: assembly and Go differ at %d: %d, %d", tr.q, tr.n, i, other[i], out[i])
		}
	}
}

// Values in all residues and at both ends of the range, through one layer at a
// time and through all.
func TestAssemblyAgreesWithGo(t *testing.T) {
	for _, p := range []Params{R60, R50} {
		r := must(newRing(p))
		if !r.ntt.vector {
			t.Skip("no AVX2")
		}
		rng := rand.New(rand.NewPCG(3, uint64(p)))
		v := make([]uint64, r.n)
		for _, reduced := range []bool{false, true} {
			c, bound := 4*r.q, 8*r.q
			if reduced {
				c, bound = 8*r.q, r.q+1<<19
			}
			for _, step := range []int{4, 8, 64, r.n / 2} {
				for round := range 20 {
					for i := range v {
						switch v[i] = rng.Uint64N(c); rng.Uint64() % 8 {
						case 0:
							v[i] = c - 1 - rng.Uint64N(3)
						case 1:
							v[i] = rng.Uint64N(3)
						case 2:
							v[i] = v[i] &^ (1<<32 - 1)
						}
						if round == 0 {
							v[i] = c - 1
						}
					}
					in := append([]uint64(nil), v...)
					layerAVX2(v, r.ntt.factors(step), step, r.q, r.ntt.shift, reduced)
					for i := range v {
						w := r.ntt.factors(step)[i/(2*step)].w
						want := (in[i]%r.q + in[i^step]%r.q) % r.q
						if i&step != 0 {
							want = mulMod((in[i^step]%r.q+r.q-in[i]%r.q)%r.q, w, r.q)
						}
						if v[i]%r.q != want || i&step != 0 && v[i] >= 4*r.q || v[i] >= bound && i&step == 0 {
							t.Fatalf("%d: step %d: place %d: %d", p, step, i, v[i])
						}
					}
				}
			}
		}
	}
}

// Extreme values must not overflow a word: linearity is checked on vectors whose
// entries are 0 or q-1 in patterns that make sums as large as they get.
func TestMulInverseExtremes(t *testing.T) {
	for _, p := range []Params{R60, R50} {
		r := must(newRing(p))
		n, q := r.n, r.q
		a, s := make([]uint64, n), make([]uint64, n)
		x, y, z := make([]uint64, n), make([]uint64, n), make([]uint64, n)
		for i := range a {
			a[i] = q - 1
		}
		for pattern := range 64 {
			rng := rand.New(rand.NewPCG(2, uint64(pattern)))
			rest := make([]uint64, n)
			for i := range s {
				s[i], rest[i] = 0, q-1
				if pattern < 13 && i>>pattern&1 == 0 || pattern >= 13 && rng.Uint64()&1 == 0 {
					s[i], rest[i] = q-1, 0
				}
			}
			all := make([]uint64, n)
			for i := range all {
				all[i] = q - 1
			}
			bothWays(t, r.ntt, x, a, s)
			bothWays(t, r.ntt, y, a, rest)
			bothWays(t, r.ntt, z, a, all)
			for i := range x {
				if (x[i]%q+y[i]%q)%q != z[i]%q {
					t.Fatalf("%d, pattern %d: not linear at %d", p, pattern, i)
				}
			}
		}
	}
}

func TestReductions(t *testing.T) {
	for _, c := range []struct {
		q     uint64
		shift int
	}{{q60, 60}, {q50, 50}} {
		for k := range uint64(16) {
			for _, d := range []uint64{0, 1, 2, 1 << 14, 1 << 18, c.q / 2, c.q - 2, c.q - 1} {
				x := k*c.q + d
				if reduce(x, c.q, c.shift) != d || weak(x, c.q, c.shift)%c.q != d {
					t.Fatalf("%d*q+%d", k, d)
				}
			}
		}
	}
	for range 100_000 {
		v := rand.Uint64() >> 4
		if divide(v) != v/spacing {
			t.Fatal(v)
		}
	}
	for _, v := range []uint64{0, spacing - 1, spacing, 1<<60 - 1, (1<<60-1)/spacing*spacing - 1} {
		if divide(v) != v/spacing {
			t.Fatal(v)
		}
	}
}

func TestParameters(t *testing.T) {
	for _, p := range []Params{R60, R50} {
		s := must(newSet(p))
		if power(s.psi, uint64(s.n), s.q) != s.q-1 {
			t.Errorf("%d: psi^n is not -1", p)
		}
		if s.q != 1<<uint(p)-1<<14+1 || spacing != s.q>>s.plainBits {
			t.Errorf("%d: modulus or spacing", p)
		}
		// The largest value with the largest error does not wrap.
		if (1<<s.plainBits-1)*spacing+2*middle >= s.q {
			t.Errorf("%d: the largest value wraps", p)
		}
	}
	if _, err := New(128); err == nil {
		t.Error("unknown set accepted")
	}
}
