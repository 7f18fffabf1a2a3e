package protocol

import (
	"bytes"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/seed-a893640b/tae/dprf"
)

// Errors of CheckObject: which part of an object does not fit the keyset.
var (
	ErrOtherKeyset  = errors.New("the object belongs to another keyset")
	ErrUnknownEpoch = errors.New("the object's epoch is not known")
)

// maxTries bounds the quorums that Recombine tries after a dispute.
const maxTries = 1000

// CheckObject checks that a header can belong to the certified epoch; the nodes
// would refuse it otherwise, but with less to say.
func CheckObject(cert *Certificate, h *Header) error {
	switch {
	case h.Keyset != cert.Keyset:
		return fmt.Errorf("%w: %v, keyset %s is %v", ErrOtherKeyset, h.Keyset, cert.Name, cert.Keyset)
	case h.Suite != cert.Suite || !cert.Modes.Has(h.Mode) || h.Layers != cert.Layers:
		return fmt.Errorf("%w: suite %v, mode %v, %d layers do not fit keyset %s", ErrAuthentication, h.Suite, h.Mode, h.Layers, cert.Name)
	case h.Epoch != cert.Epoch:
		return fmt.Errorf("%w: epoch %d of keyset %s", ErrUnknownEpoch, h.Epoch, cert.Name)
	case h.Suite == SuiteTAE1 && len(h.Proof) != dprf.TagSize*cert.Params().Keys():
		return fmt.Errorf("%w: %d tags, keyset %s has another number", ErrAuthentication, len(h.Proof)/dprf.TagSize, cert.Name)
	}
	return nil
}

// A Decryption asks for the masks of objects of one epoch. It holds no secret
// before its rounds finish. Not safe for concurrent use.
type Decryption struct {
	cert    *Certificate
	layout  *dprf.Layout
	headers []*Header
	ids     []Identity
}

// NewDecryption starts the decryption of objects that passed CheckObject, at least
// one and at most Limits.MaxBatch.
func NewDecryption(cert *Certificate, headers []*Header) (*Decryption, error) {
	if len(headers) == 0 || len(headers) > int(cert.Limits.MaxBatch) {
		return nil, fmt.Errorf("protocol: %d objects in one request, allowed are 1 to %d", len(headers), cert.Limits.MaxBatch)
	}
	d := &Decryption{cert: cert, headers: headers, ids: make([]Identity, len(headers))}
	if cert.Suite == SuiteTAE1 {
		d.layout = cert.Layout()
	}
	for i, h := range headers {
		if err := CheckObject(cert, h); err != nil {
			return nil, err
		}
		d.ids[i] = h.ID()
	}
	return d, nil
}

// Round asks the nodes of q for the masks.
func (d *Decryption) Round(q dprf.Set, detail bool) (*DecryptRound, error) {
	r := &DecryptRound{d: d, round: round{quorum: q, detail: detail, layout: d.layout, items: len(d.headers)}}
	return r, r.assign()
}

// A DecryptRound collects the answers of one quorum. Not safe for concurrent use.
type DecryptRound struct {
	round
	d *Decryption
}

// Request is the request to every node of the quorum.
func (r *DecryptRound) Request() []byte {
	d := r.d
	t := targetOf(d.cert, OpDecrypt, r.quorum, r.detail)
	b := t.append(make([]byte, 0, targetFixed+r.quorum.Size()+2+len(d.headers)*(32+len(d.headers[0].Proof))))
	b = binary.BigEndian.AppendUint16(b, uint16(len(d.headers)))
	for i, h := range d.headers {
		b = append(b, d.ids[i][:]...)
		b = append(b, h.Proof...)
	}
	return b
}

// Add takes a node's answer. An error is a *NodeError: the node refused the whole
// request or its answer is malformed.
func (r *DecryptRound) Add(node int, answer []byte) error {
	body, err := OpenAnswer(answer)
	if err == nil {
		err = r.checkAnswer(node, body)
	}
	return r.put(node, body, err)
}

func (r *DecryptRound) checkAnswer(node int, body []byte) error {
	if len(body) != r.items*(1+maskItemSize(len(r.keysOf(node)), r.detail)) {
		return fmt.Errorf("%w: %d bytes for %d items", ErrAnswer, len(body), r.items)
	}
	for _, code := range body[:r.items] {
		if Code(code) != CodeOK && Code(code) != CodeBadProof {
			return fmt.Errorf("%w: code %d for an item", ErrAnswer, code)
		}
	}
	return nil
}

// Unmask is the secret of item i as the quorum's answers give it. It is not
// verified: opening the object does that. It fails with a *NodeError when a node
// refused the item's proof.
func (r *DecryptRound) Unmask(i int) (Opened, error) {
	secret := r.d.headers[i].Masked
	for _, node := range r.quorum.Nodes() {
		body := r.answers[node]
		if code := Code(body[i]); code != CodeOK {
			return Opened{}, &NodeError{Node: node, Err: &Refusal{Code: code}}
		}
		subtle.XORBytes(secret[:], secret[:], body[r.items+i*dprf.MaskSize:])
	}
	return Opened{h: r.d.headers[i], secret: secret}, nil
}

// Compare reports the lies that a detail round shows; nil means none.
func (r *DecryptRound) Compare() *DisputeError { return r.compare(false) }

// Served are the nodes that accepted the proof of item i.
func (r *DecryptRound) Served(i int) (s dprf.Set) {
	for _, node := range r.got.Nodes() {
		if Code(r.answers[node][i]) == CodeOK {
			s |= dprf.SetOf(node)
		}
	}
	return s
}

// Recombine calls try with the secret of item i as every t of the nodes that
// answered in detail give it, at most 1,000 of them, until try reports success. Nodes
// that contradict each other are not combined: t honest nodes agree, and a liar
// contradicts an honest holder of every key that it lies about, so few combinations
// are wrong. When t honest nodes are among them, one of the secrets is right.
func (r *DecryptRound) Recombine(i int, try func(Opened) bool) bool {
	tries := 0
	found := false
	agreeing(r.Served(i), r.layout.T, r.contradictions(i), func(s dprf.Set) bool {
		tries++
		found = try(r.unmaskDetail(i, s))
		return !found && tries < maxTries
	})
	return found
}

// contradictions lists, per node, the nodes that gave another mask for a key that
// both hold.
func (r *DecryptRound) contradictions(i int) []dprf.Set {
	against := make([]dprf.Set, dprf.MaxNodes+1)
	served := r.Served(i)
	for key := range r.layout.Keys() {
		holders := (r.layout.Set(key) & served).Nodes()
		for k, node := range holders {
			value := r.detailValue(node, i, key, false)
			for _, other := range holders[k+1:] {
				if !bytes.Equal(value, r.detailValue(other, i, key, false)) {
					against[node] |= dprf.SetOf(other)
					against[other] |= dprf.SetOf(node)
				}
			}
		}
	}
	return against
}

func (r *DecryptRound) unmaskDetail(i int, s dprf.Set) Opened {
	secret := r.d.headers[i].Masked
	for key := range r.layout.Keys() {
		node := (r.layout.Set(key) & s).Nodes()[0]
		subtle.XORBytes(secret[:], secret[:], r.detailValue(node, i, key, false))
	}
	return Opened{h: r.d.headers[i], secret: secret}
}

// agreeing calls f with the subsets of s of the given size, no two of whose members
// are against each other, until f returns false.
func agreeing(s dprf.Set, size int, against []dprf.Set, f func(dprf.Set) bool) bool {
	if size == 0 {
		return f(0)
	}
	for rest := s; rest.Size() >= size; {
		first := rest & -rest
		rest &^= first
		if !agreeing(rest&^against[first.Nodes()[0]], size-1, against, func(sub dprf.Set) bool { return f(sub | first) }) {
			return false
		}
	}
	return true
}

// Opened is an object's header with its secret unmasked but not verified.
type Opened struct {
	h      *Header
	secret [32]byte
}

// String redacts.
func (o Opened) String() string { return "opened object [redacted]" }

// GoString redacts.
func (o Opened) GoString() string { return o.String() }

// Message decrypts and verifies the body of a message: the plaintext and the
// client that encrypted it, or ErrAuthentication.
func (o *Opened) Message(body, aad []byte) ([]byte, ClientKey, error) {
	if o.h.Kind != KindMessage {
		return nil, ClientKey{}, fmt.Errorf("protocol: the object is a %v, not a message", o.h.Kind)
	}
	return openMessage(o.h, &o.secret, body, aad)
}

// Stream starts decrypting the body of a file or pipe from src. It fails with
// ErrAuthentication when the body does not belong to the secret.
func (o *Opened) Stream(src io.Reader, aad []byte) (*BodyReader, error) {
	if o.h.Kind == KindMessage {
		return nil, fmt.Errorf("protocol: the object is a message, not a stream")
	}
	return newBodyReader(o.h, &o.secret, src, aad)
}

// FitsStream reports whether the secret belongs to a stream's key commitment, the
// first 32 bytes of its body, so that a caller can try several secrets before it
// reads on.
func (o *Opened) FitsStream(commitment []byte) bool {
	rho := Rho(o.secret[:RhoSize])
	defer clear(rho[:])
	want := bodyKey(&rho, labelCommitKey)
	return subtle.ConstantTimeCompare(want[:], commitment) == 1
}

// CommitmentSize is the length of a stream's key commitment.
const CommitmentSize = commitSize
