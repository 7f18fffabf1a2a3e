package keygen

import (
	"crypto/ed25519"
	"fmt"

	"golang.org/x/crypto/cryptobyte"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/labelhash"
	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/sig"
)

// shared lists the keys that two members both hold.
func (a *Attempt) shared(i, j int) []int {
	var keys []int
	for _, key := range a.layout.HeldBy(i) {
		if a.layout.Set(key).Has(j) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (a *Attempt) revealDigest(sender, to int, contributions []byte) [32]byte {
	s := &a.session
	return labelhash.New(labelReveal).Byte(byte(sender)).Byte(byte(to)).Fixed(s.Keyset[:]).Uint16(s.Epoch).Uint16(s.Attempt).
		Fixed(s.Proposal[:]).Var(contributions).Sum()
}

// Reveal makes the secret message to another member: the contributions to the keys
// that both hold, each under its set, signed. It must travel over a channel that
// only that member can read. The other's transcript must be ours: then all commits
// are fixed, and its own contribution cannot depend on what it learns here.
func (a *Attempt) Reveal(to int, transcript [32]byte) (secret.Bytes, error) {
	own, ok := a.Transcript()
	switch {
	case a.fault != nil:
		return secret.Bytes{}, a.fault
	case !ok || a.phase < AwaitReveals || a.phase >= Complete: // before AwaitReveals the commits are not stored
		return secret.Bytes{}, fmt.Errorf("keygen: nothing to reveal while %v", a.phase)
	case own != transcript:
		return secret.Bytes{}, fmt.Errorf("keygen: node %d has other commitments than this node", to)
	case to < 1 || to > a.terms.N || to == a.self:
		return secret.Bytes{}, fmt.Errorf("keygen: no member %d to reveal to", to)
	}
	var body []byte
	for _, key := range a.shared(a.self, to) {
		c := cryptobyte.NewBuilder(body)
		c.AddUint64(uint64(a.layout.Set(key)))
		c.AddBytes(a.contribution(key).Expose())
		body = c.BytesOrPanic()
	}
	s := sig.Sign(a.key, labelReveal, a.revealDigest(a.self, to, body))
	return secret.New(append(body, s[:]...)), nil
}

// AddReveal takes the reveal of a member from the channel to that member.
func (a *Attempt) AddReveal(from int, reveal secret.Bytes) error {
	if a.tae3() || a.phase != AwaitReveals || from < 1 || from > a.terms.N || from == a.self || a.revealed[from] != nil {
		return nil
	}
	keys := a.shared(from, a.self)
	b := reveal.Expose()
	const item = 8 + dprf.KeySize
	if len(b) != item*len(keys)+sig.Size {
		return a.blame(from, "sent a malformed reveal")
	}
	body, signature := b[:item*len(keys)], b[item*len(keys):]
	if !sig.Verify(a.terms.Members[from-1][:], labelReveal, a.revealDigest(from, a.self, body), signature) {
		return a.blame(from, "sent a reveal with a bad signature")
	}
	held := a.layout.HeldBy(from)
	commits := a.statements[Commit][from].Payload
	revealed := map[int]secret.Bytes{}
	for i, key := range keys {
		in := cryptobyte.String(body[item*i:][:item])
		var set uint64
		in.ReadUint64(&set)
		r := secret.Copy(in)
		at := 0
		for held[at] != key {
			at++
		}
		if dprf.Set(set) != a.layout.Set(key) || !a.session.CheckReveal(from, dprf.Set(set), r, [32]byte(commits[32*at:])) {
			return a.blame(from, fmt.Sprintf("revealed another contribution to the key of nodes %v than it committed to", a.layout.Set(key)))
		}
		revealed[key] = r
	}
	a.revealed[from] = revealed
	return nil
}

// NeedsReveal reports whether the member's reveal is awaited.
func (a *Attempt) NeedsReveal(from int) bool {
	return !a.tae3() && a.phase == AwaitReveals && a.fault == nil && from != a.self && a.revealed[from] == nil
}

// publicKey is this member's own key.
func (a *Attempt) publicKey() ed25519.PublicKey { return a.key.Public().(ed25519.PublicKey) }
