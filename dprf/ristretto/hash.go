package ristretto

import (
	"crypto/sha512"
	"crypto/subtle"

	"github.com/gtank/ristretto255"
)

// HashToGroup hashes a message to the group under a domain separation tag of at
// most 255 bytes: RFC 9380's hash_to_ristretto255 (appendix B) with
// expand_message_xmd and SHA-512. Nobody knows a discrete logarithm of the result.
// It is constant time for messages of one length.
func HashToGroup(e *ristretto255.Element, message, dst []byte) *ristretto255.Element {
	var uniform [64]byte
	expandXMD(uniform[:], message, dst)
	return e.FromUniformBytes(uniform[:])
}

// HashToScalar hashes a message to a scalar, in the same way.
func HashToScalar(s *ristretto255.Scalar, message, dst []byte) *ristretto255.Scalar {
	var uniform [64]byte
	expandXMD(uniform[:], message, dst)
	return s.FromUniformBytes(uniform[:])
}

// expandXMD is expand_message_xmd of RFC 9380 section 5.3.1 with SHA-512.
func expandXMD(out, message, dst []byte) {
	const block = sha512.Size
	rounds := (len(out) + block - 1) / block
	if len(dst) > 255 || rounds > 255 {
		panic("internal error: expand_message_xmd beyond its limits")
	}
	prime := append(append(make([]byte, 0, len(dst)+1), dst...), byte(len(dst)))
	h := sha512.New()
	h.Write(make([]byte, sha512.BlockSize))
	h.Write(message)
	h.Write([]byte{byte(len(out) >> 8), byte(len(out)), 0})
	h.Write(prime)
	b0 := h.Sum(nil)
	var b [block]byte
	for i := 1; i <= rounds; i++ {
		var mixed [block]byte
		subtle.XORBytes(mixed[:], b0, b[:])
		h.Reset()
		h.Write(mixed[:])
		h.Write([]byte{byte(i)})
		h.Write(prime)
		h.Sum(b[:0])
		copy(out[(i-1)*block:], b[:])
	}
}
