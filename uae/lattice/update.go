package lattice

import (
	"fmt"
	"slices"

	"github.com/seed-a893640b/tae/uae"
	"github.com/seed-a893640b/tae/uae/internal/frame"
)

var errRange = fmt.Errorf("%w body: coefficient out of range", uae.ErrFormat)

// ReKeyGen implements uae.Scheme. The token holds the new header, the key of the
// errors and the difference of the two keys, a whole ring element.
func (s *Scheme) ReKeyGen(k1, k2 uae.Key, header []byte) ([]byte, error) {
	r := draw()
	defer clear(r[:])
	return s.reKeyGen(k1, k2, header, r)
}

func (s *Scheme) reKeyGen(k1, k2 uae.Key, header []byte, r *random) ([]byte, error) {
	key2, err := k2.ExposeRoot(uae.Lattice, uint16(s.r.param))
	if err != nil {
		return nil, err
	}
	st, p, err := s.open(k1, header)
	if err != nil {
		return nil, err
	}
	if st.age == MaxUpdates {
		return nil, uae.ErrOpen
	}
	next := state{seed: *r.seed(), hash: st.hash, age: st.age + 1}
	var buf [HeaderSize]byte
	newHeader := s.header(buf[:0], key2, p.Length, &next, r.salt())
	return frame.AppendToken(make([]byte, 0, s.TokenSize()), header, newHeader, func(b []byte) []byte {
		e := updateErrorKey(&st.seed, &next.seed)
		b = append(b, e[:]...)
		return s.r.appendDelta(b, &st.seed, &next.seed)
	}), nil
}

// appendDelta appends key(to) - key(from), packed.
func (r *ring) appendDelta(dst []byte, from, to *[32]byte) []byte {
	w := r.acquire()
	defer r.release(w)
	r.expandKey(w.f, from, w)
	r.expandKey(w.a, to, w)
	for i, x := range w.f {
		w.a[i] = reduce(w.a[i]+r.q-x, r.q, r.ntt.shift)
	}
	at := len(dst)
	dst = slices.Grow(dst, r.blockBody())[:at+r.blockBody()]
	r.pack(dst[at:], w.a)
	return dst
}

func (s *Scheme) parseToken(token []byte) (frame.Token, error) {
	t, err := frame.ParseToken(token, HeaderSize, s.partSize(), uae.Lattice, uint16(s.r.param))
	if err != nil {
		return t, err
	}
	_, err = s.parse(t.Header)
	return t, err
}

// ReEncrypt implements uae.Scheme. It verifies the form of token and ciphertext,
// every coefficient included, and that they belong together. In place, an error
// about a coefficient leaves the ciphertext of no use.
func (s *Scheme) ReEncrypt(dst, token, ciphertext []byte) ([]byte, error) {
	t, err := s.parseToken(token)
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
	u, err := s.newUpdater(t.Part)
	if err != nil {
		return nil, err
	}
	defer u.wipe()
	at := len(dst)
	dst = slices.Grow(dst, len(ciphertext))[:at+len(ciphertext)]
	if !u.update(dst[at+HeaderSize:], body, 0) {
		return nil, errRange
	}
	copy(dst[at:], t.Header)
	return dst, nil
}
