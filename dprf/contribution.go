package dprf

import (
	"crypto/subtle"
	"fmt"

	"github.com/seed-a893640b/tae/internal/labelhash"
	"github.com/seed-a893640b/tae/internal/secret"
)

const (
	labelCommit   = "tae/v1/keygen/commit"
	labelEpochKey = "tae/v1/keygen/key"
	labelKeyCheck = "tae/v1/keygen/key-check"
)

// A Session names one attempt to make one epoch's keys. Proposal is the digest
// of everything that the members agreed to, so contributions made for one
// proposal are worthless for another.
type Session struct {
	Keyset   [16]byte
	Epoch    uint16
	Attempt  uint16
	Proposal [32]byte
}

func (s Session) hash(label string, d Set) labelhash.Hash {
	return labelhash.New(label).Fixed(s.Keyset[:]).Uint16(s.Epoch).Uint16(s.Attempt).Fixed(s.Proposal[:]).Uint64(uint64(d))
}

// Commit commits sender to its contribution to the key of d. The contribution is
// 32 uniform bytes, so the hash hides it as well as binds to it.
func (s Session) Commit(sender int, d Set, contribution secret.Bytes) [32]byte {
	return s.hash(labelCommit, d).Byte(byte(sender)).Fixed(contribution.Expose()).Sum()
}

// CheckReveal reports whether contribution is what sender committed to.
func (s Session) CheckReveal(sender int, d Set, contribution secret.Bytes, commitment [32]byte) bool {
	if contribution.Len() != KeySize {
		return false
	}
	got := s.Commit(sender, d, contribution)
	return subtle.ConstantTimeCompare(got[:], commitment[:]) == 1
}

// Key hashes the contributions of all members of d, in ascending order of their
// indices, to the key of d. It is uniform when one of them is, since all were
// committed to before any was revealed.
func (s Session) Key(d Set, contributions []secret.Bytes) (secret.Bytes, error) {
	if len(contributions) != d.Size() {
		return secret.Bytes{}, fmt.Errorf("dprf: %d contributions to the key of %v", len(contributions), d)
	}
	h := s.hash(labelEpochKey, d)
	for _, c := range contributions {
		if c.Len() != KeySize {
			return secret.Bytes{}, fmt.Errorf("dprf: a contribution to the key of %v has %d bytes, want %d", d, c.Len(), KeySize)
		}
		h.Fixed(c.Expose())
	}
	key := h.Sum()
	return secret.New(key[:]), nil
}

// KeyCheck is a public value that tells whether two nodes hold the same key. It
// is a hash of a uniform 32-byte key and says nothing else about it.
func (s Session) KeyCheck(d Set, key secret.Bytes) [32]byte {
	return s.hash(labelKeyCheck, d).Fixed(key.Expose()).Sum()
}
