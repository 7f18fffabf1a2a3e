package nested

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/seed-a893640b/tae/uae"
	"github.com/seed-a893640b/tae/uae/internal/frame"
)

// simple is Construction 4.1 of the paper: the same layers without bound and
// pad. It exists to show what the pad is for.
type simple struct{}

type simpleCiphertext struct {
	root [rootSize]byte // in the header under the key
	age  int
	body []byte
}

func (simple) encrypt(m []byte) simpleCiphertext {
	r := draw()
	return simpleCiphertext{*r.root(), 0, bodyGCM(r.root()).Seal(nil, nonce(noncePayload), m, nil)}
}

func (simple) update(c simpleCiphertext) simpleCiphertext {
	r := draw()
	hist := sealHistory(nil, r.root(), &c.root)
	body := append(bodyGCM(r.root()).Seal(nil, nonce(noncePayload), c.body, hist), hist...)
	return simpleCiphertext{*r.root(), c.age + 1, body}
}

func (simple) decrypt(c simpleCiphertext) ([]byte, bool) {
	buf := make([]byte, len(c.body))
	ok := peel(buf, c.body, &c.root, bodyGCM(&c.root), c.age, nil)
	return buf[:len(c.body)-tagSize-PerUpdate*c.age], ok
}

// The attack on Construction 4.1: the length tells the age, exactly. On 4.2 the
// same adversary learns nothing.
func TestAgeLeakOfTheSimpleScheme(t *testing.T) {
	var weak simple
	s := must(New(6))
	k, m := s.KeyGen(), []byte("constant size message")
	c, ct := weak.encrypt(m), must(s.Encrypt(nil, k, m, nil))
	fresh := len(ct)
	for age := range 6 {
		if got, ok := weak.decrypt(c); !ok || !bytes.Equal(got, m) {
			t.Fatal("construction 4.1 does not work")
		}
		if guess := (len(c.body) - len(m) - tagSize) / PerUpdate; guess != age {
			t.Errorf("4.1: age %d guessed as %d", age, guess)
		}
		if len(ct) != fresh {
			t.Errorf("4.2: size changes at age %d", age)
		}
		c, ct = weak.update(c), move(s, k, k, ct)
	}
}

// A server that re-encrypts modified bodies on request breaks lattice and
// recrypt (their tests show it). Here the modification cannot be undone.
func TestReEncryptionOracleIsUseless(t *testing.T) {
	s := must(New(3))
	k1, k2 := s.KeyGen(), s.KeyGen()
	ct := must(s.Encrypt(nil, k1, []byte("secret"), nil))
	token := must(s.ReKeyGen(k1, k2, ct[:HeaderSize]))
	asked := slices.Clone(ct)
	for i := range asked[HeaderSize:] {
		asked[HeaderSize+i] ^= 0x5a
	}
	answer := must(s.ReEncrypt(nil, token, asked))
	for i := range answer[HeaderSize:] {
		answer[HeaderSize+i] ^= 0x5a
	}
	if _, err := s.Decrypt(nil, k2, answer, nil); err != uae.ErrOpen {
		t.Errorf("the modification was undone: %v", err)
	}
}

// AES-GCM does not commit to its key: the control makes one ciphertext that
// opens under two keys. A header that opens under two keys would need a
// collision of SHA-256; the same trick has nothing to solve for.
func TestHeaderCommitsToTheKey(t *testing.T) {
	var k1, k2 [32]byte
	_, _ = rand.Read(k1[:])
	_, _ = rand.Read(k2[:])
	ct := forgeTwoKeyGCM(&k1, &k2)
	m1, err1 := newGCM(&k1).Open(nil, nonce(noncePayload), ct, nil)
	m2, err2 := newGCM(&k2).Open(nil, nonce(noncePayload), ct, nil)
	if err1 != nil || err2 != nil || bytes.Equal(m1, m2) {
		t.Fatal("the attack on the control does not work", err1, err2)
	}
	r := draw()
	header := must(New(1)).header(nil, k1[:], 0, 0, r)
	if _, err := frame.OpenHeader(nil, k2[:], header); err != uae.ErrOpen {
		t.Error("a header opens under a second key")
	}
	other := must(New(1)).header(nil, k2[:], 0, 0, r)
	mixed := append(slices.Clone(header[:len(header)-frame.TagSize]), other[len(other)-frame.TagSize:]...)
	for _, k := range [][]byte{k1[:], k2[:]} {
		if _, err := frame.OpenHeader(nil, k, mixed); err != uae.ErrOpen {
			t.Error("a header with a transplanted tag opens")
		}
	}
}

// forgeTwoKeyGCM solves for the first of two ciphertext blocks such that one tag
// is right under both keys. With H the hash key, S the masked block and L the
// length block, the tag is c0*H^3 + c1*H^2 + L*H + S.
func forgeTwoKeyGCM(k1, k2 *[32]byte) []byte {
	var l, c1 field
	l.lo = 256
	part := func(k *[32]byte) (h3, rest field) {
		block, err := aes.NewCipher(k[:])
		if err != nil {
			panic(err)
		}
		h, s := encryptBlock(block, [16]byte{}), encryptBlock(block, [16]byte{15: 1})
		h2 := h.mul(h)
		return h2.mul(h), c1.mul(h2).add(l.mul(h)).add(s)
	}
	a1, r1 := part(k1)
	a2, r2 := part(k2)
	c0 := r1.add(r2).mul(a1.add(a2).inverse())
	tag := c0.mul(a1).add(r1)
	return slices.Concat(c0.bytes(), c1.bytes(), tag.bytes())
}

// field is GF(2^128) as GCM has it: the first bit is the coefficient of 1.
type field struct{ hi, lo uint64 }

func encryptBlock(b cipher.Block, x [16]byte) field {
	b.Encrypt(x[:], x[:])
	return field{binary.BigEndian.Uint64(x[:]), binary.BigEndian.Uint64(x[8:])}
}

func (a field) bytes() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, a.hi), a.lo)
}

func (a field) add(b field) field { return field{a.hi ^ b.hi, a.lo ^ b.lo} }

func (a field) mul(b field) (r field) {
	for i := range 128 {
		w, bit := a.hi, 63-i
		if i >= 64 {
			w, bit = a.lo, 127-i
		}
		if w>>bit&1 == 1 {
			r = r.add(b)
		}
		carry := b.lo & 1
		b.lo = b.lo>>1 | b.hi<<63
		b.hi >>= 1
		if carry == 1 {
			b.hi ^= 0xe1 << 56
		}
	}
	return r
}

// inverse is a^(2^128-2).
func (a field) inverse() field {
	r := field{hi: 1 << 63}
	for range 127 {
		a = a.mul(a)
		r = r.mul(a)
	}
	return r
}
