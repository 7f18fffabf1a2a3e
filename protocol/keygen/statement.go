package keygen

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"

	"github.com/seed-a893640b/tae/internal/labelhash"
	"github.com/seed-a893640b/tae/protocol"
	"github.com/seed-a893640b/tae/sig"
)

const (
	labelStatement = "tae/v1/keygen/statement"
	labelReveal    = "tae/v1/keygen/reveal"

	// maxPayload bounds a statement: a commit or check of MaxKeys keys.
	maxPayload = 1 << 20
)

// Kind is what a statement says.
type Kind uint8

// The statements of an attempt; reveals are not statements, since they are for one
// member only.
const (
	Proposal Kind = 1
	Commit   Kind = 2
	Check    Kind = 3
	Certify  Kind = 4
	Abandon  Kind = 5
	// The payloads of package dkg, in TAE3 in place of commits and reveals.
	GroupKeys      Kind = 6
	Deals          Kind = 7
	Responses      Kind = 8
	Justifications Kind = 9
	kinds               = 10
)

var kindNames = [kinds]string{"", "proposal", "commit", "check", "certify", "abandon", "group keys", "deals", "responses", "justifications"}

func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("statement %d", uint8(k))
}

// ID names an attempt.
type ID struct {
	Keyset  protocol.KeysetID
	Epoch   uint16
	Attempt uint16
}

func (id ID) String() string {
	return fmt.Sprintf("keyset %v epoch %d attempt %d", id.Keyset, id.Epoch, id.Attempt)
}

// IDOf names the attempt that terms are for.
func IDOf(t *protocol.Terms) ID { return ID{t.Keyset, t.Epoch, t.Attempt} }

// A Statement is one member's signed word about one attempt. Everything that it
// is about is under the signature, so that a member that says two things is
// convicted by its own hand and nobody else can be framed with it.
type Statement struct {
	ID
	Kind      Kind
	Sender    int
	Terms     [32]byte // digest of the terms
	Payload   []byte
	Signature [sig.Size]byte
}

// Digest is what the sender signs.
func (s *Statement) Digest() [32]byte {
	return labelhash.New(labelStatement).Byte(byte(s.Kind)).Byte(byte(s.Sender)).Fixed(s.Keyset[:]).
		Uint16(s.Epoch).Uint16(s.Attempt).Fixed(s.Terms[:]).Var(s.Payload).Sum()
}

func (s *Statement) sign(key ed25519.PrivateKey) *Statement {
	s.Signature = sig.Sign(key, labelStatement, s.Digest())
	return s
}

// Verify checks the signature under the sender's key.
func (s *Statement) Verify(member [32]byte) bool {
	return sig.Verify(member[:], labelStatement, s.Digest(), s.Signature[:])
}

// Append appends the canonical encoding.
func (s *Statement) Append(b []byte) []byte {
	c := cryptobyte.NewBuilder(b)
	c.AddUint8(byte(s.Kind))
	c.AddUint8(byte(s.Sender))
	c.AddBytes(s.Keyset[:])
	c.AddUint16(s.Epoch)
	c.AddUint16(s.Attempt)
	c.AddBytes(s.Terms[:])
	c.AddUint32(uint32(len(s.Payload)))
	c.AddBytes(s.Payload)
	c.AddBytes(s.Signature[:])
	return c.BytesOrPanic()
}

var errStatement = errors.New("keygen: malformed statement")

// read reads one statement off the front of b.
func (s *Statement) read(b *cryptobyte.String) bool {
	var kind, sender uint8
	var size uint32
	var payload []byte
	ok := b.ReadUint8(&kind) && b.ReadUint8(&sender) && b.CopyBytes(s.Keyset[:]) && b.ReadUint16(&s.Epoch) &&
		b.ReadUint16(&s.Attempt) && b.CopyBytes(s.Terms[:]) && b.ReadUint32(&size) && size <= maxPayload &&
		b.ReadBytes(&payload, int(size)) && b.CopyBytes(s.Signature[:])
	if !ok || kind < uint8(Proposal) || kind >= kinds || sender < 1 || sender > 64 {
		return false
	}
	s.Kind, s.Sender, s.Payload = Kind(kind), int(sender), append([]byte(nil), payload...)
	return true
}

// ParseStatement parses one statement; its signature is not verified.
func ParseStatement(b []byte) (*Statement, error) {
	in := cryptobyte.String(b)
	s := new(Statement)
	if !s.read(&in) || !in.Empty() {
		return nil, errStatement
	}
	return s, nil
}

// AppendStatements encodes a list.
func AppendStatements(b []byte, list []*Statement) []byte {
	c := cryptobyte.NewBuilder(b)
	c.AddUint16(uint16(len(list)))
	b = c.BytesOrPanic()
	for _, s := range list {
		b = s.Append(b)
	}
	return b
}

// ReadStatements reads a list off the front of b.
func ReadStatements(b *cryptobyte.String) ([]*Statement, bool) {
	var count uint16
	if !b.ReadUint16(&count) {
		return nil, false
	}
	var list []*Statement
	for range count {
		s := new(Statement)
		if !s.read(b) {
			return nil, false
		}
		list = append(list, s)
	}
	return list, true
}

// Propose signs terms as a proposal. The sender is a member of the terms.
func Propose(terms *protocol.Terms, sender int, key ed25519.PrivateKey) *Statement {
	s := &Statement{ID: IDOf(terms), Kind: Proposal, Sender: sender, Terms: terms.Digest(), Payload: terms.Append(nil)}
	return s.sign(key)
}

// OpenProposal checks a proposal and returns its terms. That its members are those
// of the receiver's own configuration is for the receiver to check.
func OpenProposal(s *Statement) (*protocol.Terms, error) {
	if s.Kind != Proposal {
		return nil, fmt.Errorf("keygen: a %v is not a proposal", s.Kind)
	}
	terms, err := protocol.ParseTerms(s.Payload)
	if err != nil {
		return nil, err
	}
	if s.ID != IDOf(terms) || s.Terms != terms.Digest() || s.Sender > terms.N {
		return nil, errors.New("keygen: proposal does not match its terms")
	}
	if !s.Verify(terms.Members[s.Sender-1]) {
		return nil, fmt.Errorf("keygen: bad signature on the proposal of node %d", s.Sender)
	}
	return terms, nil
}
