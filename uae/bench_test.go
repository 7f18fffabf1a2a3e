package uae_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/gtank/ristretto255"

	"github.com/seed-a893640b/tae/uae"
	"github.com/seed-a893640b/tae/uae/lattice"
	"github.com/seed-a893640b/tae/uae/nested"
	"github.com/seed-a893640b/tae/uae/recrypt"
)

var sizes = []int{4 << 10, 32 << 10, 100 << 10, 1 << 20}

// aesGCM encrypts one message under a fresh key with the standard library, the
// measure for everything else.
func aesGCM(dst, m []byte) []byte {
	var key [32]byte
	_, _ = rand.Read(key[:])
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return gcm.Seal(dst, make([]byte, gcm.NonceSize()), m, nil)
}

// against runs op and AES-256-GCM on the same size in turns and reports medians:
// MB/s, and the speed of op as a share of that of AES-256-GCM. Equally long turns
// cancel most of what other load on the machine does to a ratio.
func against(b *testing.B, size int, op func()) {
	b.Helper()
	m, out := make([]byte, size), make([]byte, 0, size+16)
	base := func() { aesGCM(out, m) }
	slot := max(timed(op, 3), 200_000) // nanoseconds, long enough for the clock
	reps := func(f func()) int { return int(math.Ceil(slot / timed(f, 3))) }
	n, nBase := reps(op), reps(base)
	var own, ref []float64
	for b.Loop() {
		own = append(own, timed(op, n))
		ref = append(ref, timed(base, nBase))
	}
	o, r := median(own), median(ref)
	b.ReportMetric(o, "ns/op")
	b.ReportMetric(float64(size)/o*1e3, "MB/s")
	b.ReportMetric(r/o, "of-aes-gcm")
}

func timed(f func(), n int) float64 {
	start := time.Now()
	for range n {
		f()
	}
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func BenchmarkAESGCM(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("size=%d", n), func(b *testing.B) {
			m, out := make([]byte, n), make([]byte, 0, n+16)
			b.SetBytes(int64(n))
			for b.Loop() {
				aesGCM(out, m)
			}
		})
	}
}

func BenchmarkNested(b *testing.B) {
	s := must(nested.New(20))
	for _, n := range sizes {
		k := s.KeyGen()
		m, aad := make([]byte, n), []byte("aad")
		buf := make([]byte, 0, s.CiphertextSize(n))
		b.Run(fmt.Sprintf("size=%d/encrypt", n), func(b *testing.B) {
			against(b, n, func() { must(s.Encrypt(buf, k, m, aad)) })
		})
		for _, age := range []int{0, 1, 10, 20} {
			ct := aged(s, k, m, aad, age)
			if age < 20 {
				token := must(s.ReKeyGen(k, k, ct[:s.HeaderSize()]))
				b.Run(fmt.Sprintf("size=%d/reencrypt/age=%d", n, age), func(b *testing.B) {
					against(b, n, func() { must(s.ReEncrypt(buf, token, ct)) })
				})
			}
			b.Run(fmt.Sprintf("size=%d/decrypt/age=%d", n, age), func(b *testing.B) {
				against(b, n, func() { must(s.Decrypt(buf, k, ct, aad)) })
			})
		}
	}
}

func BenchmarkLattice(b *testing.B) {
	s := must(lattice.New(lattice.R60))
	for _, n := range sizes {
		benchThree(b, s, n, s.CiphertextSize(n), against)
	}
}

// BenchmarkLatticeCores compares two cores with one, and with AES-256-GCM on one,
// on 1 MB and in turns. It means something only while nothing else runs.
func BenchmarkLatticeCores(b *testing.B) {
	s, n := must(lattice.New(lattice.R60)), 1<<20
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	gcm, out := make([]byte, n), make([]byte, 0, n+16)
	benchThree(b, s, n, s.CiphertextSize(n), func(b *testing.B, _ int, op func()) {
		var one, two, ref []float64
		for b.Loop() {
			runtime.GOMAXPROCS(1)
			op() // the switch empties the pools of scratch memory
			one = append(one, timed(op, 4))
			ref = append(ref, timed(func() { aesGCM(out, gcm) }, 4))
			runtime.GOMAXPROCS(2)
			op()
			two = append(two, timed(op, 4))
		}
		o, t := median(one), median(two)
		b.ReportMetric(t, "ns/op")
		b.ReportMetric(o/t, "of-one-core")
		b.ReportMetric(median(ref)/t, "of-aes-gcm")
	})
}

func benchThree(b *testing.B, s uae.Scheme, n, size int, measure func(*testing.B, int, func())) {
	k := s.KeyGen()
	m, aad := message(n), []byte("aad") // random: recrypt depends on the message
	buf := make([]byte, 0, size)
	ct := aged(s, k, m, aad, 1)
	token := must(s.ReKeyGen(k, k, ct[:s.HeaderSize()]))
	run := func(name string, op func()) {
		b.Run(fmt.Sprintf("size=%d/%s", n, name), func(b *testing.B) { measure(b, n, op) })
	}
	run("encrypt", func() { must(s.Encrypt(buf, k, m, aad)) })
	run("reencrypt", func() { must(s.ReEncrypt(buf, token, ct)) })
	run("decrypt", func() { must(s.Decrypt(buf, k, ct, aad)) })
}

// BenchmarkReCrypt reports the time per block in scalar multiplications.
func BenchmarkReCrypt(b *testing.B) {
	s := recrypt.New()
	for _, n := range sizes[:2] {
		benchThree(b, s, n, s.CiphertextSize(n), func(b *testing.B, n int, op func()) {
			e := ristretto255.NewElement().Base()
			x := ristretto255.NewScalar().FromUniformBytes(message(64))
			blocks := (n + recrypt.BlockSize - 1) / recrypt.BlockSize
			var own, mult, gcm []float64
			m, out := make([]byte, n), make([]byte, 0, n+16)
			for b.Loop() {
				own = append(own, timed(op, 1))
				mult = append(mult, timed(func() { e.ScalarMult(x, e) }, blocks))
				gcm = append(gcm, timed(func() { aesGCM(out, m) }, 1000))
			}
			o, t := median(own), median(mult)
			b.ReportMetric(o, "ns/op")
			b.ReportMetric(float64(n)/o*1e3, "MB/s")
			b.ReportMetric(o/float64(blocks)/t, "mults/block")
			b.ReportMetric(median(gcm)/o, "of-aes-gcm")
		})
	}
}

// aged encrypts and updates n times under one key.
func aged(s uae.Scheme, k uae.Key, m, aad []byte, n int) []byte {
	ct := must(s.Encrypt(nil, k, m, aad))
	for range n {
		ct = must(s.ReEncrypt(ct[:0], must(s.ReKeyGen(k, k, ct[:s.HeaderSize()])), ct))
	}
	return ct
}

func BenchmarkReKeyGen(b *testing.B) {
	for _, c := range []struct {
		name string
		s    uae.Scheme
	}{
		{"nested", must(nested.New(20))},
		{"lattice", must(lattice.New(lattice.R60))},
		{"recrypt", recrypt.New()},
	} {
		b.Run(c.name, func(b *testing.B) {
			k := c.s.KeyGen()
			ct := must(c.s.Encrypt(nil, k, make([]byte, 4096), nil))
			for b.Loop() {
				must(c.s.ReKeyGen(k, k, ct[:c.s.HeaderSize()]))
			}
		})
	}
}
