// Package bls holds threshold signatures on BLS12-381: signatures in G1, public keys
// in G2, ciphersuite BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_ of the IETF draft
// draft-irtf-cfrg-bls-signature. Any BLS library can verify a combined signature.
//
// The arithmetic is github.com/consensys/gnark-crypto: pure Go, and three times as
// fast at verification as the constant-time alternative, cloudflare/circl, which the
// tests use to verify what this package signs. Multiplication in it is not constant
// time, so every multiplication by a secret is blinded.
package bls

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"

	"github.com/consensys/gnark-crypto/ecc"
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/seed-a893640b/tae/internal/secret"
)

// DST is the domain separation tag of the ciphersuite.
const DST = "BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"

// Errors of decoding.
var (
	ErrPublicKey = errors.New("bls: not a public key")
	ErrSignature = errors.New("bls: not a signature")
)

type lines = [2][len(bls12381.LoopCounter) - 1]bls12381.LineEvaluationAff

// A PublicKey verifies signatures. Its pairing lines are computed once. It is
// immutable and safe for concurrent use.
type PublicKey struct {
	p     bls12381.G2Affine
	lines []lines // of the negated generator and of the key
}

// ParsePublicKey decodes 96 bytes; the identity and points outside the subgroup are
// refused.
func ParsePublicKey(b []byte) (*PublicKey, error) {
	var p Point
	if p.UnmarshalBinary(b) != nil || p.p.IsInfinity() {
		return nil, ErrPublicKey
	}
	_, _, _, g := bls12381.Generators()
	g.Neg(&g)
	return &PublicKey{p.p, []lines{bls12381.PrecomputeLines(g), bls12381.PrecomputeLines(p.p)}}, nil
}

// Bytes is the compressed encoding.
func (k *PublicKey) Bytes() [PublicKeySize]byte { return k.p.Bytes() }

// A Signature is a decoded signature, whole or partial. It is in the subgroup and
// not the identity.
type Signature struct{ p bls12381.G1Affine }

// ParseSignature decodes 48 bytes with a subgroup check: the cofactor has small
// factors, so an unchecked point could spoil a batch.
func ParseSignature(b []byte) (*Signature, error) {
	s := new(Signature)
	if !canonical(b, SignatureSize) {
		return nil, ErrSignature
	}
	if _, err := s.p.SetBytes(b); err != nil || s.p.IsInfinity() {
		return nil, ErrSignature
	}
	if again := s.p.Bytes(); string(again[:]) != string(b) {
		return nil, ErrSignature
	}
	return s, nil
}

// Bytes is the compressed encoding.
func (s *Signature) Bytes() [SignatureSize]byte { return s.p.Bytes() }

func hashToG1(message []byte) (bls12381.G1Affine, error) {
	return bls12381.HashToG1(message, []byte(DST))
}

// A KeyShare signs for one node. It is immutable and safe for concurrent use.
type KeyShare struct{ k fr.Element }

// NewKeyShare takes a share of the secret key, a canonical scalar of 32 bytes.
func NewKeyShare(share secret.Bytes) (*KeyShare, error) {
	var s Scalar
	if s.UnmarshalBinary(share.Expose()) != nil || s.e.IsZero() {
		return nil, errors.New("bls: no usable share")
	}
	return &KeyShare{s.e}, nil
}

// String redacts.
func (k *KeyShare) String() string { return "[redacted]" }

// GoString redacts.
func (k *KeyShare) GoString() string { return "[redacted]" }

// Format redacts under every verb.
func (k *KeyShare) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[redacted]") }

// Public is the public share.
func (k *KeyShare) Public() [PublicKeySize]byte {
	return new(Point).Mul(&Scalar{k.k}, nil).(*Point).p.Bytes()
}

// Sign makes the partial signature on a message. The multiplication is blinded.
func (k *KeyShare) Sign(message []byte) (*Signature, error) {
	h, err := hashToG1(message)
	if err != nil {
		return nil, err
	}
	a, b := blind(&k.k)
	defer wipe(a, b)
	var x, y bls12381.G1Affine
	x.ScalarMultiplication(&h, a)
	y.ScalarMultiplication(&h, b)
	s := new(Signature)
	s.p.Add(&x, &y)
	return s, nil
}

// Verify checks one signature.
func (k *PublicKey) Verify(message []byte, s *Signature) bool {
	h, err := hashToG1(message)
	if err != nil {
		return false
	}
	ok, err := k.pairing(s.p, h)
	return err == nil && ok
}

// pairing checks e(s, -g) e(h, key) = 1. The library scales the precomputed lines in
// place, so it gets a copy.
func (k *PublicKey) pairing(s, h bls12381.G1Affine) (bool, error) {
	return bls12381.PairingCheckFixedQ([]bls12381.G1Affine{s, h}, slices.Clone(k.lines))
}

// Combine adds the partial signatures of the given nodes, each times its Lagrange
// coefficient at zero. The result is to be verified.
func Combine(nodes []int, partials []*Signature) (*Signature, error) {
	if len(nodes) == 0 || len(nodes) != len(partials) {
		return nil, fmt.Errorf("bls: %d partial signatures of %d nodes", len(partials), len(nodes))
	}
	s := new(Signature)
	for a, i := range nodes {
		var num, den fr.Element
		num.SetOne()
		den.SetOne()
		for b, j := range nodes {
			if b == a {
				continue
			}
			var x fr.Element
			num.Mul(&num, x.SetInt64(int64(j)))
			den.Mul(&den, x.SetInt64(int64(j-i)))
		}
		if den.IsZero() {
			return nil, errors.New("bls: a node is listed twice")
		}
		num.Div(&num, &den)
		var term bls12381.G1Affine
		term.ScalarMultiplication(&partials[a].p, num.BigInt(new(big.Int)))
		s.p.Add(&s.p, &term)
	}
	if s.p.IsInfinity() {
		return nil, ErrSignature
	}
	return s, nil
}

// VerifyBatch checks many signatures under one key with two pairings and reports
// which are good. Random 128-bit weights keep bad ones from cancelling; when the
// batch fails it is bisected, down to a few that are checked one by one: so n bad ones
// cost 5n/4 checks at most, not 2n.
func (k *PublicKey) VerifyBatch(messages [][]byte, signatures []*Signature) ([]bool, error) {
	if len(messages) != len(signatures) {
		return nil, fmt.Errorf("bls: %d messages, %d signatures", len(messages), len(signatures))
	}
	hashes := make([]bls12381.G1Affine, len(messages))
	points := make([]bls12381.G1Affine, len(messages))
	for i := range messages {
		var err error
		if hashes[i], err = hashToG1(messages[i]); err != nil {
			return nil, err
		}
		points[i] = signatures[i].p
	}
	good := make([]bool, len(messages))
	return good, bisect(good, 0, func(from, to int) (bool, error) { return k.verifySum(hashes[from:to], points[from:to]) })
}

// oneByOne is the size of a failed batch that is not bisected any more.
const oneByOne = 8

// bisect finds the good ones, the first of good having the number from. check tells of
// a range whether all in it are good.
func bisect(good []bool, from int, check func(from, to int) (bool, error)) error {
	if len(good) == 0 {
		return nil
	}
	ok, err := check(from, from+len(good))
	if err != nil {
		return err
	}
	if ok || len(good) == 1 {
		for i := range good {
			good[i] = ok
		}
		return nil
	}
	if len(good) <= oneByOne {
		for i := range good {
			if good[i], err = check(from+i, from+i+1); err != nil {
				return err
			}
		}
		return nil
	}
	half := len(good) / 2
	if err := bisect(good[:half], from, check); err != nil {
		return err
	}
	return bisect(good[half:], from+half, check)
}

func (k *PublicKey) verifySum(hashes, points []bls12381.G1Affine) (bool, error) {
	w, err := randomWeights(len(points))
	if err != nil {
		return false, err
	}
	s, err := weighted(points, w)
	if err != nil {
		return false, err
	}
	h, err := weighted(hashes, w)
	if err != nil {
		return false, err
	}
	return k.pairing(s, h)
}

// randomWeights draws 128-bit weights; a single signature needs none.
func randomWeights(n int) ([]fr.Element, error) {
	w := make([]fr.Element, n)
	if n == 1 {
		w[0].SetOne()
		return w, nil
	}
	b := make([]byte, 16*n)
	_, _ = rand.Read(b)
	for i := range w {
		w[i].SetBytes(b[16*i:][:16])
	}
	return w, nil
}

// multiExpFrom is the batch size from which the library's multi-exponentiation, with
// its tables, is faster than single multiplications.
const multiExpFrom = 8

func weighted(points []bls12381.G1Affine, w []fr.Element) (sum bls12381.G1Affine, err error) {
	if len(points) == 1 {
		return points[0], nil
	}
	if len(points) >= multiExpFrom {
		_, err = sum.MultiExp(points, w, ecc.MultiExpConfig{NbTasks: 1})
		return sum, err
	}
	for i := range points {
		var term bls12381.G1Affine
		term.ScalarMultiplication(&points[i], w[i].BigInt(new(big.Int)))
		sum.Add(&sum, &term)
	}
	return sum, nil
}
