package frame

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/seed-a893640b/tae/internal/labelhash"
	"github.com/seed-a893640b/tae/uae"
)

// TokenOverhead is the length of a token less new header and scheme part: magic
// "UAET", version, scheme, parameter (2), digest of the old header (32) and a
// checksum (4) at the end.
const TokenOverhead = 8 + 32 + 4

const tokenMagic = "UAET"

// A Token is a parsed token. Its slices point into the input.
type Token struct {
	Header []byte // the header that replaces the old one
	Part   []byte // what the scheme needs to move the body
	target []byte
}

// Target is the digest by which a token names the header it applies to.
func Target(header []byte) [32]byte {
	var buf [256]byte
	return sha256.Sum256(append(labelhash.Prefix(buf[:0], labelNames), header...))
}

// AppendToken appends the envelope around what part appends.
func AppendToken(dst []byte, oldHeader, newHeader []byte, part func([]byte) []byte) []byte {
	start := len(dst)
	dst = append(dst, tokenMagic...)
	dst = append(dst, newHeader[4:8]...) // version, scheme, parameter
	target := Target(oldHeader)
	dst = append(dst, target[:]...)
	dst = append(dst, newHeader...)
	dst = part(dst)
	return binary.BigEndian.AppendUint32(dst, checksum(dst[start:]))
}

// The checksum finds accidents, not attacks: whoever can change a token can
// compute it anew. CRC-32C finds every change of up to 32 neighbouring bits and
// costs a tenth of a hash over the 30 kB of a lattice token.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// ParseToken reads a token whose new header has headerSize bytes and whose
// scheme part has partSize.
func ParseToken(b []byte, headerSize, partSize int, scheme uae.SchemeID, param uint16) (Token, error) {
	if len(b) < 8 || string(b[:4]) != tokenMagic {
		return Token{}, fmt.Errorf("%w token: magic", uae.ErrFormat)
	}
	if b[4] != version {
		return Token{}, uae.ErrVersion
	}
	if b[5] != byte(scheme) || binary.BigEndian.Uint16(b[6:]) != param {
		return Token{}, uae.ErrScheme
	}
	if len(b) != TokenOverhead+headerSize+partSize {
		return Token{}, fmt.Errorf("%w token: length", uae.ErrFormat)
	}
	end := len(b) - 4
	if checksum(b[:end]) != binary.BigEndian.Uint32(b[end:]) {
		return Token{}, fmt.Errorf("%w token: checksum", uae.ErrFormat)
	}
	t := Token{Header: b[40 : 40+headerSize], Part: b[40+headerSize : end], target: b[8:40]}
	if _, err := ParsePrefix(t.Header, headerSize, scheme, param); err != nil {
		return Token{}, err
	}
	return t, nil
}

// Check requires that the token is for this header and keeps the length of the
// message, which only a token made by accident or malice would change.
func (t Token) Check(header []byte) error {
	d := Target(header)
	if subtle.ConstantTimeCompare(d[:], t.target) != 1 {
		return uae.ErrTarget
	}
	if string(t.Header[8:PrefixSize]) != string(header[8:PrefixSize]) {
		return fmt.Errorf("%w token: message length", uae.ErrFormat)
	}
	return nil
}
