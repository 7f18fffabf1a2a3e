package protocol

import (
	"crypto/ed25519"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/gtank/ristretto255"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/labelhash"
)

// A Message is one item to encrypt, at most MaxMessage bytes.
type Message struct{ Plaintext, AAD []byte }

// An Encryption is one encrypt request: the objects in the making and the secret
// that ties the request to the nodes it is shown to. It serves every retry, hedge
// and quorum of the request; Wipe erases its secrets. Not safe for concurrent use.
type Encryption struct {
	cert   *Certificate
	layout *dprf.Layout
	author *Author
	open   *openings
	items  []sealing
	rhos   []Rho
	points []*ristretto255.Element // TAE3: the M of each item, of which rho is a hash
}

// sealing is one object in the making.
type sealing struct {
	params Params
	w      [32]byte
	x      Identity
	object []byte // room for the header, then a message's body
}

// newEncryption takes the secret b of the openings; it does not keep it.
func newEncryption(cert *Certificate, author *Author, items int, b *[32]byte) *Encryption {
	e := &Encryption{cert: cert, author: author, open: newOpenings(b, cert.N), items: make([]sealing, items), rhos: make([]Rho, items)}
	if cert.Suite == SuiteTAE1 {
		e.layout = cert.Layout()
	}
	return e
}

// draw makes the secrets of all items from the seed.
func (e *Encryption) draw(seed *[32]byte) {
	if e.cert.Suite == SuiteTAE3 {
		e.points = expandPoints(seed, e.rhos)
		return
	}
	expand(seed, e.rhos)
}

// born is the birth epoch under the mask; in TAE3 it is zero.
func (e *Encryption) born() uint16 {
	if e.cert.Suite == SuiteTAE3 {
		return 0
	}
	return e.cert.Epoch
}

// headerSize is the length of the header of item i.
func (e *Encryption) headerSize(i int) int {
	if e.cert.Suite == SuiteTAE3 {
		return batchHeaderSize(uint16(i), uint16(len(e.items)))
	}
	return SealedHeaderSize(e.cert.Params())
}

func (e *Encryption) params(kind Kind) Params {
	return Params{Suite: e.cert.Suite, Mode: ModeSealed, Kind: kind, Layers: e.cert.Layers, Keyset: e.cert.Keyset}
}

// EncryptMessages starts the encryption of messages under the certified epoch, at
// least one and at most Limits.MaxBatch.
func EncryptMessages(cert *Certificate, author *Author, messages []Message) (*Encryption, error) {
	if len(messages) == 0 || len(messages) > int(cert.Limits.MaxBatch) {
		return nil, fmt.Errorf("protocol: %d messages in one request, allowed are 1 to %d", len(messages), cert.Limits.MaxBatch)
	}
	b := author.seed(labelSeedOpenings).Sum()
	seed := author.seed(labelSeedMessages)
	for i := range messages {
		if len(messages[i].Plaintext) > MaxMessage {
			return nil, fmt.Errorf("message %d: %w", i, ErrTooLarge)
		}
		seed.Var(messages[i].Plaintext)
	}
	sum := seed.Sum()
	defer clear(sum[:])
	defer clear(b[:])
	return encryptMessages(cert, author, messages, &b, &sum), nil
}

// encryptMessages is EncryptMessages with the secrets given.
func encryptMessages(cert *Certificate, author *Author, messages []Message, b, seed *[32]byte) *Encryption {
	e := newEncryption(cert, author, len(messages), b)
	e.draw(seed)
	context := sessionContext(cert.Keyset, cert.Suite, author.Key, &e.open.r)
	params := e.params(KindMessage)
	var ad [32]byte
	for i := range messages {
		m := &messages[i]
		// The items of a batch often share their associated data.
		if i == 0 || string(m.AAD) != string(messages[i-1].AAD) {
			ad = aadHash(&params, m.AAD)
		}
		it := &e.items[i]
		it.params = params
		header := e.headerSize(i)
		object := make([]byte, header, header+preludeSize+len(m.Plaintext))
		var body [32]byte
		it.object, body = sealMessage(object, &e.rhos[i], &author.Key, &e.open.r, m.Plaintext)
		it.w = freshCommitment(&e.rhos[i], e.born(), &body, &ad)
		it.x = freshIdentity(&context, &it.w)
	}
	return e
}

// A Stream is the encryption of one file or pipe. A pipe's header comes before
// its body, a file's after it. Not safe for concurrent use.
type Stream struct {
	*Encryption
	aad []byte
	*BodyWriter
}

// StreamHints hedge the secret of a stream against bad system randomness: what is
// known of the data before it is read. All may be empty.
type StreamHints struct {
	FirstChunk []byte
	Name       string
	Size       int64
	ModTime    int64 // nanoseconds since 1970
}

// streamSeeds draws the secrets of a stream: b of the openings and the seed.
func streamSeeds(author *Author, kind Kind, hints *StreamHints) (b, seed [32]byte) {
	return author.seed(labelSeedOpenings).Sum(), author.seed(labelSeedStream).Byte(byte(kind)).Var(hints.FirstChunk).
		Var([]byte(hints.Name)).Uint64(uint64(hints.Size)).Uint64(uint64(hints.ModTime)).Sum()
}

func newStream(cert *Certificate, author *Author, kind Kind, aad []byte, b, seed *[32]byte) *Stream {
	s := &Stream{Encryption: newEncryption(cert, author, 1, b), aad: aad}
	s.items[0].params = s.params(kind)
	s.items[0].object = make([]byte, s.headerSize(0))
	s.draw(seed)
	return s
}

func (s *Stream) commit(body *[32]byte) {
	it := &s.items[0]
	ad := aadHash(&it.params, s.aad)
	it.w = freshCommitment(&s.rhos[0], s.born(), body, &ad)
	context := sessionContext(s.cert.Keyset, s.cert.Suite, s.author.Key, &s.open.r)
	it.x = freshIdentity(&context, &it.w)
}

// NewFile starts a file: body is where the bytes after the header go. Write the
// data, call FinishBody, run the round, and put the header in its place.
func NewFile(cert *Certificate, author *Author, aad []byte, hints *StreamHints, body io.Writer) (*Stream, error) {
	b, seed := streamSeeds(author, KindFile, hints)
	defer clear(b[:])
	defer clear(seed[:])
	return newFile(cert, author, aad, body, &b, &seed)
}

func newFile(cert *Certificate, author *Author, aad []byte, body io.Writer, b, seed *[32]byte) (*Stream, error) {
	s := newStream(cert, author, KindFile, aad, b, seed)
	w, err := newBodyWriter(body, KindFile, &s.rhos[0], &author.Key, &s.open.r)
	if err != nil {
		return nil, err
	}
	s.BodyWriter = w
	return s, nil
}

// FinishBody writes the last chunk of a file and commits to the body. Only then
// may the round be run.
func (s *Stream) FinishBody() error {
	body, err := s.finishFile()
	if err != nil {
		return err
	}
	s.commit(&body)
	return nil
}

// NewPipe starts a pipe. Run the round, write the header, then StartBody.
func NewPipe(cert *Certificate, author *Author, aad []byte, hints *StreamHints) *Stream {
	b, seed := streamSeeds(author, KindPipe, hints)
	defer clear(b[:])
	defer clear(seed[:])
	return newPipe(cert, author, aad, &b, &seed)
}

func newPipe(cert *Certificate, author *Author, aad []byte, b, seed *[32]byte) *Stream {
	s := newStream(cert, author, KindPipe, aad, b, seed)
	commitment := bodyKey(&s.rhos[0], labelCommitKey)
	body := pipeCommitment(&commitment)
	s.commit(&body)
	return s
}

// StartBody makes the stream ready for writing its body to dst, behind the header.
func (s *Stream) StartBody(dst io.Writer) error {
	w, err := newBodyWriter(dst, KindPipe, &s.rhos[0], &s.author.Key, &s.open.r)
	s.BodyWriter = w
	return err
}

// EndPipe signs the body with the client's key and writes the last chunk.
func (s *Stream) EndPipe(key ed25519.PrivateKey) error { return s.finishPipe(s.items[0].x, key) }

// Header is the header of the stream's object after the round.
func (s *Stream) Header() []byte { return s.items[0].object }

// Wipe erases the secrets of the request.
func (e *Encryption) Wipe() {
	e.open.wipe()
	clear(e.rhos)
	for _, p := range e.points {
		p.Zero()
	}
}

// Objects are the encrypted messages, in order, after the round.
func (e *Encryption) Objects() [][]byte {
	objects := make([][]byte, len(e.items))
	for i := range e.items {
		objects[i] = e.items[i].object
	}
	return objects
}

// Round asks the nodes of q for masks and tags. With detail every node answers for
// each of its keys, so that the answers can be compared.
func (e *Encryption) Round(q dprf.Set, detail bool) (*EncryptRound, error) {
	r := &EncryptRound{e: e, round: round{quorum: q, detail: detail, layout: e.layout, items: len(e.items)}}
	return r, r.assign()
}

// An EncryptRound collects the answers of one quorum. Not safe for concurrent use.
type EncryptRound struct {
	round
	e *Encryption
}

func (e *Encryption) target(op Op, q dprf.Set, detail bool) target {
	return targetOf(e.cert, op, q, detail)
}

func targetOf(cert *Certificate, op Op, q dprf.Set, detail bool) target {
	return target{op: op, suite: cert.Suite, mode: ModeSealed, detail: detail, keyset: cert.Keyset,
		epoch: cert.Epoch, attempt: cert.Attempt, generation: cert.Generation, quorum: q}
}

// Request is the request to node. No two nodes get the same: each is shown its own
// opening secret and no other.
func (r *EncryptRound) Request(node int) []byte {
	return r.e.request(r.e.target(OpEncrypt, r.quorum, r.detail), node)
}

func (e *Encryption) request(t target, node int) []byte {
	b := t.append(make([]byte, 0, targetFixed+t.quorum.Size()+3+32*(e.cert.N+1+len(e.items))))
	b = append(b, byte(e.cert.N))
	for i := range e.open.commitments {
		b = append(b, e.open.commitments[i][:]...)
	}
	b = append(b, e.open.secrets[node-1][:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(e.items)))
	for i := range e.items {
		b = append(b, e.items[i].w[:]...)
	}
	return b
}

// Add takes a node's answer. An error is a *NodeError: the node refused or its
// answer is malformed, and this round cannot finish.
func (r *EncryptRound) Add(node int, answer []byte) error {
	body, err := OpenAnswer(answer)
	if err == nil && len(body) != r.items*encryptItemSize(len(r.keysOf(node)), r.detail) {
		err = fmt.Errorf("%w: %d bytes for %d items", ErrAnswer, len(body), r.items)
	}
	return r.put(node, body, err)
}

// Finish makes the headers once Done. In detail it compares the answers first; a
// difference is a *DisputeError, and nothing is made.
func (r *EncryptRound) Finish() error {
	if !r.Done() {
		panic("internal error: Finish before all answers are in")
	}
	if r.detail {
		if report := r.compare(true); report != nil {
			return report
		}
	}
	// All holders agree in detail, so one member of the quorum per key is enough.
	owner := r.owner
	if owner == nil {
		var err error
		if owner, err = r.layout.Assign(r.quorum); err != nil {
			return err
		}
	}
	proof := make([]byte, dprf.TagSize*r.layout.Keys())
	for i := range r.e.items {
		mask := r.combine(i, owner, proof)
		r.e.seal(i, proof, &mask)
	}
	return nil
}

// combine XORs the masks of item i and collects its tags.
func (r *EncryptRound) combine(i int, owner dprf.Assignment, proof []byte) (mask [32]byte) {
	for _, node := range r.quorum.Nodes() {
		keys := r.keysOf(node)
		item := r.answers[node][i*encryptItemSize(len(keys), r.detail):]
		tags := item[maskItemSize(len(keys), r.detail):]
		if !r.detail {
			subtle.XORBytes(mask[:], mask[:], item)
		}
		for pos, key := range keys {
			if int(owner[key]) != node {
				continue
			}
			copy(proof[key*dprf.TagSize:], tags[pos*dprf.TagSize:][:dprf.TagSize])
			if r.detail {
				subtle.XORBytes(mask[:], mask[:], item[pos*dprf.MaskSize:])
			}
		}
	}
	return mask
}

func (e *Encryption) seal(i int, proof []byte, mask *[32]byte) {
	it := &e.items[i]
	h := Header{Params: it.params, Epoch: e.cert.Epoch, Source: Source{X0: it.x}, Proof: proof}
	v := masked(&e.rhos[i], e.cert.Epoch)
	subtle.XORBytes(h.Masked[:], v[:], mask[:])
	clear(v[:])
	h.Append(it.object[:0])
}

// HashPrivateKey is Author.KeyHash for a client that can read its key.
func HashPrivateKey(key ed25519.PrivateKey) [32]byte {
	return labelhash.New("tae/v1/seed/key").Fixed(key.Seed()).Sum()
}
