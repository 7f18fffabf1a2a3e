// Package ristretto makes the ristretto255 group (RFC 9496) available to kyber's
// secret sharing and key generation, and adds hashing to the group (RFC 9380).
//
// The arithmetic is github.com/gtank/ristretto255 and constant time. kyber's own
// edwards25519 is not used: it has a cofactor, and its multiplication and hashing
// are 2 and 14 times slower.
package ristretto

import (
	"crypto/cipher"
	"crypto/sha256"
	"hash"

	"go.dedis.ch/kyber/v3"
	"go.dedis.ch/kyber/v3/util/random"
	"go.dedis.ch/kyber/v3/xof/blake2xb"
)

// Size is the length of an encoded scalar or element in bytes.
const Size = 32

// Suite is the group with the hash, the extendable output function and the
// randomness that kyber's protocols want. Its zero value is ready for use, and it
// is safe for concurrent use.
type Suite struct{}

func (Suite) String() string { return "ristretto255" }

// ScalarLen is 32.
func (Suite) ScalarLen() int { return Size }

// Scalar returns a new scalar, zero.
func (Suite) Scalar() kyber.Scalar { return NewScalar() }

// PointLen is 32.
func (Suite) PointLen() int { return Size }

// Point returns a new element, the identity.
func (Suite) Point() kyber.Point { return NewPoint() }

// Hash is SHA-256.
func (Suite) Hash() hash.Hash { return sha256.New() }

// XOF is BLAKE2Xb.
func (Suite) XOF(seed []byte) kyber.XOF { return blake2xb.New(seed) }

// RandomStream is the system's randomness.
func (Suite) RandomStream() cipher.Stream { return random.New() }
