package nested

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/seed-a893640b/tae/uae"
	"github.com/seed-a893640b/tae/uae/internal/frame"
)

// ReKeyGen implements uae.Scheme. The token holds the new header, the old root
// under a key that the storage never gets, the key of the new layer and
// of the new pad, and the age, by which the storage finds the pad.
func (s *Scheme) ReKeyGen(k1, k2 uae.Key, header []byte) ([]byte, error) {
	r := draw()
	defer clear(r[:])
	return s.reKeyGen(k1, k2, header, r)
}

func (s *Scheme) reKeyGen(k1, k2 uae.Key, header []byte, r *random) ([]byte, error) {
	key2, err := k2.ExposeRoot(uae.Nested, uint16(s.t))
	if err != nil {
		return nil, err
	}
	old, age, p, err := s.open(k1, header)
	if err != nil {
		return nil, err
	}
	defer clear(old[:])
	if age == s.t {
		return nil, uae.ErrOpen
	}
	var buf [HeaderSize]byte
	next := s.header(buf[:0], key2, p.Length, age+1, r)
	return frame.AppendToken(make([]byte, 0, s.TokenSize()), header, next, func(b []byte) []byte {
		bodyKey := frame.Derive(labelBody, r.root()[:])
		b = sealHistory(b, r.root(), &old)
		b = append(b, bodyKey[:]...)
		return binary.BigEndian.AppendUint16(b, uint16(age))
	}), nil
}

// part is what a token says about the body.
type part struct {
	hist []byte
	key  *[32]byte
	age  int
}

func (s *Scheme) parseToken(token []byte) (frame.Token, part, error) {
	t, err := frame.ParseToken(token, HeaderSize, partSize, uae.Nested, uint16(s.t))
	if err != nil {
		return t, part{}, err
	}
	if _, err := s.parse(t.Header); err != nil {
		return t, part{}, err
	}
	b := t.Part
	p := part{
		hist: b[:histSize],
		key:  (*[32]byte)(b[histSize:]),
		age:  int(binary.BigEndian.Uint16(b[partSize-2:])),
	}
	if p.age >= s.t { // one update too many would overrun the pad
		return t, part{}, fmt.Errorf("%w token: age", uae.ErrFormat)
	}
	return t, p, nil
}

// ReEncrypt implements uae.Scheme. It verifies the form of token and ciphertext
// and that they belong together; a changed body shows at decryption only.
func (s *Scheme) ReEncrypt(dst, token, ciphertext []byte) ([]byte, error) {
	t, p, err := s.parseToken(token)
	if err != nil {
		return nil, err
	}
	header, body, _, err := s.split(ciphertext)
	if err != nil {
		return nil, err
	}
	if err := t.Check(header); err != nil {
		return nil, err
	}
	payload := len(body) - PerUpdate*(s.t-p.age)
	dst = slices.Grow(dst, len(ciphertext))
	dst = append(dst, t.Header...)
	gcm := newGCM(p.key)
	dst = gcm.Seal(dst, nonce(noncePayload), body[:payload], p.hist)
	dst = append(dst, p.hist...)
	return appendPad(dst, gcm, PerUpdate*(s.t-p.age-1)), nil
}

// Decrypt implements uae.Scheme. It does the same work whichever check fails.
// With room for the ciphertext behind dst it allocates no buffer.
func (s *Scheme) Decrypt(dst []byte, k uae.Key, ciphertext, aad []byte) ([]byte, error) {
	header, body, _, err := s.split(ciphertext)
	if err != nil {
		return nil, err
	}
	root, age, p, err := s.open(k, header)
	if err != nil {
		return nil, err
	}
	defer clear(root[:])
	gcm := bodyGCM(&root)
	dst = slices.Grow(dst, len(body))
	at := len(dst)
	buf := dst[at : at+len(body)]
	payload := len(body) - PerUpdate*(s.t-age)
	padOK := isPad(body[payload:], buf[payload:], gcm)
	layersOK := peel(buf[:payload], body[:payload], &root, gcm, age, aad)
	if !padOK || !layersOK {
		clear(buf)
		return nil, uae.ErrOpen
	}
	clear(buf[p.Length:]) // tags and roots of inner layers
	return dst[:at+int(p.Length)], nil
}
