// Package lattice is updatable encryption from ring learning with errors:
// Construction 5.2 of Boneh, Eskandarian, Kim and Shih (ePrint 2020/222) with
// the almost key-homomorphic pseudorandom function of their Construction 6.1.
// An update adds a vector to the body; decryption costs the same at any age.
//
// Guarantees, in the paper's terms: confidentiality in the sense of update
// independence for whoever sees ciphertexts and old keys, up to MaxUpdates
// updates, which the header counts and authenticates; relaxed integrity: the
// message and the associated data are authenticated, the low bits of a
// coefficient are not, since they carry the noise. A storage can change them
// and nobody sees it.
//
// Limits. The storage must be passive: whoever can change coefficients and
// watch some 20,000 decryptions of one object succeed or fail finds its noise,
// then its key; fewer show its age. Stop using an object after one failed
// check, and prefer package nested where the storage may be hostile. The
// storage must not re-encrypt bodies it was not asked to (section 5.4 of the
// paper). Tests show all of these.
//
// Everything that depends on a key is constant time, except that a value of a
// random vector is drawn again with probability 2^-46 (2^-36 for R50).
package lattice

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/seed-a893640b/tae/uae"
	"github.com/seed-a893640b/tae/uae/internal/frame"
)

const (
	// HeaderSize is the length of every header in bytes.
	HeaderSize = frame.Overhead + plainSize

	// MaxUpdates is the number of updates that a ciphertext can take.
	MaxUpdates = 1000

	// MaxMessage is the largest message in bytes, on machines with 64 bits.
	MaxMessage = 1 << 40

	limit = min(MaxMessage, math.MaxInt/2)

	plainSize = 32 + 32 + 2
)

// A Scheme is lattice encryption with one parameter set. It keeps tables and
// public values, up to 2.5 MiB, and should be made once.
type Scheme struct{ r *ring }

var (
	_ uae.Scheme   = (*Scheme)(nil)
	_ uae.Streamer = (*Scheme)(nil)
)

// New returns the scheme for R60 or R50; any other value is uae.ErrScheme.
func New(p Params) (*Scheme, error) {
	r, err := newRing(p)
	if err != nil {
		return nil, err
	}
	return &Scheme{r}, nil
}

// KeyGen implements uae.Scheme.
func (s *Scheme) KeyGen() uae.Key { return uae.NewKey(uae.Lattice, uint16(s.r.param)) }

// HeaderSize is the constant HeaderSize.
func (s *Scheme) HeaderSize() int { return HeaderSize }

// TokenSize is the length of every token in bytes: 30,934 or 13,014.
func (s *Scheme) TokenSize() int { return frame.TokenOverhead + HeaderSize + s.partSize() }

func (s *Scheme) partSize() int { return 32 + s.r.blockBody() }

// CiphertextSize is the length in bytes of the ciphertext of n bytes, of any
// age: HeaderSize + 15 ceil(n/12) for R60, HeaderSize + 25 ceil(n/19) for R50.
func (s *Scheme) CiphertextSize(n int) int { return HeaderSize + s.r.bodySize(n) }

// random is what Encrypt and ReKeyGen draw: the seed of a key and a salt.
type random [32 + frame.SaltSize]byte

func draw() *random {
	r := new(random)
	_, _ = rand.Read(r[:]) // crypto/rand.Read never fails
	return r
}

func (r *random) seed() *[32]byte             { return (*[32]byte)(r[:]) }
func (r *random) salt() *[frame.SaltSize]byte { return (*[frame.SaltSize]byte)(r[32:]) }

// state is the secret content of a header.
type state struct {
	seed, hash [32]byte
	age        int
}

func (s *Scheme) header(dst, key []byte, length uint64, st *state, salt *[frame.SaltSize]byte) []byte {
	var plain [plainSize]byte
	copy(plain[:], st.seed[:])
	copy(plain[32:], st.hash[:])
	binary.BigEndian.PutUint16(plain[64:], uint16(st.age))
	p := frame.Prefix{Scheme: uae.Lattice, Param: uint16(s.r.param), Length: length}
	dst = frame.SealHeader(dst, key, salt, p, plain[:])
	clear(plain[:])
	return dst
}

func (s *Scheme) parse(header []byte) (frame.Prefix, error) {
	p, err := frame.ParsePrefix(header, HeaderSize, uae.Lattice, uint16(s.r.param))
	if err == nil && p.Length > limit {
		err = fmt.Errorf("%w header: message length", uae.ErrFormat)
	}
	return p, err
}

func (s *Scheme) open(k uae.Key, header []byte) (st state, p frame.Prefix, err error) {
	key, err := k.ExposeRoot(uae.Lattice, uint16(s.r.param))
	if err != nil {
		return st, p, err
	}
	if p, err = s.parse(header); err != nil {
		return st, p, err
	}
	var buf [plainSize]byte
	plain, err := frame.OpenHeader(buf[:0], key, header)
	if err != nil {
		return st, p, err
	}
	defer clear(buf[:])
	st.age = int(binary.BigEndian.Uint16(plain[64:]))
	if st.age > MaxUpdates { // no honest owner makes such a header
		return state{}, p, uae.ErrOpen
	}
	copy(st.seed[:], plain)
	copy(st.hash[:], plain[32:])
	return st, p, nil
}

// split parses a whole ciphertext and checks its length.
func (s *Scheme) split(ciphertext []byte) (header, body []byte, p frame.Prefix, err error) {
	header = ciphertext[:min(len(ciphertext), HeaderSize)]
	if p, err = s.parse(header); err != nil {
		return nil, nil, p, err
	}
	if len(ciphertext) != s.CiphertextSize(int(p.Length)) {
		return nil, nil, p, fmt.Errorf("%w ciphertext: length", uae.ErrFormat)
	}
	return header, ciphertext[HeaderSize:], p, nil
}

// Remaining implements uae.Scheme.
func (s *Scheme) Remaining(k uae.Key, header []byte) (int, error) {
	st, _, err := s.open(k, header)
	if err != nil {
		return 0, err
	}
	return MaxUpdates - st.age, nil
}

// Encrypt implements uae.Scheme. It fails only for a foreign key or a message
// of more than MaxMessage bytes.
func (s *Scheme) Encrypt(dst []byte, k uae.Key, m, aad []byte) ([]byte, error) {
	r := draw()
	defer clear(r[:])
	return s.encrypt(dst, k, m, aad, r)
}

func (s *Scheme) encrypt(dst []byte, k uae.Key, m, aad []byte, r *random) ([]byte, error) {
	key, err := k.ExposeRoot(uae.Lattice, uint16(s.r.param))
	if err != nil {
		return nil, err
	}
	if uint64(len(m)) > limit {
		return nil, fmt.Errorf("uae/lattice: message longer than %d bytes", uint64(limit))
	}
	at, size := len(dst), s.CiphertextSize(len(m))
	dst = slices.Grow(dst, size)[:at+size]
	e := s.newWorker(r.seed())
	defer e.wipe()
	leaves := e.encrypt(dst[at+HeaderSize:], m, 0)
	st := state{seed: *r.seed()}
	h := newMessageHash(aad)
	for i := range leaves {
		h.Fixed(leaves[i][:])
	}
	st.hash = h.Sum()
	s.header(dst[at:at], key, uint64(len(m)), &st, r.salt())
	return dst, nil
}

// Decrypt implements uae.Scheme. All of the body is decrypted whatever is wrong
// with it.
func (s *Scheme) Decrypt(dst []byte, k uae.Key, ciphertext, aad []byte) ([]byte, error) {
	header, body, p, err := s.split(ciphertext)
	if err != nil {
		return nil, err
	}
	st, _, err := s.open(k, header)
	if err != nil {
		return nil, err
	}
	at, n := len(dst), int(p.Length)
	dst = slices.Grow(dst, n)
	m := dst[at : at+n]
	w := s.newWorker(&st.seed)
	defer w.wipe()
	leaves, tooLarge, wrong := w.decrypt(m, body)
	h := newMessageHash(aad)
	for i := range leaves {
		h.Fixed(leaves[i][:])
	}
	sum := h.Sum()
	if tooLarge {
		clear(m)
		return nil, errRange
	}
	if !equal(&sum, &st.hash) || wrong {
		clear(m)
		return nil, uae.ErrOpen
	}
	return dst[:at+n], nil
}
