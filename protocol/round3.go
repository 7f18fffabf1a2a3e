package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gtank/ristretto255"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/labelhash"
	"github.com/seed-a893640b/tae/sig"
	"github.com/seed-a893640b/tae/sig/bls"
)

const labelRho = "tae/v1/rho"

// rhoOf derives an object's secret from its group element M.
func rhoOf(m *ristretto255.Element) Rho {
	h := labelhash.New(labelRho).Fixed(m.Encode(nil)).Sum()
	defer clear(h[:])
	return Rho(h[:RhoSize])
}

// expandPoints draws the M of every item, 64 bytes of the seed's keystream each.
func expandPoints(seed *[32]byte, rhos []Rho) []*ristretto255.Element {
	ctr := seedStream(seed)
	points := make([]*ristretto255.Element, len(rhos))
	var b [64]byte
	defer clear(b[:])
	for i := range points {
		clear(b[:])
		ctr.XORKeyStream(b[:], b[:])
		points[i] = ristretto255.NewElement().FromUniformBytes(b[:])
		rhos[i] = rhoOf(points[i])
	}
	return points
}

// ErrProof marks a node whose answer comes with a proof or signature that does not
// verify: it lies or is broken.
var ErrProof = errors.New("answer does not verify")

// A LieError is a node's lie, with evidence for others where there is any.
type LieError struct {
	Reason   string
	Evidence *Evidence // nil: the answer was not signed, so only the asker knows
}

func (e *LieError) Error() string { return ErrProof.Error() + ": " + e.Reason }

// Unwrap makes errors.Is(err, ErrProof) hold.
func (e *LieError) Unwrap() error { return ErrProof }

func lieError(a *answer3, signed bool, reason string) error {
	e := &LieError{Reason: reason}
	if signed {
		e.Evidence = &Evidence{*a}
	}
	return e
}

// round3 is what TAE3 rounds share: answers do not depend on who else is asked, so a
// round asks more nodes as it needs them.
type round3 struct {
	cert  *Certificate
	asked dprf.Set
	got   dprf.Set // answered well
}

// Quorum is the set of nodes that have been asked.
func (r *round3) Quorum() dprf.Set { return r.asked }

// Extend adds nodes to those asked.
func (r *round3) Extend(q dprf.Set) { r.asked |= q }

// everybody is the quorum that TAE3 requests name: all nodes, whoever is asked.
func everybody(c *Certificate) dprf.Set { return ^dprf.Set(0) >> (64 - c.N) }

func (r *round3) check(node int, answer []byte) ([]byte, error) {
	body, err := OpenAnswer(answer)
	switch {
	case err != nil:
		return nil, err
	case node < 1 || node > r.cert.N || !r.asked.Has(node):
		return nil, fmt.Errorf("%w: not asked", ErrAnswer)
	case r.got.Has(node):
		return nil, fmt.Errorf("%w: answered twice", ErrAnswer)
	}
	return body, nil
}

// A VerifiedEncryptRound collects answers to a TAE3 encryption. Every proof is
// verified as it comes; the signature of t nodes is combined and verified once. Not
// safe for concurrent use.
type VerifiedEncryptRound struct {
	round3
	e       *Encryption
	inputs  *dprf.Inputs
	root    [32]byte
	paths   [][][32]byte
	answers map[int]*answer3
	values  map[int][]*ristretto255.Element
	lies    map[int]error // found when the combined signature was bad
	done    bool
}

// VerifiedRound starts a round of a TAE3 encryption, at first with the nodes of q.
func (e *Encryption) VerifiedRound(q dprf.Set) (*VerifiedEncryptRound, error) {
	if err := e.cert.Prepare(); err != nil {
		return nil, err
	}
	r := &VerifiedEncryptRound{round3: round3{cert: e.cert, asked: q}, e: e, answers: map[int]*answer3{},
		values: map[int][]*ristretto255.Element{}, lies: map[int]error{}}
	ids := make([][dprf.IDSize]byte, len(e.items))
	leaves := make([][32]byte, len(e.items))
	for i := range e.items {
		ids[i] = e.items[i].x
		leaves[i] = merkleLeaf(ModeSealed, &e.items[i].x)
	}
	r.inputs = dprf.NewInputs(ids)
	r.root, r.paths = merkleTree(leaves)
	return r, nil
}

// Request is the request to node, with its own opening and no other.
func (r *VerifiedEncryptRound) Request(node int) []byte {
	return r.e.request(targetOf(r.cert, OpEncrypt, everybody(r.cert), false), node)
}

// Done reports whether the objects are made.
func (r *VerifiedEncryptRound) Done() bool { return r.done }

// Lies are the nodes, other than the one just added, that turned out to have lied.
func (r *VerifiedEncryptRound) Lies() map[int]error { return r.lies }

// Add takes a node's answer and verifies it. An error is a *NodeError. When t answers
// are good the objects are made; what comes later is not looked at.
func (r *VerifiedEncryptRound) Add(node int, answer []byte) error {
	if r.done {
		return nil
	}
	a, values, err := r.open(node, answer)
	if err != nil {
		return &NodeError{Node: node, Err: err}
	}
	r.answers[node], r.values[node] = a, values
	r.got |= dprf.SetOf(node)
	if r.got.Size() < r.cert.T {
		return nil
	}
	if err := r.finish(); err != nil {
		return &NodeError{Node: node, Err: err}
	}
	if err := r.lies[node]; err != nil {
		delete(r.lies, node)
		return &NodeError{Node: node, Err: err}
	}
	return nil
}

func (r *VerifiedEncryptRound) open(node int, answer []byte) (*answer3, []*ristretto255.Element, error) {
	body, err := r.check(node, answer)
	if err != nil {
		return nil, nil, err
	}
	n := r.inputs.Len()
	if len(body) != n*dprf.ElementSize+dprf.ProofSize+bls.SignatureSize+sig.Size {
		return nil, nil, fmt.Errorf("%w: %d bytes for %d items", ErrAnswer, len(body), n)
	}
	a := &answer3{cert: r.cert, op: OpEncrypt, node: node, request: requestHash(r.Request(node)), root: r.root}
	for i := range n {
		a.positions = append(a.positions, uint16(i))
		a.ids = append(a.ids, r.e.items[i].x)
		a.values = append(a.values, [dprf.ElementSize]byte(body[i*dprf.ElementSize:]))
	}
	body = body[n*dprf.ElementSize:]
	a.proof, a.partial = [dprf.ProofSize]byte(body), [bls.SignatureSize]byte(body[dprf.ProofSize:])
	a.signature = [sig.Size]byte(body[dprf.ProofSize+bls.SignatureSize:])
	signed := sig.Verify(r.cert.Members[node-1][:], labelAnswer, a.digest(), a.signature[:])
	values, ok := a.statement(r.inputs).Verify(a.proof[:])
	switch {
	case !ok:
		return nil, nil, lieError(a, signed, "values with a proof that does not verify")
	case !signed:
		return nil, nil, lieError(a, false, "the answer is not signed by the node")
	}
	return a, values, nil
}

// finish combines t answers. When the signature is bad the partial ones are verified,
// and the liars leave the round.
func (r *VerifiedEncryptRound) finish() error {
	quorum := firstOf(r.got, r.cert.T)
	signature, ok := r.signature(quorum)
	if !ok {
		before := r.got
		for _, node := range quorum.Nodes() {
			if a := r.answers[node]; !a.partialGood() {
				r.lies[node] = lieError(a, true, "a partial signature that does not verify")
				r.got &^= dprf.SetOf(node)
				delete(r.answers, node)
			}
		}
		if r.got == before {
			return errors.New("protocol: good partial signatures make a bad signature: the certificate's public polynomial is wrong")
		}
		if r.got.Size() >= r.cert.T {
			return r.finish()
		}
		return nil
	}
	combiner := dprf.NewCombiner(r.cert.Params(), quorum)
	for i := range r.e.items {
		var list []*ristretto255.Element
		for _, node := range quorum.Nodes() {
			list = append(list, r.values[node][i])
		}
		r.seal(i, &signature, combiner.Combine(list))
	}
	r.done = true
	return nil
}

// firstOf returns the count lowest members of s.
func firstOf(s dprf.Set, count int) (q dprf.Set) {
	for _, node := range s.Nodes()[:count] {
		q |= dprf.SetOf(node)
	}
	return q
}

func (r *VerifiedEncryptRound) signature(quorum dprf.Set) (out [bls.SignatureSize]byte, ok bool) {
	var partials []*bls.Signature
	for _, node := range quorum.Nodes() {
		s, err := bls.ParseSignature(r.answers[node].partial[:])
		if err != nil {
			return out, false
		}
		partials = append(partials, s)
	}
	s, err := bls.Combine(quorum.Nodes(), partials)
	c := r.cert
	if err != nil || !c.public.sig.Verify(batchMessage(c.Keyset, c.Suite, c.Epoch, len(r.e.items), &r.root), s) {
		return out, false
	}
	return s.Bytes(), true
}

func (r *VerifiedEncryptRound) seal(i int, signature *[bls.SignatureSize]byte, y *ristretto255.Element) {
	it := &r.e.items[i]
	h := Header{Params: it.params, Epoch: r.cert.Epoch, Source: Source{X0: it.x}, Index: uint16(i), Count: uint16(len(r.e.items))}
	h.Proof = append(h.Proof, signature[:]...)
	for _, step := range r.paths[i] {
		h.Proof = append(h.Proof, step[:]...)
	}
	ristretto255.NewElement().Add(r.e.points[i], y).Encode(h.Masked[:0])
	h.Append(it.object[:0])
}

// A VerifiedDecryptRound collects answers to a TAE3 decryption. Not safe for
// concurrent use.
type VerifiedDecryptRound struct {
	round3
	d       *Decryption
	proofs  bool
	answers map[int]*opened3
}

// opened3 is one node's answer: per item its value, or nil where it refused the item.
type opened3 struct{ values []*ristretto255.Element }

// VerifiedRound starts a round of a TAE3 decryption. Without proofs the answers are
// taken as they come, since the object's commitment shows whether they were right;
// with them every answer is verified and a liar is named.
func (d *Decryption) VerifiedRound(q dprf.Set, proofs bool) (*VerifiedDecryptRound, error) {
	if err := d.cert.Prepare(); err != nil {
		return nil, err
	}
	return &VerifiedDecryptRound{round3: round3{cert: d.cert, asked: q}, d: d, proofs: proofs, answers: map[int]*opened3{}}, nil
}

// Request is the request to every node.
func (r *VerifiedDecryptRound) Request() []byte {
	t := targetOf(r.cert, OpDecrypt, everybody(r.cert), r.proofs)
	b := binary.BigEndian.AppendUint16(t.append(nil), uint16(len(r.d.headers)))
	for i, h := range r.d.headers {
		b = append(b, r.d.ids[i][:]...)
		b = binary.BigEndian.AppendUint16(b, h.Index)
		b = binary.BigEndian.AppendUint16(b, h.Count)
		b = append(b, h.Proof...)
	}
	return b
}

// Done reports whether every item is decided: t nodes serve it, or t refuse its
// proof, of which one at least is honest.
func (r *VerifiedDecryptRound) Done() bool {
	if r.got.Size() < r.cert.T {
		return false
	}
	for i := range r.d.headers {
		served := r.Served(i).Size()
		if served < r.cert.T && r.got.Size()-served < r.cert.T {
			return false
		}
	}
	return true
}

// Add takes a node's answer. An error is a *NodeError.
func (r *VerifiedDecryptRound) Add(node int, answer []byte) error {
	o, err := r.open(node, answer)
	if err != nil {
		return &NodeError{Node: node, Err: err}
	}
	r.answers[node] = o
	r.got |= dprf.SetOf(node)
	return nil
}

func (r *VerifiedDecryptRound) open(node int, answer []byte) (*opened3, error) {
	body, err := r.check(node, answer)
	if err != nil {
		return nil, err
	}
	n := len(r.d.headers)
	size := n * (1 + dprf.ElementSize)
	if r.proofs {
		size += dprf.ProofSize + sig.Size
	}
	if len(body) != size {
		return nil, fmt.Errorf("%w: %d bytes for %d items", ErrAnswer, len(body), n)
	}
	codes, values := body[:n], body[n:]
	o := &opened3{values: make([]*ristretto255.Element, n)}
	a := &answer3{cert: r.cert, op: OpDecrypt, node: node}
	for i, code := range codes {
		switch Code(code) {
		case CodeOK:
			v := [dprf.ElementSize]byte(values[i*dprf.ElementSize:])
			a.positions, a.ids, a.values = append(a.positions, uint16(i)), append(a.ids, r.d.ids[i]), append(a.values, v)
			if o.values[i], err = dprf.ParseElement(v[:]); err != nil && !r.proofs {
				return nil, lieError(a, false, "a value that is no group element")
			}
		case CodeBadProof:
		default:
			return nil, fmt.Errorf("%w: code %d for an item", ErrAnswer, code)
		}
	}
	if !r.proofs {
		return o, nil
	}
	a.request = requestHash(r.Request())
	tail := values[n*dprf.ElementSize:]
	a.proof, a.signature = [dprf.ProofSize]byte(tail), [sig.Size]byte(tail[dprf.ProofSize:])
	return o, a.verify()
}

// verify checks signature and proof of a decrypt answer.
func (a *answer3) verify() error {
	signed := sig.Verify(a.cert.Members[a.node-1][:], labelAnswer, a.digest(), a.signature[:])
	if len(a.ids) > 0 {
		if _, ok := a.statement(dprf.NewInputs(a.ids)).Verify(a.proof[:]); !ok {
			return lieError(a, signed, "values with a proof that does not verify")
		}
	}
	if !signed {
		return lieError(a, false, "the answer is not signed by the node")
	}
	return nil
}

// Served are the nodes that accepted the proof of item i.
func (r *VerifiedDecryptRound) Served(i int) (s dprf.Set) {
	for node, o := range r.answers {
		if o.values[i] != nil {
			s |= dprf.SetOf(node)
		}
	}
	return s
}

// Unmask combines t answers to item i. It fails with a *NodeError when too few nodes
// accepted its proof. The result is not verified: opening the object does that.
func (r *VerifiedDecryptRound) Unmask(i int) (Opened, error) {
	served := r.Served(i)
	if served.Size() < r.cert.T {
		refused := (r.got &^ served).Nodes()
		if len(refused) == 0 {
			return Opened{}, fmt.Errorf("%w: %d nodes answered, %d are needed", ErrAnswer, r.got.Size(), r.cert.T)
		}
		return Opened{}, &NodeError{Node: refused[0], Err: &Refusal{Code: CodeBadProof}}
	}
	h := r.d.headers[i]
	e, err := dprf.ParseElement(h.Masked[:])
	if err != nil {
		return Opened{}, ErrAuthentication
	}
	quorum := firstOf(served, r.cert.T)
	var list []*ristretto255.Element
	for _, node := range quorum.Nodes() {
		list = append(list, r.answers[node].values[i])
	}
	y := dprf.NewCombiner(r.cert.Params(), quorum).Combine(list)
	m := ristretto255.NewElement().Subtract(e, y)
	rho := rhoOf(m)
	defer clear(rho[:])
	o := Opened{h: h}
	copy(o.secret[:], rho[:])
	return o, nil
}
