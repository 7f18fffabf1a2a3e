package lattice

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/seed-a893640b/tae/internal/labelhash"
	"github.com/seed-a893640b/tae/uae/internal/frame"
)

const (
	labelPublic  = "tae/v1/uae/lattice/h0"
	labelKey     = "tae/v1/uae/lattice/key"
	labelError   = "tae/v1/uae/lattice/error"
	labelUpdate  = "tae/v1/uae/lattice/update-error"
	labelLeaf    = "tae/v1/uae/lattice/leaf"
	labelMessage = "tae/v1/uae/lattice/message"

	// cachedBlocks is how many public ring elements a Scheme keeps once they
	// were needed: 2 MiB for R60, enough for a message of 1.5 MiB. A later
	// element is expanded each time, which costs a tenth of the whole.
	cachedBlocks = 64
)

// ring computes the PRF of Construction 6.1: F(s, i) = H0(i)*s + error, with
// vectors at the roots of X^n+1. It is safe for concurrent use.
type ring struct {
	set
	ntt    *ntt
	public cipher.Block
	cache  [cachedBlocks]atomic.Pointer[[]uint64] // H0, filled on demand
	pool   sync.Pool                              // of *scratch
}

// scratch is the working memory of one goroutine.
type scratch struct {
	f, a   []uint64
	noise  []byte
	stream []byte
}

func newRing(p Params) (*ring, error) {
	s, err := newSet(p)
	if err != nil {
		return nil, err
	}
	r := &ring{set: s, ntt: newNTT(s.n, s.q, s.psi)}
	seed := labelhash.New(labelPublic).Uint16(uint16(p)).Sum()
	r.public = newBlock(&seed)
	r.pool.New = func() any {
		return &scratch{
			f:      make([]uint64, s.n),
			a:      make([]uint64, s.n),
			noise:  make([]byte, noiseLen*s.n+2),
			stream: make([]byte, 8*s.n),
		}
	}
	return r, nil
}

func (r *ring) acquire() *scratch { return r.pool.Get().(*scratch) }

// release wipes what depends on keys and returns the memory to the pool.
func (r *ring) release(w *scratch) {
	clear(w.f)
	clear(w.a)
	clear(w.noise)
	clear(w.stream)
	r.pool.Put(w)
}

func newBlock(key *[32]byte) cipher.Block {
	b, err := aes.NewCipher(key[:])
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return b
}

// stream is AES-256-CTR for ring element i: counter blocks begin with i, so
// streams of different elements do not meet.
func stream(b cipher.Block, i uint64) cipher.Stream {
	var iv [aes.BlockSize]byte
	binary.BigEndian.PutUint64(iv[:], i)
	return cipher.NewCTR(b, iv[:])
}

// uniform fills v with values below q: 8 bytes of stream each, little endian,
// cut to the length of q; values from q on are skipped. A skip has probability
// 2^-46 (2^-36 for R50) and says nothing about the values that are kept.
func (r *ring) uniform(v []uint64, st cipher.Stream, buf []byte) {
	mask := uint64(1)<<r.ntt.shift - 1
	for len(v) > 0 {
		b := buf[:8*len(v)]
		clear(b)
		st.XORKeyStream(b, b)
		var over uint64
		for i := range v {
			x := le.Uint64(b[8*i:8*i+8]) & mask
			v[i] = x
			over |= r.q - 1 - x
		}
		if over>>63 == 0 {
			return
		}
		n := 0
		for _, x := range v {
			if x < r.q {
				v[n] = x
				n++
			}
		}
		v = v[n:]
	}
}

// h0 is the public ring element i, in w.a if it is not cached.
func (r *ring) h0(i int, w *scratch) []uint64 {
	if i >= cachedBlocks {
		r.uniform(w.a, stream(r.public, uint64(i)), w.stream)
		return w.a
	}
	if p := r.cache[i].Load(); p != nil {
		return *p
	}
	v := make([]uint64, r.n)
	r.uniform(v, stream(r.public, uint64(i)), w.stream)
	r.cache[i].Store(&v)
	return v
}

// expandKey fills s with the key of a seed, uniform over the ring: small keys
// would show through differences.
func (r *ring) expandKey(s []uint64, seed *[32]byte, w *scratch) {
	key := frame.Derive(labelKey, seed[:])
	r.uniform(s, stream(newBlock(&key), 0), w.stream)
	clear(key[:])
}

// errorKey is the key of the errors of an encryption under seed. It is a hash
// of the whole seed: everything hangs on errors being unknown.
func errorKey(seed *[32]byte) [32]byte { return frame.Derive(labelError, seed[:]) }

// updateErrorKey is the same for the difference of two seeds. An update applied
// twice adds the same errors, so that repeating it averages nothing out, and
// who knows one seed does not know them.
func updateErrorKey(from, to *[32]byte) [32]byte {
	return labelhash.New(labelUpdate).Fixed(from[:]).Fixed(to[:]).Sum()
}

// fillNoise fills w.noise for n coefficients of ring element i.
func (w *scratch) fillNoise(b cipher.Block, i, n int) {
	noise := w.noise[:noiseLen*n]
	clear(noise)
	stream(b, uint64(i)).XORKeyStream(noise, noise)
}

// leaf hashes the message bytes of ring element i.
func leaf(i uint64, m []byte) [32]byte {
	h := labelhash.New(labelLeaf).Uint64(i)
	_, _ = h.Write(m)
	return h.Sum()
}

// newMessageHash begins the hash of a message: associated data, then the leaf of
// every ring element. The last leaf fixes the length.
func newMessageHash(aad []byte) labelhash.Hash { return labelhash.New(labelMessage).Var(aad) }
