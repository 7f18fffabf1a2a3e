package protocol

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"

	"github.com/seed-a893640b/tae/internal/labelhash"
)

const (
	labelOpenSecret = "tae/v1/open-secret"
	labelOpen       = "tae/v1/open"
	labelOpenings   = "tae/v1/openings"
	labelAAD        = "tae/v1/aad"
	labelBody       = "tae/v1/body"
	labelPipe       = "tae/v1/pipe"
	labelFresh      = "tae/v1/fresh"
	labelSession    = "tae/v1/session"
	labelEnc        = "tae/v1/enc"
	labelMoved      = "tae/v1/moved"
)

// RhoSize is the length in bytes of an object's secret.
const RhoSize = 30

// Rho is the secret that opens one object.
type Rho [RhoSize]byte

// masked is the value that an object carries under its mask.
func masked(rho *Rho, born uint16) (v [32]byte) {
	copy(v[:], rho[:])
	binary.BigEndian.PutUint16(v[RhoSize:], born)
	return v
}

// openings ties an encrypt request to the nodes that see it (section 8.1). A node
// learns its own secret s_k and all commitments: a node that remembers a request
// cannot repeat it, since it knows no other node's secret.
type openings struct {
	secrets     [][32]byte
	commitments [][32]byte
	r           [32]byte
}

func newOpenings(b *[32]byte, n int) *openings {
	o := &openings{secrets: make([][32]byte, n), commitments: make([][32]byte, n)}
	for k := range o.secrets {
		o.secrets[k] = labelhash.New(labelOpenSecret).Fixed(b[:]).Byte(byte(k + 1)).Sum()
		o.commitments[k] = openCommitment(k+1, &o.secrets[k])
	}
	o.r = openingsHash(o.commitments)
	return o
}

func (o *openings) wipe() { clear(o.secrets) }

func openCommitment(node int, secret *[32]byte) [32]byte {
	return labelhash.New(labelOpen).Byte(byte(node)).Fixed(secret[:]).Sum()
}

func openingsHash(commitments [][32]byte) [32]byte {
	h := labelhash.New(labelOpenings).Byte(byte(len(commitments)))
	for i := range commitments {
		h.Fixed(commitments[i][:])
	}
	return h.Sum()
}

// aadHash covers the associated data and the parameters of the header.
func aadHash(p *Params, aad []byte) [32]byte {
	var buf [192]byte
	b := p.Append(labelhash.Prefix(buf[:0], labelAAD))
	b = binary.BigEndian.AppendUint64(b, uint64(len(aad)))
	if len(aad) > cap(b)-len(b) {
		// Long associated data are hashed where they are.
		return labelhash.New(labelAAD).Fixed(p.Append(buf[:0])).Var(aad).Sum()
	}
	return sha256.Sum256(append(b, aad...))
}

// hashInput lays fixed-length fields out behind a label in b: the hot path hashes
// one buffer in one call instead of four small writes.
func hashInput(b []byte, label string, fields ...[]byte) [32]byte {
	b = labelhash.Prefix(b[:0], label)
	for _, f := range fields {
		b = append(b, f...)
	}
	return sha256.Sum256(b)
}

// freshCommitment is w: it hides and binds the object's secret, birth epoch, body,
// associated data and parameters. The input is 109 bytes, two SHA-256 blocks.
func freshCommitment(rho *Rho, born uint16, body, aad *[32]byte) [32]byte {
	var buf [128]byte
	v := masked(rho, born)
	defer clear(v[:])
	defer clear(buf[:])
	return hashInput(buf[:], labelFresh, v[:], body[:], aad[:])
}

// sessionContext is the part of an identity that one encrypt request shares.
func sessionContext(keyset KeysetID, suite Suite, j ClientKey, r *[32]byte) [32]byte {
	var buf [128]byte
	return hashInput(buf[:], labelSession, keyset[:], []byte{byte(suite)}, j[:], r[:])
}

// freshIdentity is x = H("enc"; keyset, suite, j, R, w), the first four being in
// the context.
func freshIdentity(context, w *[32]byte) Identity {
	var buf [96]byte
	return hashInput(buf[:], labelEnc, context[:], w[:])
}

// movedIdentity is the identity of a sealed object after a rotation. It has one
// parent: epoch and identity of the source are in the hash.
func movedIdentity(keyset KeysetID, suite Suite, s *Source) Identity {
	return labelhash.New(labelMoved).Fixed(keyset[:]).Byte(byte(suite)).Fixed(s.X0[:]).Uint16(s.EpochSrc).Fixed(s.IDSrc[:]).Sum()
}

// ID is the identity that masks and tags of a sealed object are made for.
func (h *Header) ID() Identity {
	if h.Source.Moved {
		return movedIdentity(h.Keyset, h.Suite, &h.Source)
	}
	return h.Source.X0
}

// verify recomputes the commitment and the identity of an opened object and
// compares in constant time. body is the hash that stands for the body, born what
// came out under the mask.
func (h *Header) verify(rho *Rho, born uint16, j ClientKey, r, body, aad *[32]byte) error {
	w := freshCommitment(rho, born, body, aad)
	context := sessionContext(h.Keyset, h.Suite, j, r)
	x := freshIdentity(&context, &w)
	ok := subtle.ConstantTimeCompare(x[:], h.Source.X0[:])
	// The birth epoch says which epoch's keys made the object. Without this check
	// stolen keys of an old epoch could pass objects off as new (section 6.3).
	switch {
	case h.Suite == SuiteTAE3:
		ok &= boolBit(born == 0)
	case h.Source.Moved:
		ok &= boolBit(born >= 1 && born <= h.Source.EpochSrc)
	default:
		ok &= boolBit(born == h.Epoch)
	}
	if ok != 1 {
		return ErrAuthentication
	}
	return nil
}

func boolBit(b bool) int {
	if b {
		return 1
	}
	return 0
}
