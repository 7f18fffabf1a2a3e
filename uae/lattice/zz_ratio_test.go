package lattice

import (
	"crypto/aes"
	"crypto/cipher"
	"math/rand/v2"
	"sort"
	"testing"
	"time"
)

func TestRatio(t *testing.T) {
	const q = q60
	r, _ := newRing(R60)
	tb := r.ntt
	p := make([]uint64, 4096)
	c := make([]uint64, 4096)
	w := r.acquire()
	o := w.f
	for i := range p {
		p[i] = rand.Uint64N(q)
		c[i] = rand.Uint64N(q)
	}
	m := make([]byte, 1<<20)
	out := make([]byte, 0, 1<<20+16)
	body := make([]byte, 30720)
	var key [32]byte
	bb := newBlock(&key)
	f := map[string]func(){
		"gcm": func() { bl, _ := aes.NewCipher(key[:]); g, _ := cipher.NewGCM(bl); g.Seal(out, key[:12], m, nil) },
		"intt": func() {
			for range 10 {
				tb.mulInverse(o, p, c)
			}
		},
		"product16": func() {
			for range 10 {
				tb.product16(o, p, c)
			}
		},
		"sha": func() {
			for range 10 {
				leaf(1, m[:24576])
			}
		},
		"noise": func() {
			for range 10 {
				w.fillNoise(bb, 1, 4096)
			}
		},
		"layer2048": func() {
			for range 10 {
				butterflies(o[:2048], o[2048:], twist{12343422, 12122323}, 4*q, q)
			}
		},
		"layer16": func() {
			for range 10 {
				for i := range 128 {
					butterflies(o[32*i:][:16], o[32*i+16:], twist{12343422, 12122323}, 4*q, q)
				}
			}
		},
		"weak2048": func() {
			for range 10 {
				butterfliesWeak(o[:2048], o[2048:], twist{12343422, 12122323}, q, 60)
			}
		},
		"encode": func() {
			for range 10 {
				r.encode(body, m[:24576], p, w.noise)
			}
		},
		"update": func() {
			for range 10 {
				r.update(body, body, p, w.noise)
			}
		},
		"decode": func() {
			for range 10 {
				r.decode(m[:24576], body, p)
			}
		},
	}
	rr := map[string][]float64{}
	for range 300 {
		for n, g := range f {
			s := time.Now()
			g()
			rr[n] = append(rr[n], float64(time.Since(s).Nanoseconds()))
		}
	}
	med := func(s string) float64 { sort.Float64s(rr[s]); return rr[s][len(rr[s])/2] }
	g := med("gcm") / (1048576. / 24576)
	gm := rr["gcm"][3] / (1048576. / 24576)
	for _, n := range []string{"intt", "product16", "layer16", "layer2048", "weak2048", "sha", "noise", "encode", "update", "decode"} {
		x := med(n)
		t.Logf("%10s %6.1f us; min %6.1f; gcm units %.2f  min/min %.2f", n, x/1e4, rr[n][3]/1e4, x/10/g, rr[n][3]/10/gm)
	}
	t.Logf("gcm %.1f us min %.1f; budgets in gcm blocks: enc %.2f re %.2f dec %.2f", med("gcm")/1e3, rr["gcm"][3]/1e3, 1/.095, 1/.115, 1/.11)
}
