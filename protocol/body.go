package protocol

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"

	"github.com/seed-a893640b/tae/internal/labelhash"
)

const (
	labelPad     = "tae/v1/pad"
	labelBodyKey = "tae/v1/body-key"

	// MaxMessage is the longest message in bytes; longer data is a stream.
	MaxMessage = 64 << 10
	// preludeSize is the length of j || R at the start of every plaintext.
	preludeSize = 64
	// padLimit is the longest body under the SHA-256 keystream. For short bodies
	// the key schedule of AES costs more than hashing.
	padLimit = 128
)

// ErrTooLarge reports a message over MaxMessage.
var ErrTooLarge = errors.New("protocol: message longer than 64 KiB; use a stream")

// ErrAuthentication reports an object that does not verify: altered, with other
// associated data, or made for another keyset or epoch. It says no more, so that
// a decryptor is no oracle.
var ErrAuthentication = errors.New("authentication failed: the object was altered or the associated data differ")

// keystream XORs the one-time keystream of rho over body in place (section 7.1).
// The variant is a function of the length alone.
func keystream(rho *Rho, body []byte) {
	if len(body) > padLimit {
		key := bodyKey(rho, labelBodyKey)
		defer clear(key[:])
		block, err := aes.NewCipher(key[:])
		if err != nil {
			panic("internal error: " + err.Error())
		}
		cipher.NewCTR(block, make([]byte, aes.BlockSize)).XORKeyStream(body, body)
		return
	}
	var buf [64]byte
	in := append(labelhash.Prefix(buf[:0], labelPad), rho[:]...)
	n := len(in)
	for i := uint32(0); len(body) > 0; i++ {
		pad := sha256.Sum256(binary.BigEndian.AppendUint32(in[:n], i))
		m := subtle.XORBytes(body, body, pad[:])
		body = body[m:]
		clear(pad[:])
	}
	clear(buf[:])
}

// bodyKey derives a key from an object's secret: one labelled hash (section 2).
func bodyKey(rho *Rho, label string) [32]byte {
	var buf [64]byte
	defer clear(buf[:])
	return hashInput(buf[:], label, rho[:])
}

// sealMessage appends the body of message m to dst and returns it with the hash
// that stands for it in the commitment.
func sealMessage(dst []byte, rho *Rho, j *ClientKey, r *[32]byte, m []byte) ([]byte, [32]byte) {
	start := len(dst)
	dst = append(append(append(dst, j[:]...), r[:]...), m...)
	keystream(rho, dst[start:])
	return dst, messageHash(dst[start:])
}

// messageHash is H("body"; C), C going in bare.
func messageHash(c []byte) [32]byte {
	if len(c) <= padLimit {
		var buf [padLimit + 32]byte
		return hashInput(buf[:], labelBody, c)
	}
	return labelhash.New(labelBody).Fixed(c).Sum()
}

// openMessage decrypts and verifies a message's body. It returns the message and
// the client that encrypted it, or ErrAuthentication and nothing.
func openMessage(h *Header, secret *[32]byte, body, aad []byte) (m []byte, j ClientKey, err error) {
	if len(body) < preludeSize || len(body) > preludeSize+MaxMessage {
		return nil, j, ErrAuthentication
	}
	rho, born := Rho(secret[:RhoSize]), binary.BigEndian.Uint16(secret[RhoSize:])
	defer clear(rho[:])
	bodyHash := messageHash(body)
	adHash := aadHash(&h.Params, aad)
	plain := append([]byte(nil), body...)
	keystream(&rho, plain)
	j, r := ClientKey(plain[:32]), [32]byte(plain[32:64])
	if err := h.verify(&rho, born, j, &r, &bodyHash, &adHash); err != nil {
		clear(plain)
		return nil, ClientKey{}, err
	}
	return plain[preludeSize:], j, nil
}
