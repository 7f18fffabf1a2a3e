// Package frame is the part of the format that the schemes of uae share: the
// header with its encryption, and the envelope of a token (docs/uae.md sections
// 2 and 3).
//
// A header is encrypted under a long-lived key by a committing cipher made of
// SHA-256 alone: a salt makes every key single-use, the plaintext is masked by
// a labelled hash of key and salt, and the tag is a labelled hash of key and
// everything else. Two keys that open one header would be a collision of
// SHA-256, which AES-GCM does not give. All inputs have a length that the label
// fixes, so hashing the key first is a pseudorandom function.
package frame

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"

	"github.com/seed-a893640b/tae/internal/labelhash"
	"github.com/seed-a893640b/tae/uae"
)

// Lengths in bytes of the parts of a header.
const (
	PrefixSize = 16
	SaltSize   = 24
	TagSize    = 32

	// Overhead is the length of a header less that of its plaintext.
	Overhead = PrefixSize + SaltSize + TagSize

	maxPlain = 96
)

const (
	magic      = "UAEC"
	version    = 1
	labelMask  = "tae/v1/uae/header-mask"
	labelTag   = "tae/v1/uae/header-tag"
	labelNames = "tae/v1/uae/token-target"
)

// A Prefix is the visible part of a header: magic, version, scheme, parameter
// and the length of the message.
type Prefix struct {
	Scheme uae.SchemeID
	Param  uint16
	Length uint64
}

func (p Prefix) appendTo(b []byte) []byte {
	b = append(append(b, magic...), version, byte(p.Scheme))
	b = binary.BigEndian.AppendUint16(b, p.Param)
	return binary.BigEndian.AppendUint64(b, p.Length)
}

// ParsePrefix reads the visible part of a header of exactly size bytes and
// requires scheme and parameter. The errors name what is wrong.
func ParsePrefix(header []byte, size int, scheme uae.SchemeID, param uint16) (Prefix, error) {
	if len(header) < PrefixSize || string(header[:4]) != magic {
		return Prefix{}, fmt.Errorf("%w header: magic", uae.ErrFormat)
	}
	if header[4] != version {
		return Prefix{}, uae.ErrVersion
	}
	p := Prefix{
		Scheme: uae.SchemeID(header[5]),
		Param:  binary.BigEndian.Uint16(header[6:]),
		Length: binary.BigEndian.Uint64(header[8:]),
	}
	if p.Scheme != scheme || p.Param != param {
		return Prefix{}, uae.ErrScheme
	}
	if len(header) != size {
		return Prefix{}, fmt.Errorf("%w header: length", uae.ErrFormat)
	}
	return p, nil
}

// SealHeader appends a header to dst: prefix, salt, masked plain, tag. key has
// 32 bytes, salt SaltSize, plain at most 96.
func SealHeader(dst []byte, key []byte, salt *[SaltSize]byte, p Prefix, plain []byte) []byte {
	start := len(dst)
	dst = p.appendTo(dst)
	dst = append(dst, salt[:]...)
	at := len(dst)
	dst = append(dst, plain...)
	mask(dst[at:], key, salt[:])
	tag := headerTag(key, dst[start:])
	return append(dst, tag[:]...)
}

// OpenHeader verifies a header whose prefix was parsed and appends its plaintext
// to dst, or returns ErrOpen. The comparison is constant time.
func OpenHeader(dst []byte, key, header []byte) ([]byte, error) {
	body, got := header[:len(header)-TagSize], header[len(header)-TagSize:]
	want := headerTag(key, body)
	if subtle.ConstantTimeCompare(want[:], got) != 1 {
		return dst, uae.ErrOpen
	}
	at := len(dst)
	dst = append(dst, body[PrefixSize+SaltSize:]...)
	mask(dst[at:], key, body[PrefixSize:PrefixSize+SaltSize])
	return dst, nil
}

func mask(b, key, salt []byte) {
	var buf [128]byte
	in := labelhash.Prefix(buf[:0], labelMask)
	in = append(append(in, key...), salt...)
	in = append(in, 0)
	for i := 0; len(b) > 0; i++ {
		in[len(in)-1] = byte(i)
		h := sha256.Sum256(in)
		b = b[subtle.XORBytes(b, b, h[:]):]
	}
	clear(buf[:])
}

// headerTag hashes a header without its tag. The scheme in the prefix fixes the
// length.
func headerTag(key, header []byte) [32]byte {
	var buf [256]byte
	in := labelhash.Prefix(buf[:0], labelTag)
	in = append(append(in, key...), header...)
	h := sha256.Sum256(in)
	clear(buf[:])
	return h
}

// Derive is the labelled hash of one 32-byte key, the single derivation step of
// the schemes.
func Derive(label string, key []byte) [32]byte {
	var buf [96]byte
	h := sha256.Sum256(append(labelhash.Prefix(buf[:0], label), key...))
	clear(buf[:])
	return h
}
