package protocol

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/labelhash"
	"github.com/seed-a893640b/tae/sig"
	"github.com/seed-a893640b/tae/sig/bls"
)

const (
	labelRequest = "tae/v1/request"
	labelAnswer  = "tae/v1/answer"
)

// A TAE3Epoch is what a node holds of a TAE3 epoch.
type TAE3Epoch struct {
	Share  *dprf.DDHShare
	SigKey *bls.KeyShare
	// NodeKey signs answers with proofs, so that a lie can be shown to others.
	NodeKey ed25519.PrivateKey
}

// answer3 is an answer with a proof: what its node signs.
type answer3 struct {
	cert      *Certificate
	op        Op
	node      int
	request   [32]byte // hash of the request
	positions []uint16
	ids       [][dprf.IDSize]byte
	values    [][dprf.ElementSize]byte
	proof     [dprf.ProofSize]byte
	partial   [bls.SignatureSize]byte // encrypt only, on root
	root      [32]byte
	signature [sig.Size]byte
}

func requestHash(req []byte) [32]byte { return labelhash.New(labelRequest).Fixed(req).Sum() }

// statement is what the proof is about.
func (a *answer3) statement(in *dprf.Inputs) *dprf.Statement {
	c := a.cert
	return &dprf.Statement{Operation: uint8(a.op), Keyset: c.Keyset, Suite: uint8(c.Suite), Epoch: c.Epoch, Generation: c.Generation,
		Node: uint8(a.node), Public: c.public.proven[a.node], Positions: a.positions, Inputs: in, Values: a.values}
}

// digest is what the node signs. The request is in it as a hash only: its openings
// and commitments must not travel with evidence. The attempt is in it, or a member could
// complete the certificate of an abandoned attempt for itself and convict with it whoever
// answers under the next.
func (a *answer3) digest() [32]byte {
	c := a.cert
	h := labelhash.New(labelAnswer).Byte(byte(a.op)).Fixed(c.Keyset[:]).Byte(byte(c.Suite)).Uint16(c.Epoch).
		Uint16(c.Attempt).Uint32(c.Generation).Byte(byte(a.node)).Fixed(a.request[:]).Uint16(uint16(len(a.ids)))
	for i := range a.ids {
		h.Uint16(a.positions[i]).Fixed(a.ids[i][:]).Fixed(a.values[i][:])
	}
	return h.Fixed(a.proof[:]).Fixed(a.partial[:]).Fixed(a.root[:]).Sum()
}

func (s *Server) handleTAE3(caller Caller, e *Epoch, t *target, req, rest []byte) ([]byte, error) {
	if t.op == OpEncrypt {
		return s.encrypt3(caller, e, req, rest)
	}
	return s.decrypt3(caller, e, t, req, rest)
}

// encrypt3 answers with a value per item, one proof for all of them, and one partial
// signature on the root of their identities. All or nothing: a proof over part of a
// request would be a proof of another request.
func (s *Server) encrypt3(caller Caller, e *Epoch, req, rest []byte) ([]byte, error) {
	cert := e.Certificate
	r, context, err := s.openEncrypt(caller, cert, rest, dprf.ElementSize)
	if err != nil {
		return nil, err
	}
	a := answer3{cert: cert, op: OpEncrypt, node: s.node, request: requestHash(req)}
	leaves := make([][32]byte, r.items)
	seen := make(map[Identity]bool, r.items)
	for i := range r.items {
		x := freshIdentity(&context, (*[32]byte)(r.w[32*i:]))
		// Equal items would have equal values, whose weights in the proof add up.
		if seen[x] {
			return nil, fmt.Errorf("item %d is the same as an earlier one", i)
		}
		seen[x] = true
		a.ids, a.positions = append(a.ids, x), append(a.positions, uint16(i))
		leaves[i] = merkleLeaf(ModeSealed, &x)
	}
	in := dprf.NewInputs(a.ids)
	a.values = e.TAE3.Share.Evaluate(in)
	a.proof = e.TAE3.Share.Prove(a.statement(in))
	a.root, _ = merkleTree(leaves)
	partial, err := e.TAE3.SigKey.Sign(batchMessage(cert.Keyset, cert.Suite, cert.Epoch, r.items, &a.root))
	if err != nil {
		return nil, refuse(CodeInternal, "signing failed")
	}
	a.partial = partial.Bytes()
	signature := sig.Sign(e.TAE3.NodeKey, labelAnswer, a.digest())
	answer := []byte{wireVersion, byte(CodeOK)}
	for i := range a.values {
		answer = append(answer, a.values[i][:]...)
	}
	return append(append(append(answer, a.proof[:]...), a.partial[:]...), signature[:]...), nil
}

// item3 is one item of a decrypt request.
type item3 struct {
	id           Identity
	index, count uint16
	proof        []byte // signature, then path
}

// readDecrypt3 parses the items of a decrypt request.
func readDecrypt3(b []byte, most int) ([]item3, error) {
	if len(b) < 2 {
		return nil, fmt.Errorf("items are cut off")
	}
	count := int(binary.BigEndian.Uint16(b))
	b = b[2:]
	if count > most {
		return nil, refuse(CodeTooLarge, "%d items, at most %d are allowed in one request", count, most)
	}
	items := make([]item3, 0, min(count, len(b)/(dprf.IDSize+4+bls.SignatureSize)))
	for range count {
		if len(b) < dprf.IDSize+4 {
			return nil, fmt.Errorf("items are cut off")
		}
		it := item3{id: Identity(b), index: binary.BigEndian.Uint16(b[32:]), count: binary.BigEndian.Uint16(b[34:])}
		if it.index >= it.count || it.count > MaxBatchLimit {
			return nil, fmt.Errorf("an item claims to be %d of %d", it.index, it.count)
		}
		size := batchProofSize(it.index, it.count)
		if b = b[36:]; len(b) < size {
			return nil, fmt.Errorf("items are cut off")
		}
		it.proof, b = b[:size], b[size:]
		items = append(items, it)
	}
	if len(items) == 0 || len(b) != 0 {
		return nil, fmt.Errorf("wrong length for the number of items")
	}
	return items, nil
}

// decrypt3 answers per item: a code, and the values of those whose signature
// verifies. With detail it proves the values and signs the answer; without, the
// client's commitment decides.
func (s *Server) decrypt3(caller Caller, e *Epoch, t *target, req, rest []byte) ([]byte, error) {
	cert := e.Certificate
	items, err := readDecrypt3(rest, int(cert.Limits.MaxBatch))
	if err != nil {
		return nil, err
	}
	if refusal := s.gate(caller, cert.Name, OpDecrypt, len(items)); refusal != nil {
		return nil, refusal
	}
	good, err := cert.verifyProofs(items)
	if err != nil {
		return nil, refuse(CodeInternal, "verification failed")
	}
	a := answer3{cert: cert, op: OpDecrypt, node: s.node, request: requestHash(req)}
	answer := append([]byte{wireVersion, byte(CodeOK)}, make([]byte, len(items)*(1+dprf.ElementSize))...)
	codes, values := answer[2:2+len(items)], answer[2+len(items):]
	for i := range items {
		if !good[i] {
			codes[i] = byte(CodeBadProof)
			continue
		}
		a.ids, a.positions = append(a.ids, items[i].id), append(a.positions, uint16(i))
	}
	if len(a.ids) > 0 {
		in := dprf.NewInputs(a.ids)
		a.values = e.TAE3.Share.Evaluate(in)
		for k, at := range a.positions {
			copy(values[int(at)*dprf.ElementSize:], a.values[k][:])
		}
		if t.detail {
			a.proof = e.TAE3.Share.Prove(a.statement(in))
		}
	}
	if t.detail {
		signature := sig.Sign(e.TAE3.NodeKey, labelAnswer, a.digest())
		answer = append(append(answer, a.proof[:]...), signature[:]...)
	}
	return answer, nil
}

// verifyProofs checks the signatures of many objects together. Objects of one request
// share theirs, which is then checked once.
func (c *Certificate) verifyProofs(items []item3) ([]bool, error) {
	good := make([]bool, len(items))
	which := make([]int, len(items)) // place among the distinct ones, or -1
	at := map[string]int{}
	var messages [][]byte
	var signatures []*bls.Signature
	for i, it := range items {
		leaf := merkleLeaf(ModeSealed, &it.id)
		root := merkleRoot(leaf, int(it.index), int(it.count), it.proof[bls.SignatureSize:])
		m := batchMessage(c.Keyset, c.Suite, c.Epoch, int(it.count), &root)
		key := string(m) + string(it.proof[:bls.SignatureSize])
		k, ok := at[key]
		if !ok {
			k = -1
			if s, err := bls.ParseSignature(it.proof[:bls.SignatureSize]); err == nil {
				k = len(messages)
				messages, signatures = append(messages, m), append(signatures, s)
			}
			at[key] = k
		}
		which[i] = k
	}
	results, err := c.public.sig.VerifyBatch(messages, signatures)
	if err != nil {
		return nil, err
	}
	for i, k := range which {
		good[i] = k >= 0 && results[k]
	}
	return good, nil
}

// Evidence is a lie that a third party can check: a node's signed answer with a proof
// or a partial signature that does not verify. It holds no mask, no opening and only
// one node's values.
type Evidence struct{ answer answer3 }

const (
	evidenceMagic   = "TAEB"
	evidenceVersion = 1
)

// Node is the node that is proven to have lied.
func (e *Evidence) Node() int { return e.answer.node }

// Certificate is that of the epoch the lie was told in.
func (e *Evidence) Certificate() *Certificate { return e.answer.cert }

// Append appends the canonical encoding.
func (e *Evidence) Append(b []byte) []byte {
	a := &e.answer
	cert := a.cert.Append(nil)
	b = append(append(b, evidenceMagic...), evidenceVersion)
	b = binary.BigEndian.AppendUint32(b, uint32(len(cert)))
	b = append(append(b, cert...), byte(a.op), byte(a.node))
	b = append(b, a.request[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(a.ids)))
	for i := range a.ids {
		b = binary.BigEndian.AppendUint16(b, a.positions[i])
		b = append(append(b, a.ids[i][:]...), a.values[i][:]...)
	}
	b = append(append(append(b, a.proof[:]...), a.partial[:]...), a.root[:]...)
	return append(b, a.signature[:]...)
}

// ParseEvidence parses evidence; Verify decides whether it convicts.
func ParseEvidence(b []byte) (*Evidence, error) {
	bad := fmt.Errorf("protocol: not evidence of this format")
	head := len(evidenceMagic) + 1 + 4
	if len(b) < head || string(b[:len(evidenceMagic)]) != evidenceMagic || b[len(evidenceMagic)] != evidenceVersion {
		return nil, bad
	}
	size := uint64(binary.BigEndian.Uint32(b[head-4:]))
	b = b[head:]
	if size > uint64(len(b)) {
		return nil, bad
	}
	cert, err := ParseCertificate(b[:size])
	if err != nil {
		return nil, err
	}
	if b = b[size:]; len(b) < 2+32+2 || cert.Suite != SuiteTAE3 {
		return nil, bad
	}
	e := &Evidence{answer3{cert: cert, op: Op(b[0]), node: int(b[1]), request: [32]byte(b[2:])}}
	a := &e.answer
	count := int(binary.BigEndian.Uint16(b[34:]))
	b = b[36:]
	const item = 2 + dprf.IDSize + dprf.ElementSize
	const tail = dprf.ProofSize + bls.SignatureSize + 32 + sig.Size
	if count < 1 || count > MaxBatchLimit || len(b) != count*item+tail || a.node < 1 || a.node > cert.N || a.op != OpEncrypt && a.op != OpDecrypt {
		return nil, bad
	}
	for i := range count {
		p := b[i*item:]
		a.positions = append(a.positions, binary.BigEndian.Uint16(p))
		a.ids = append(a.ids, [dprf.IDSize]byte(p[2:]))
		a.values = append(a.values, [dprf.ElementSize]byte(p[2+dprf.IDSize:]))
	}
	r := bytes.NewReader(b[count*item:])
	for _, out := range [][]byte{a.proof[:], a.partial[:], a.root[:], a.signature[:]} {
		_, _ = r.Read(out) // the length was checked
	}
	return e, nil
}

// Verify checks evidence against the members' keys of one's own configuration. It
// returns what the node did; an error means that the evidence convicts nobody.
func (e *Evidence) Verify(members [][32]byte) (string, error) {
	a := &e.answer
	if err := a.cert.Verify(members); err != nil {
		return "", err
	}
	if !sig.Verify(members[a.node-1][:], labelAnswer, a.digest(), a.signature[:]) {
		return "", fmt.Errorf("protocol: the answer is not signed by node %d", a.node)
	}
	if err := a.cert.Prepare(); err != nil {
		return "", err
	}
	if _, ok := a.statement(dprf.NewInputs(a.ids)).Verify(a.proof[:]); !ok {
		return "signed values with a proof that does not verify", nil
	}
	if a.op == OpEncrypt && !a.rootFits() {
		return "signed another root than that of the identities", nil
	}
	if a.op == OpEncrypt && !a.partialGood() {
		return "signed an answer with a partial signature that does not verify", nil
	}
	return "", fmt.Errorf("protocol: the answer of node %d is right", a.node)
}

func (a *answer3) rootFits() bool {
	leaves := make([][32]byte, len(a.ids))
	for i := range a.ids {
		leaves[i] = merkleLeaf(ModeSealed, (*Identity)(&a.ids[i]))
	}
	root, _ := merkleTree(leaves)
	return root == a.root
}

// partialGood verifies the partial signature under the node's public share.
func (a *answer3) partialGood() bool {
	key, err := a.cert.partialKey(a.node)
	if err != nil {
		return false
	}
	s, err := bls.ParseSignature(a.partial[:])
	c := a.cert
	return err == nil && key.Verify(batchMessage(c.Keyset, c.Suite, c.Epoch, len(a.ids), &a.root), s)
}
