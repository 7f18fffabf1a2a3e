package lattice

import (
	"crypto/cipher"
	"crypto/subtle"
	"fmt"
	"sync/atomic"

	"github.com/seed-a893640b/tae/uae"
	"github.com/seed-a893640b/tae/uae/internal/frame"
)

func equal(a, b *[32]byte) bool { return subtle.ConstantTimeCompare(a[:], b[:]) == 1 }

// A worker adds F(s, i) + error to ring elements. It is what encryption and
// update have in common.
type worker struct {
	r   *ring
	key *scratch // key.f holds the key or the difference
	err cipher.Block
}

func (s *Scheme) newWorker(seed *[32]byte) worker {
	w := worker{r: s.r, key: s.r.acquire()}
	s.r.expandKey(w.key.f, seed, w.key)
	e := errorKey(seed)
	w.err = newBlock(&e)
	clear(e[:])
	return w
}

// newUpdater reads the scheme part of a token.
func (s *Scheme) newUpdater(part []byte) (worker, error) {
	w := worker{r: s.r, key: s.r.acquire(), err: newBlock((*[32]byte)(part))}
	if s.r.unpack(w.key.f, part[32:]) != 0 {
		w.wipe()
		return w, fmt.Errorf("%w token: coefficient out of range", uae.ErrFormat)
	}
	return w, nil
}

func (w worker) wipe() { w.r.release(w.key) }

// encrypt encrypts m into body, ring elements numbered from first, and returns the
// leaf hashes.
func (w worker) encrypt(body, m []byte, first int) [][32]byte {
	r := w.r
	leaves := make([][32]byte, r.blocks(len(m)))
	frame.Each(len(leaves), w.each(func(i int, t *scratch) {
		in, out := cut(m, i, r.blockPlain()), cut(body, i, r.blockBody())
		leaves[i] = leaf(uint64(first+i), in)
		w.mask(t, first+i, len(out)/r.groupBody*r.groupCoefs)
		r.encode(out, in, t.f, t.noise)
	}))
	return leaves
}

// update moves body into out. It is false if a coefficient is out of range.
func (w worker) update(out, body []byte, first int) bool {
	r := w.r
	var bad atomic.Bool
	n := (len(body) + r.blockBody() - 1) / r.blockBody()
	frame.Each(n, w.each(func(i int, t *scratch) {
		from, to := cut(body, i, r.blockBody()), cut(out, i, r.blockBody())
		w.mask(t, first+i, len(from)/r.groupBody*r.groupCoefs)
		if r.update(to, from, t.f, t.noise) != 0 {
			bad.Store(true)
		}
	}))
	return !bad.Load()
}

// mask computes the product and the noise of ring element i.
func (w worker) mask(t *scratch, i, coefs int) {
	w.r.ntt.mulInverse(t.f, w.r.h0(i, t), w.key.f)
	t.fillNoise(w.err, i, coefs)
}

// each gives every goroutine scratch memory of its own.
func (w worker) each(f func(i int, t *scratch)) func() (func(int), func()) {
	return func() (func(int), func()) {
		t := w.r.acquire()
		return func(i int) { f(i, t) }, func() { w.r.release(t) }
	}
}

// decrypt fills m. tooLarge says that a coefficient was out of range, which
// anyone can see; wrong that a value or the padding was.
func (w worker) decrypt(m, body []byte) (leaves [][32]byte, tooLarge, wrong bool) {
	r := w.r
	leaves = make([][32]byte, r.blocks(len(m)))
	var large, bad atomic.Uint64 // not branched on within
	frame.Each(len(leaves), w.each(func(i int, t *scratch) {
		out, in := cut(m, i, r.blockPlain()), cut(body, i, r.blockBody())
		r.ntt.mulInverse(t.f, r.h0(i, t), w.key.f)
		l, b := r.decode(out, in, t.f)
		large.Or(l)
		bad.Or(b)
		leaves[i] = leaf(uint64(i), out)
	}))
	return leaves, large.Load() != 0, bad.Load() != 0
}

// cut is part i of b in parts of n bytes.
func cut(b []byte, i, n int) []byte { return b[n*i : min(n*(i+1), len(b))] }
