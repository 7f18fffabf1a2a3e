package recrypt

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/gtank/ristretto255"

	"github.com/seed-a893640b/tae/internal/labelhash"
	"github.com/seed-a893640b/tae/uae/internal/frame"
)

const (
	labelPoint   = "tae/v1/uae/recrypt/point"
	labelMessage = "tae/v1/uae/recrypt/message"
	labelTag     = "tae/v1/uae/recrypt/message-point"

	// maxTries bounds the counter of a block. One try in four is a group
	// element, so that all fail has probability 2^-3399.
	maxTries = 1 << 13
)

// prf is F(x, i) = x*H(i). Constant time in x.
func prf(x *ristretto255.Scalar, i uint64) *ristretto255.Element {
	var index [8]byte
	binary.BigEndian.PutUint64(index[:], i)
	e := hashToPoint(labelPoint, index[:])
	return e.ScalarMult(x, e)
}

// hashToPoint maps a field of fixed length to a group element, by two labelled
// hashes and the map of RFC 9496 section 4.3.4.
func hashToPoint(label string, field []byte) *ristretto255.Element {
	var u [64]byte
	for half := range 2 {
		h := labelhash.New(label).Byte(byte(half)).Fixed(field).Sum()
		copy(u[32*half:], h[:])
	}
	return ristretto255.NewElement().FromUniformBytes(u[:])
}

func newMessageHash(aad []byte) labelhash.Hash { return labelhash.New(labelMessage).Var(aad) }

// tag is h(m) + F(x, 0), the check value of a message hash.
func tag(h labelhash.Hash, x *ristretto255.Scalar) *ristretto255.Element {
	sum := h.Sum()
	e := hashToPoint(labelTag, sum[:])
	return e.Add(e, prf(x, 0))
}

func seal(h labelhash.Hash, r *random) state {
	return state{chi: ristretto255.NewScalar().Add(r.x, r.y), tau: tag(h, r.x)}
}

// encode sets e to the element whose encoding holds up to 30 message bytes:
// byte 0 has the low 7 bits of a counter above a zero bit, bytes 1 to 30 the
// message, byte 31 the high 6 bits of the counter. The first counter that makes
// a canonical encoding counts.
func encode(e *ristretto255.Element, m []byte) {
	var b [pointSize]byte
	copy(b[1:31], m)
	for try := range maxTries {
		b[0], b[31] = byte(try&127)<<1, byte(try>>7)
		if e.Decode(b[:]) == nil {
			return
		}
	}
	panic("internal error: no encoding of a block") // probability 2^-3399
}

// encryptBlocks fills out with the encrypted blocks of m, numbered from first.
func encryptBlocks(out, m []byte, x *ristretto255.Scalar, first uint64) {
	frame.Each(len(out)/pointSize, func() (func(int), func()) {
		e := ristretto255.NewElement()
		return func(i int) {
			encode(e, m[BlockSize*i:min(BlockSize*(i+1), len(m))])
			e.Add(e, prf(x, first+uint64(i)))
			e.Encode(out[pointSize*i : pointSize*i])
		}, func() {}
	})
}

// updateBlocks adds F(x, i) to every block. It is false if one is no element.
func updateBlocks(out, body []byte, x *ristretto255.Scalar, first uint64) bool {
	var bad atomic.Bool
	frame.Each(len(out)/pointSize, func() (func(int), func()) {
		e := ristretto255.NewElement()
		return func(i int) {
			if e.Decode(body[pointSize*i:][:pointSize]) != nil {
				bad.Store(true)
				return
			}
			e.Add(e, prf(x, first+uint64(i)))
			e.Encode(out[pointSize*i : pointSize*i])
		}, func() {}
	})
	return !bad.Load()
}

// decryptBlocks fills m, a multiple of 30 bytes, from body. elements is false if
// a block is no element, which anyone can see; padding is false if a decrypted
// block is none of ours or the bytes from n on are not zero. All blocks are
// decrypted in any case.
func decryptBlocks(m, body []byte, x *ristretto255.Scalar, n int) (elements, padding bool) {
	var noElement atomic.Bool
	var high atomic.Uint32 // bits that no counter has; not branched on
	frame.Each(len(m)/BlockSize, func() (func(int), func()) {
		e := ristretto255.NewElement()
		var b [pointSize]byte
		return func(i int) {
			if e.Decode(body[pointSize*i:][:pointSize]) != nil {
				noElement.Store(true)
				return
			}
			e.Subtract(e, prf(x, uint64(i)+1))
			e.Encode(b[:0])
			high.Or(uint32(b[31] >> 6))
			copy(m[BlockSize*i:], b[1:31])
		}, func() {}
	})
	var rest byte
	for _, c := range m[n:] {
		rest |= c
	}
	return !noElement.Load(), high.Load()|uint32(rest) == 0
}
