// Package labelhash is the one way this project hashes: SHA-256 over a domain
// label and an unambiguous encoding of the fields (docs/spec.md section 2).
//
// A hash input is one byte with the label's length, the label, then the fields.
// The label fixes how many fields follow and which have a fixed length; every
// field of variable length is preceded by its length as 8 bytes, big endian. A
// last field of variable length may go in bare where the spec says so.
package labelhash

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Size is the length of a hash in bytes.
const Size = sha256.Size

// A Hash is a running labelled hash. It is not safe for concurrent use.
type Hash struct{ h hash.Hash }

// New starts a hash under label, at most 255 bytes.
func New(label string) Hash {
	h := Hash{sha256.New()}
	h.Fixed(Prefix(nil, label))
	return h
}

// Prefix appends the encoded label to b. Callers on hot paths lay a whole input
// out in one buffer and hash it in one call.
func Prefix(b []byte, label string) []byte {
	if len(label) > 255 {
		panic("internal error: label longer than 255 bytes")
	}
	return append(append(b, byte(len(label))), label...)
}

// Fixed adds a field whose length the label fixes.
func (h Hash) Fixed(b []byte) Hash { _, _ = h.h.Write(b); return h }

// Var adds a field of variable length, with its length.
func (h Hash) Var(b []byte) Hash {
	h.Uint64(uint64(len(b)))
	return h.Fixed(b)
}

// Byte, Uint16, Uint32 and Uint64 add an integer, big endian.
func (h Hash) Byte(v byte) Hash     { return h.Fixed([]byte{v}) }
func (h Hash) Uint16(v uint16) Hash { return h.Fixed(binary.BigEndian.AppendUint16(nil, v)) }
func (h Hash) Uint32(v uint32) Hash { return h.Fixed(binary.BigEndian.AppendUint32(nil, v)) }
func (h Hash) Uint64(v uint64) Hash { return h.Fixed(binary.BigEndian.AppendUint64(nil, v)) }

// Write adds bytes to a last field that goes in bare; it never fails.
func (h Hash) Write(b []byte) (int, error) { return h.h.Write(b) }

// Sum returns the hash of what was added so far.
func (h Hash) Sum() (out [Size]byte) {
	h.h.Sum(out[:0])
	return out
}
