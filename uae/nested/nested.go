// Package nested is updatable encryption by layers: Construction 4.2 of Boneh,
// Eskandarian, Kim and Shih (ePrint 2020/222). An update wraps the body once
// more with an ordinary authenticated cipher; decryption peels the layers.
//
// It is the fastest of the three schemes and uses nothing but AES-256-GCM
// and SHA-256. Its price is a bound t on the number of updates, set
// when a key is made, and 64 bytes of body for each of them: layers not yet
// used are pad, so that size does not tell age.
//
// Guarantees, in the paper's terms: update independence (definition 3.6: an
// updated ciphertext looks like a fresh one to whoever has no token for it),
// confidentiality against an adversary with keys of other times or with tokens
// (a token and a key that it leads from or to are together as good as the other
// key), and integrity of every bit: a body or header that differs anywhere is
// refused. Limits: a token shows the age (the storage must know where the pad
// begins), and so does the time of a decryption; k updates make decryption k+1
// times as long.
//
// No streaming: nothing may be released before all layers and the pad were
// verified, and AES-GCM is verified at its end, so a message is held in memory
// once.
package nested

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

	// PerUpdate is the body length in bytes that each possible update costs.
	PerUpdate = histSize + tagSize

	// MaxUpdates is the largest bound t.
	MaxUpdates = 1024

	// MaxMessage is the largest message in bytes, a little below the 64 GiB
	// limit of AES-GCM.
	MaxMessage = 1<<36 - 1<<20

	limit = min(MaxMessage, math.MaxInt/2)

	rootSize  = 32
	tagSize   = 16
	histSize  = rootSize + tagSize
	plainSize = rootSize + 2
	partSize  = histSize + 32 + 2
)

// A Scheme is nested encryption with one bound t. It holds no state.
type Scheme struct{ t int }

var _ uae.Scheme = (*Scheme)(nil)

// New returns the scheme with room for t updates of each ciphertext, 0 to
// MaxUpdates.
func New(t int) (*Scheme, error) {
	if t < 0 || t > MaxUpdates {
		return nil, fmt.Errorf("uae/nested: bound %d is not in 0..%d", t, MaxUpdates)
	}
	return &Scheme{t}, nil
}

// KeyGen draws a key, which carries the bound t.
func (s *Scheme) KeyGen() uae.Key { return uae.NewKey(uae.Nested, uint16(s.t)) }

// HeaderSize is the constant HeaderSize.
func (s *Scheme) HeaderSize() int { return HeaderSize }

// TokenSize is the length of every token in bytes.
func (s *Scheme) TokenSize() int { return frame.TokenOverhead + HeaderSize + partSize }

// CiphertextSize is the length in bytes of the ciphertext of n bytes, of any
// age: HeaderSize + n + 16 + 64 t.
func (s *Scheme) CiphertextSize(n int) int { return HeaderSize + n + tagSize + PerUpdate*s.t }

// random is all that Encrypt or ReKeyGen draws: a root and a salt.
type random [rootSize + frame.SaltSize]byte

func draw() *random {
	r := new(random)
	_, _ = rand.Read(r[:]) // crypto/rand.Read never fails
	return r
}

func (r *random) root() *[rootSize]byte       { return (*[rootSize]byte)(r[:]) }
func (r *random) salt() *[frame.SaltSize]byte { return (*[frame.SaltSize]byte)(r[rootSize:]) }

// Encrypt implements uae.Scheme. It fails only for a foreign key or a message
// of more than MaxMessage bytes.
func (s *Scheme) Encrypt(dst []byte, k uae.Key, m, aad []byte) ([]byte, error) {
	r := draw()
	defer clear(r[:])
	return s.encrypt(dst, k, m, aad, r)
}

func (s *Scheme) encrypt(dst []byte, k uae.Key, m, aad []byte, r *random) ([]byte, error) {
	key, err := k.ExposeRoot(uae.Nested, uint16(s.t))
	if err != nil {
		return nil, err
	}
	if uint64(len(m)) > limit {
		return nil, fmt.Errorf("uae/nested: message longer than %d bytes", uint64(limit))
	}
	dst = slices.Grow(dst, s.CiphertextSize(len(m)))
	dst = s.header(dst, key, uint64(len(m)), 0, r)
	gcm := bodyGCM(r.root())
	dst = gcm.Seal(dst, nonce(noncePayload), m, aad)
	return appendPad(dst, gcm, PerUpdate*s.t), nil
}

// header appends a header for the root in r, at this age.
func (s *Scheme) header(dst, key []byte, length uint64, age int, r *random) []byte {
	var plain [plainSize]byte
	copy(plain[:], r.root()[:])
	binary.BigEndian.PutUint16(plain[rootSize:], uint16(age))
	p := frame.Prefix{Scheme: uae.Nested, Param: uint16(s.t), Length: length}
	dst = frame.SealHeader(dst, key, r.salt(), p, plain[:])
	clear(plain[:])
	return dst
}

// open parses a header and opens it.
func (s *Scheme) open(k uae.Key, header []byte) (root [rootSize]byte, age int, p frame.Prefix, err error) {
	key, err := k.ExposeRoot(uae.Nested, uint16(s.t))
	if err != nil {
		return root, 0, p, err
	}
	if p, err = s.parse(header); err != nil {
		return root, 0, p, err
	}
	var buf [plainSize]byte
	plain, err := frame.OpenHeader(buf[:0], key, header)
	if err != nil {
		return root, 0, p, err
	}
	age = int(binary.BigEndian.Uint16(plain[rootSize:]))
	if age > s.t { // no honest owner makes such a header
		return root, 0, p, uae.ErrOpen
	}
	copy(root[:], plain)
	clear(buf[:])
	return root, age, p, nil
}

func (s *Scheme) parse(header []byte) (frame.Prefix, error) {
	p, err := frame.ParsePrefix(header, HeaderSize, uae.Nested, uint16(s.t))
	if err == nil && p.Length > limit {
		err = fmt.Errorf("%w header: message length", uae.ErrFormat)
	}
	return p, err
}

// split parses a whole ciphertext and checks its length.
func (s *Scheme) split(ciphertext []byte) (header, body []byte, p frame.Prefix, err error) {
	header = ciphertext[:min(len(ciphertext), HeaderSize)]
	if p, err = s.parse(header); err != nil {
		return nil, nil, p, err
	}
	if uint64(len(ciphertext)) != HeaderSize+p.Length+uint64(tagSize+PerUpdate*s.t) {
		return nil, nil, p, fmt.Errorf("%w ciphertext: length", uae.ErrFormat)
	}
	return header, ciphertext[HeaderSize:], p, nil
}

// Remaining implements uae.Scheme.
func (s *Scheme) Remaining(k uae.Key, header []byte) (int, error) {
	_, age, _, err := s.open(k, header)
	if err != nil {
		return 0, err
	}
	return s.t - age, nil
}
