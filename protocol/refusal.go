package protocol

import (
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
)

// Code says why a node did not do what was asked (section 8.5). The table is closed.
type Code uint8

// Codes of answers and, where the comment says so, of single items.
const (
	CodeOK            Code = 0
	CodeMalformed     Code = 1
	CodeVersion       Code = 2
	CodeDenied        Code = 3
	CodeUnknownKeyset Code = 4
	CodeUnknownEpoch  Code = 5 // or attempt
	CodeEpochRetired  Code = 6
	CodeGeneration    Code = 7
	CodeMode          Code = 8
	CodeBusy          Code = 9
	CodeTooLarge      Code = 10
	CodeBadOpening    Code = 11
	CodeBadProof      Code = 12 // of an item
	CodeBadQuorum     Code = 13
	CodeNotServing    Code = 14 // starting, or the keyset is damaged here
	CodeInternal      Code = 15

	codeCount          = 16
	maxRefusalText     = 512
	maxRefusalCertSize = 2 << 20
)

var codeNames = [codeCount]string{
	"ok", "malformed request", "unsupported version", "denied by policy", "unknown keyset", "unknown epoch", "epoch retired",
	"other generation", "mode not offered", "busy", "too large", "bad opening", "bad proof", "bad quorum", "not serving", "internal error",
}

func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// A Refusal is an answer that says no. It holds no secret.
type Refusal struct {
	Code       Code
	RetryAfter uint32 // milliseconds, with CodeBusy
	Text       string // for people, at most 512 bytes
	// Certificate is the node's newest epoch certificate of the keyset, encoded,
	// where a newer one may be what the client lacks; else empty.
	Certificate []byte
}

func (r *Refusal) Error() string {
	if r.Text == "" {
		return r.Code.String()
	}
	return r.Code.String() + ": " + r.Text
}

// Is lets errors.Is compare refusals by code.
func (r *Refusal) Is(target error) bool {
	var o *Refusal
	return errors.As(target, &o) && o.Code == r.Code
}

func refuse(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Text: fmt.Sprintf(format, args...)}
}

// Append appends the answer that carries the refusal.
func (r *Refusal) Append(b []byte) []byte {
	c := cryptobyte.NewBuilder(b)
	c.AddUint8(wireVersion)
	c.AddUint8(uint8(r.Code))
	c.AddUint32(r.RetryAfter)
	text := r.Text[:min(len(r.Text), maxRefusalText)]
	c.AddUint16LengthPrefixed(func(c *cryptobyte.Builder) { c.AddBytes([]byte(text)) })
	c.AddUint32(uint32(len(r.Certificate)))
	c.AddBytes(r.Certificate)
	return c.BytesOrPanic()
}

// A NodeError says which node failed, refused or lied.
type NodeError struct {
	Node int
	Err  error
}

func (e *NodeError) Error() string { return fmt.Sprintf("node %d: %v", e.Node, e.Err) }
func (e *NodeError) Unwrap() error { return e.Err }

// ErrAnswer reports an answer that is not in the format of its request: the node
// is broken or lies.
var ErrAnswer = errors.New("malformed answer")

// OpenAnswer returns what follows the two leading bytes of an OK answer, or the
// refusal that it carries.
func OpenAnswer(answer []byte) ([]byte, error) {
	s := cryptobyte.String(answer)
	var version, code uint8
	if !s.ReadUint8(&version) || !s.ReadUint8(&code) {
		return nil, ErrAnswer
	}
	if version != wireVersion {
		return nil, fmt.Errorf("%w: version %d", ErrAnswer, version)
	}
	if Code(code) == CodeOK {
		return s, nil
	}
	var retry, certLen uint32
	var text cryptobyte.String
	var cert []byte
	if code >= codeCount || !s.ReadUint32(&retry) || !s.ReadUint16LengthPrefixed(&text) || len(text) > maxRefusalText ||
		!s.ReadUint32(&certLen) || certLen > maxRefusalCertSize || !s.ReadBytes(&cert, int(certLen)) || !s.Empty() {
		return nil, ErrAnswer
	}
	return nil, &Refusal{Code: Code(code), RetryAfter: retry, Text: printable(text), Certificate: cert}
}

// printable keeps a lying node from writing control sequences to a terminal.
func printable(b []byte) string {
	out := make([]byte, len(b))
	for i, c := range b {
		if c < 0x20 || c > 0x7e {
			c = '?'
		}
		out[i] = c
	}
	return string(out)
}
