// Package sig holds the signatures that the cluster uses. A node signs
// statements and certificates, and a client signs the end of a pipe, with
// Ed25519 (RFC 8032) under a domain label (docs/spec.md section 3).
//
// Signing is constant time; verification works on public data only. The package
// does no I/O.
package sig

import (
	"crypto/ed25519"
	"errors"

	"filippo.io/edwards25519"

	"github.com/seed-a893640b/tae/internal/labelhash"
)

// Size is the length of a signature in bytes.
const Size = ed25519.SignatureSize

// ErrPublicKey reports 32 bytes that are not a usable Ed25519 public key.
var ErrPublicKey = errors.New("sig: not a canonical Ed25519 public key of full order")

// CheckPublicKey refuses keys that are not the canonical encoding of a point and
// points of small order: under those a signature verifies for many messages, so
// the owner could deny or share what it signed.
func CheckPublicKey(key []byte) error {
	p, err := new(edwards25519.Point).SetBytes(key)
	if err != nil || string(p.Bytes()) != string(key) {
		return ErrPublicKey
	}
	if new(edwards25519.Point).MultByCofactor(p).Equal(edwards25519.NewIdentityPoint()) == 1 {
		return ErrPublicKey
	}
	return nil
}

// Sign signs the digest under label.
func Sign(key ed25519.PrivateKey, label string, digest [32]byte) [Size]byte {
	return [Size]byte(ed25519.Sign(key, message(label, digest)))
}

// Verify reports whether signature is key's on digest under label. It is false
// for keys that CheckPublicKey refuses.
func Verify(key []byte, label string, digest [32]byte, signature []byte) bool {
	return CheckPublicKey(key) == nil && len(signature) == Size &&
		ed25519.Verify(ed25519.PublicKey(key), message(label, digest), signature)
}

func message(label string, digest [32]byte) []byte {
	return append(labelhash.Prefix(nil, label), digest[:]...)
}
