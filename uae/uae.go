// Package uae is updatable encryption: whoever stores a ciphertext can move it
// from one key to the next with a short token, and learns neither key nor
// message. It holds what three schemes have in common; they are in the packages
// nested, lattice and recrypt.
//
// A ciphertext is a header of fixed length followed by a body. Only the header
// is needed to make a token:
//
//	owner                                  storage
//	Encrypt(k1, m, aad)      -- ct -->     keeps ct
//	                       <-- header --
//	ReKeyGen(k1, k2, header) -- token -->  ct = ReEncrypt(token, ct)
//	Decrypt(k2, ct, aad)    <-- ct --
//
// The schemes are those of Boneh, Eskandarian, Kim and Shih, "Improving Speed
// and Security in Updatable Encryption Schemes" (ASIACRYPT 2020, ePrint
// 2020/222), and of Everspaugh, Paterson, Ristenpart and Scott, "Key Rotation
// for Authenticated Encryption" (CRYPTO 2017). docs/uae.md has the formats, the
// parameters and measurements.
//
//	scheme   updates   hides the age                   integrity
//	nested   t         from a holder of snapshots      every bit
//	lattice  1,000     from a holder of snapshots      of the message; low bits of
//	                                                   a coefficient can be changed
//	recrypt  no bound  also from a holder of tokens    of the message
//
// A token together with either of its two keys gives the other key's power over
// that ciphertext, in every scheme: a token is a secret between owner and
// storage.
package uae

import (
	"errors"
	"io"
)

var (
	// ErrOpen is the one error for whatever is found after a key was used: a
	// wrong key, other associated data, changed header, body or token, an
	// exhausted bound. It says nothing more on purpose; answers that differ are
	// an oracle.
	ErrOpen = errors.New("uae: cannot open ciphertext")

	// ErrFormat is wrapped by every error about bytes that anyone can see to be
	// wrong: magic, length, a value out of range, a broken checksum.
	ErrFormat = errors.New("uae: malformed")

	// ErrVersion: the bytes are of another version of the format.
	ErrVersion = errors.New("uae: unsupported version")

	// ErrScheme: the bytes, or the key, belong to another scheme or parameter.
	ErrScheme = errors.New("uae: other scheme or parameter")

	// ErrTarget: the token was made for another ciphertext, or was already
	// applied to this one.
	ErrTarget = errors.New("uae: token is for another ciphertext")
)

// Scheme is what the three schemes share. An implementation is safe for
// concurrent use. Every method that takes dst appends to it and returns the
// longer slice, or nil with an error, in which case dst is as it was and no
// plaintext is left behind it. dst must not overlap the other arguments, except
// that ReEncrypt works in place when dst is ciphertext[:0].
type Scheme interface {
	// KeyGen draws a key from crypto/rand.
	KeyGen() Key

	// HeaderSize is the length in bytes of every header.
	HeaderSize() int

	// Encrypt appends a fresh ciphertext of m to dst. It binds aad, which is
	// not stored and stays bound through every update.
	Encrypt(dst []byte, k Key, m, aad []byte) ([]byte, error)

	// ReKeyGen makes the token that moves the ciphertext with this header from
	// k1 to k2. The error is ErrOpen if the header is not authentic under k1 or
	// has no update left (see Remaining).
	ReKeyGen(k1, k2 Key, header []byte) (token []byte, err error)

	// ReEncrypt appends to dst the updated ciphertext. It uses no key and its
	// errors name the cause. It cannot tell whether the body is intact.
	ReEncrypt(dst, token, ciphertext []byte) ([]byte, error)

	// Decrypt appends the message to dst, after all of the ciphertext and aad
	// were verified.
	Decrypt(dst []byte, k Key, ciphertext, aad []byte) ([]byte, error)

	// Remaining says how many updates the ciphertext with this header can still
	// take; -1 means that there is no bound.
	Remaining(k Key, header []byte) (int, error)
}

// Streamer is implemented by the schemes that can encrypt and update a message
// larger than memory. There is no streaming decryption: nothing may be released
// before all of a message was verified.
type Streamer interface {
	// EncryptStream reads m to its end, writes the body and returns the header,
	// which depends on all of m.
	EncryptStream(body io.Writer, k Key, m io.Reader, aad []byte) (header []byte, err error)

	// ReEncryptStream reads a body to its end, writes the updated one and
	// returns its header. On an error what was written is of no use.
	ReEncryptStream(dst io.Writer, token, header []byte, body io.Reader) (newHeader []byte, err error)
}
