package node

import (
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"

	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/protocol"
	"github.com/seed-a893640b/tae/protocol/keygen"
)

// Requests between members (docs/spec.md section 10.3). The first two bytes of
// request and answer are those of protocol's.
const (
	opExchange = protocol.OpMember + 0 // statements of one attempt, both ways
	opReveal   = protocol.OpMember + 1 // contributions to the keys that both hold

	memberVersion = 1
)

var errMember = errors.New("malformed member message")

// exchange carries what one member knows of an attempt to another, and tells what
// it has, so that the answer can bring what it lacks.
type exchange struct {
	id         keygen.ID
	have       [][32]byte // digests of the statements in hand
	statements []*keygen.Statement
	phase      keygen.Phase
	cert       *protocol.Certificate // complete, or nil
}

func (e *exchange) append(first, second byte) []byte {
	c := cryptobyte.NewBuilder([]byte{first, second})
	c.AddBytes(e.id.Keyset[:])
	c.AddUint16(e.id.Epoch)
	c.AddUint16(e.id.Attempt)
	c.AddUint8(uint8(e.phase))
	c.AddUint16(uint16(len(e.have)))
	for i := range e.have {
		c.AddBytes(e.have[i][:])
	}
	var cert []byte
	if e.cert != nil {
		cert = e.cert.Append(nil)
	}
	c.AddUint32(uint32(len(cert)))
	c.AddBytes(cert)
	return keygen.AppendStatements(c.BytesOrPanic(), e.statements)
}

// readExchange parses what follows the two leading bytes.
func readExchange(b []byte) (*exchange, error) {
	s := cryptobyte.String(b)
	e := new(exchange)
	var phase uint8
	var count uint16
	if !s.CopyBytes(e.id.Keyset[:]) || !s.ReadUint16(&e.id.Epoch) || !s.ReadUint16(&e.id.Attempt) || !s.ReadUint8(&phase) || !s.ReadUint16(&count) {
		return nil, errMember
	}
	e.phase = keygen.Phase(phase)
	for range count {
		var d [32]byte
		if !s.CopyBytes(d[:]) {
			return nil, errMember
		}
		e.have = append(e.have, d)
	}
	var size uint32
	var cert []byte
	if !s.ReadUint32(&size) || uint64(size) > uint64(len(s)) || !s.ReadBytes(&cert, int(size)) {
		return nil, errMember
	}
	if size > 0 {
		c, err := protocol.ParseCertificate(cert)
		if err != nil {
			return nil, err
		}
		e.cert = c
	}
	list, ok := keygen.ReadStatements(&s)
	if !ok || !s.Empty() {
		return nil, errMember
	}
	e.statements = list
	return e, nil
}

// maxExchange bounds the statements of one message in bytes. What is left goes with
// the next one.
const maxExchange = 1 << 20

// lacking lists the statements whose digests are not among have, as many as fit
// into one message and at least one.
func lacking(all []*keygen.Statement, have [][32]byte) []*keygen.Statement {
	known := make(map[[32]byte]bool, len(have))
	for _, d := range have {
		known[d] = true
	}
	var list []*keygen.Statement
	size := 0
	for _, s := range all {
		if known[s.Digest()] {
			continue
		}
		if size += len(s.Payload); size > maxExchange && len(list) > 0 {
			break
		}
		list = append(list, s)
	}
	return list
}

func digests(all []*keygen.Statement) [][32]byte {
	d := make([][32]byte, len(all))
	for i, s := range all {
		d[i] = s.Digest()
	}
	return d
}

func revealRequest(id keygen.ID, transcript [32]byte) []byte {
	c := cryptobyte.NewBuilder([]byte{memberVersion, byte(opReveal)})
	c.AddBytes(id.Keyset[:])
	c.AddUint16(id.Epoch)
	c.AddUint16(id.Attempt)
	c.AddBytes(transcript[:])
	return c.BytesOrPanic()
}

func readReveal(b []byte) (id keygen.ID, transcript [32]byte, err error) {
	s := cryptobyte.String(b)
	if !s.CopyBytes(id.Keyset[:]) || !s.ReadUint16(&id.Epoch) || !s.ReadUint16(&id.Attempt) || !s.CopyBytes(transcript[:]) || !s.Empty() {
		return id, transcript, errMember
	}
	return id, transcript, nil
}

// okAnswer is an answer that carries body.
func okAnswer(body []byte) []byte {
	return append([]byte{memberVersion, byte(protocol.CodeOK)}, body...)
}

func refusal(code protocol.Code, format string, args ...any) []byte {
	return (&protocol.Refusal{Code: code, Text: fmt.Sprintf(format, args...)}).Append(nil)
}

func revealAnswer(r secret.Bytes) []byte {
	defer r.Wipe()
	return okAnswer(r.Expose())
}
