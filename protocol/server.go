package protocol

import (
	"encoding/binary"
	"errors"

	"github.com/seed-a893640b/tae/dprf"
)

// EpochState is the state of an epoch's keys at a node.
type EpochState uint8

// An epoch is served for encryption while active, and for decryption while active
// or retired.
const (
	EpochActive  EpochState = 1
	EpochRetired EpochState = 2
)

func (s EpochState) String() string {
	switch s {
	case EpochActive:
		return "active"
	case EpochRetired:
		return "retired"
	}
	return "unknown"
}

// An Epoch is what a node holds of one epoch.
type Epoch struct {
	Certificate *Certificate
	Encoded     []byte      // the certificate as it is sent
	Share       *dprf.Share // TAE1
	State       EpochState
	TAE3        *TAE3Epoch
}

// A ServedKeyset is what a node holds of one keyset.
type ServedKeyset struct {
	Active *Epoch
	Epochs map[uint16]*Epoch
	// Damaged, when not empty, says why the keyset cannot be served here. Then only
	// Active.Certificate may be set.
	Damaged string
}

// A Gate decides whether caller may do op on items objects of the keyset, and
// accounts for it. It returns nil to allow. Every node has its own; no other
// party's word counts.
type Gate func(caller Caller, keyset string, op Op, items int) *Refusal

// A Server answers clients' requests from a fixed set of epochs. It is immutable
// and safe for concurrent use as far as its gate is; a node replaces it as a
// whole when an epoch changes.
type Server struct {
	node    int
	gate    Gate
	keysets map[KeysetID]*ServedKeyset
}

// NewServer returns the server of a node. The arguments must not be changed
// afterwards.
func NewServer(node int, gate Gate, keysets map[KeysetID]*ServedKeyset) *Server {
	return &Server{node: node, gate: gate, keysets: keysets}
}

// Handle answers one request. It is total: any bytes give an answer.
func (s *Server) Handle(caller Caller, req []byte) []byte {
	answer, err := s.handle(caller, req)
	if err == nil {
		return answer
	}
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		refusal = &Refusal{Code: CodeMalformed, Text: err.Error()}
	}
	return refusal.Append(nil)
}

func (s *Server) handle(caller Caller, req []byte) ([]byte, error) {
	if len(req) >= 1 && req[0] != wireVersion {
		return nil, refuse(CodeVersion, "request version %d, this node speaks %d", req[0], wireVersion)
	}
	switch RequestOp(req) {
	case opKeysets:
		return s.handleKeysets(caller, req)
	case OpEncrypt, OpDecrypt:
		return s.handleObjects(caller, req)
	case OpRotate:
		return nil, refuse(CodeMode, "this node does not rotate objects")
	}
	return nil, errors.New("unknown operation")
}

// handleKeysets lists the keysets on which the caller may do anything.
func (s *Server) handleKeysets(caller Caller, req []byte) ([]byte, error) {
	name, err := readKeysetsRequest(req)
	if err != nil {
		return nil, err
	}
	answer := []byte{wireVersion, byte(CodeOK), 0, 0}
	count := 0
	for _, k := range s.keysets {
		if k.Active == nil || name != "" && k.Active.Certificate.Name != name {
			continue
		}
		if !s.mayUse(caller, k.Active.Certificate.Name) {
			if name != "" {
				return nil, refuse(CodeDenied, "no right on keyset %s", name)
			}
			continue
		}
		answer = binary.BigEndian.AppendUint32(answer, uint32(len(k.Active.Encoded)))
		answer = append(answer, k.Active.Encoded...)
		count++
	}
	if name != "" && count == 0 {
		return nil, refuse(CodeUnknownKeyset, "no keyset named %s here", name)
	}
	binary.BigEndian.PutUint16(answer[2:], uint16(count))
	return answer, nil
}

func (s *Server) mayUse(caller Caller, name string) bool {
	for _, op := range []Op{OpEncrypt, OpDecrypt, OpRotate} {
		if s.gate(caller, name, op, 0) == nil {
			return true
		}
	}
	return false
}

// handleObjects checks a request in the order of section 8.4 and answers it.
func (s *Server) handleObjects(caller Caller, req []byte) ([]byte, error) {
	t, rest, err := readTarget(req)
	if err != nil {
		return nil, err
	}
	k := s.keysets[t.keyset]
	if k == nil {
		return nil, refuse(CodeUnknownKeyset, "no keyset %v here", t.keyset)
	}
	if k.Damaged != "" {
		return nil, refuse(CodeNotServing, "%s", k.Damaged)
	}
	newest := k.Active
	name := newest.Certificate.Name
	// The right is checked before anything that tells about epochs.
	if refusal := s.gate(caller, name, t.op, 0); refusal != nil {
		return nil, refusal
	}
	e, err := k.epochFor(&t)
	if err != nil {
		return nil, err
	}
	cert := e.Certificate
	if !cert.Modes.Has(t.mode) || t.mode != ModeSealed {
		return nil, refuse(CodeMode, "mode %v is not served; keyset %s offers %v", t.mode, name, cert.Modes.List())
	}
	if !t.quorum.Has(s.node) {
		return nil, refuse(CodeBadQuorum, "node %d is not in quorum %v", s.node, t.quorum)
	}
	if t.suite == SuiteTAE3 {
		if err := cert.Params().CheckQuorum(t.quorum); err != nil {
			return nil, refuse(CodeBadQuorum, "%v", err)
		}
		return s.handleTAE3(caller, e, &t, req, rest)
	}
	assigned, err := s.answerFor(e, &t)
	if err != nil {
		return nil, refuse(CodeBadQuorum, "%v", err)
	}
	if t.op == OpEncrypt {
		return s.encrypt(caller, e, &t, assigned, rest)
	}
	return s.decrypt(caller, e, &t, assigned, rest)
}

// epochFor finds the epoch that the request names, exactly.
func (k *ServedKeyset) epochFor(t *target) (*Epoch, error) {
	newest := k.Active
	e := k.Epochs[t.epoch]
	var refusal *Refusal
	switch {
	case t.suite != newest.Certificate.Suite:
		return nil, refuse(CodeMalformed, "keyset %s is of suite %v", newest.Certificate.Name, newest.Certificate.Suite)
	case e == nil || e.Certificate.Attempt != t.attempt:
		refusal = refuse(CodeUnknownEpoch, "epoch %d attempt %d is not held here; epoch %d is active", t.epoch, t.attempt, newest.Certificate.Epoch)
	case e.Certificate.Generation != t.generation:
		refusal = refuse(CodeGeneration, "generation %d is not held here", t.generation)
	case t.op == OpEncrypt && e.State != EpochActive:
		refusal = refuse(CodeEpochRetired, "epoch %d is retired; epoch %d is active", t.epoch, newest.Certificate.Epoch)
	default:
		return e, nil
	}
	refusal.Certificate = newest.Encoded
	return nil, refusal
}

// answerFor lists the keys that this node answers for: those assigned to it, or in
// detail all that it holds.
func (s *Server) answerFor(e *Epoch, t *target) ([]int, error) {
	layout := e.Share.Layout()
	if t.detail {
		return layout.HeldBy(s.node), layout.CheckQuorum(t.quorum)
	}
	a, err := layout.Assign(t.quorum)
	if err != nil {
		return nil, err
	}
	return a.Keys(s.node), nil
}

// openEncrypt is what both suites check of an encrypt request, in the order of section
// 8.4, and the context that the identities of its items hash.
func (s *Server) openEncrypt(caller Caller, cert *Certificate, rest []byte, itemSize int) (r encryptRequest, context [32]byte, err error) {
	if r, err = readEncrypt(rest, cert.N); err != nil {
		return r, context, err
	}
	if r.items > int(cert.Limits.MaxBatch) {
		return r, context, refuse(CodeTooLarge, "%d items, at most %d are allowed in one request", r.items, cert.Limits.MaxBatch)
	}
	if err := checkAnswerSize(r.items * itemSize); err != nil {
		return r, context, err
	}
	if !r.checkOpening(s.node) {
		return r, context, refuse(CodeBadOpening, "the secret does not open the commitment of node %d", s.node)
	}
	if refusal := s.gate(caller, cert.Name, OpEncrypt, r.items); refusal != nil {
		return r, context, refusal
	}
	openings := openingsHash(r.commitments)
	return r, sessionContext(cert.Keyset, cert.Suite, caller.Key, &openings), nil
}

// encrypt answers with masks and tags for identities that no other party could
// have asked for: they hash the authenticated caller and the openings, of which
// every node sees only its own.
func (s *Server) encrypt(caller Caller, e *Epoch, t *target, keys []int, rest []byte) ([]byte, error) {
	r, context, err := s.openEncrypt(caller, e.Certificate, rest, encryptItemSize(len(keys), t.detail))
	if err != nil {
		return nil, err
	}
	answer := make([]byte, 2, 2+r.items*encryptItemSize(len(keys), t.detail))
	answer[0], answer[1] = wireVersion, byte(CodeOK)
	var sc dprf.Scratch
	for i := range r.items {
		x := freshIdentity(&context, (*[32]byte)(r.w[32*i:]))
		answer = appendMasks(answer, e.Share, &sc, &x, keys, t.detail)
		answer = appendTags(answer, e.Share, &sc, t.mode, &x, keys)
	}
	return answer, nil
}

// checkAnswerSize refuses work whose answer no frame could carry: in keysets with
// many keys a short request would else cost hundreds of megabytes.
func checkAnswerSize(size int) error {
	if size > MaxAnswer {
		return refuse(CodeTooLarge, "the answer would have %d bytes, at most %d are possible; ask for fewer items", size, MaxAnswer)
	}
	return nil
}

// encryptItemSize is the length of an item in an encrypt answer.
func encryptItemSize(keys int, detail bool) int {
	return maskItemSize(keys, detail) + keys*dprf.TagSize
}

func maskItemSize(keys int, detail bool) int {
	if detail {
		return keys * dprf.MaskSize
	}
	return dprf.MaskSize
}

// appendMasks appends the XOR of the masks under keys or, in detail, each of them.
func appendMasks(b []byte, share *dprf.Share, sc *dprf.Scratch, id *Identity, keys []int, detail bool) []byte {
	var mask [dprf.MaskSize]byte
	for _, key := range keys {
		if detail {
			mask = [dprf.MaskSize]byte{}
		}
		share.AddMask(sc, &mask, (*[32]byte)(id), key)
		if detail {
			b = append(b, mask[:]...)
		}
	}
	if !detail {
		b = append(b, mask[:]...)
	}
	return b
}

func appendTags(b []byte, share *dprf.Share, sc *dprf.Scratch, mode Mode, id *Identity, keys []int) []byte {
	var tag [dprf.TagSize]byte
	for _, key := range keys {
		share.Tag(sc, &tag, uint8(mode), (*[32]byte)(id), key)
		b = append(b, tag[:]...)
	}
	return b
}

// decrypt answers per item: a code, and the masks of the items whose tags all
// verify. It verifies every tag that it can, not only the assigned ones: together
// with t-1 other honest nodes that is all of them.
func (s *Server) decrypt(caller Caller, e *Epoch, t *target, keys []int, rest []byte) ([]byte, error) {
	cert := e.Certificate
	items, count, size, err := readDecrypt(rest, e.Share.Layout().Keys())
	if err != nil {
		return nil, err
	}
	if count > int(cert.Limits.MaxBatch) {
		return nil, refuse(CodeTooLarge, "%d items, at most %d are allowed in one request", count, cert.Limits.MaxBatch)
	}
	if err := checkAnswerSize(count * (1 + maskItemSize(len(keys), t.detail))); err != nil {
		return nil, err
	}
	if refusal := s.gate(caller, cert.Name, OpDecrypt, count); refusal != nil {
		return nil, refusal
	}
	answer := make([]byte, 2+count, 2+count+count*maskItemSize(len(keys), t.detail))
	answer[0], answer[1] = wireVersion, byte(CodeOK)
	var sc dprf.Scratch
	for i := range count {
		item := items[i*size:][:size]
		id := Identity(item)
		if !e.Share.VerifyTags(&sc, uint8(t.mode), (*[32]byte)(&id), item[dprf.IDSize:]) {
			answer[2+i] = byte(CodeBadProof)
			answer = append(answer, make([]byte, maskItemSize(len(keys), t.detail))...)
			continue
		}
		answer = appendMasks(answer, e.Share, &sc, &id, keys, t.detail)
	}
	return answer, nil
}
