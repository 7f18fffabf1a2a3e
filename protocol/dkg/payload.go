package dkg

import (
	"bytes"
	"errors"

	"go.dedis.ch/kyber/v3"
	"go.dedis.ch/kyber/v3/share"
	vss "go.dedis.ch/kyber/v3/share/vss/pedersen"
	"go.dedis.ch/protobuf"
	"golang.org/x/crypto/cryptobyte"

	"github.com/seed-a893640b/tae/internal/labelhash"
)

const (
	version    = 1
	headerSize = 2 + 32 + 1
	gcmTag     = 16
)

type digest = [labelhash.Size]byte

func digestOf(payload []byte) digest { return labelhash.New(labelPayload).Var(payload).Sum() }

// A payload is a parsed payload of any phase.
type payload struct {
	digest digest
	seen   []digest

	keys       [2]kyber.Point // PhaseKeys
	commitment digest
	halves     [2]dealing      // PhaseDeals
	approvals  map[int][2]bool // PhaseResponses, by dealer
	justified  []justified     // PhaseJustifications
}

// A dealing is what a dealer says for one group.
type dealing struct {
	commits []kyber.Point
	sealed  map[int]*sealed // by receiver
}

// A sealed share is kyber's encrypted deal without its nonce, which is zero.
type sealed struct {
	ephemeral kyber.Point
	keySig    []byte
	cipher    []byte
	sig       []byte
}

// A complaint is about one dealer's share for one receiver.
type complaint struct {
	group    int // number in groups
	receiver int
}

// A justification opens the seal of the share that was complained about.
type justified struct {
	complaint
	ephemeral kyber.Scalar
}

var errPayload = errors.New("is malformed")

func (r *Run) header(phase Phase) []byte {
	b := append([]byte{version, byte(phase)}, r.params.Session[:]...)
	return append(b, byte(r.params.Self))
}

// parse checks the form of a payload: everything that can be judged without the
// payloads of others. What is wrong here is the sender's fault.
func (r *Run) parse(phase Phase, from int, b []byte) (*payload, error) {
	if len(b) < headerSize || b[0] != version || b[1] != byte(phase) {
		return nil, errPayload
	}
	if !bytes.Equal(b[2:34], r.params.Session[:]) {
		return nil, errors.New("is for another session")
	}
	if int(b[34]) != from {
		return nil, errors.New("is another member's")
	}
	p := &payload{digest: digestOf(b)}
	s := cryptobyte.String(b[headerSize:])
	for range len(r.senders(phase - 1)) {
		var d digest
		if !s.CopyBytes(d[:]) {
			return nil, errPayload
		}
		p.seen = append(p.seen, d)
	}
	read := map[Phase]func(*payload, int, *cryptobyte.String) error{PhaseKeys: r.readKeys, PhaseDeals: r.readDeals,
		PhaseResponses: r.readResponses, PhaseJustifications: r.readJustifications}[phase]
	if err := read(p, from, &s); err != nil {
		return nil, err
	}
	if !s.Empty() {
		return nil, errPayload
	}
	return p, nil
}

// A reader reads points and scalars of one group and remembers what failed.
type reader struct {
	*group
	s   *cryptobyte.String
	bad bool
}

func (r *reader) bytes(n int) []byte {
	var b []byte
	if r.bad = r.bad || !r.s.ReadBytes(&b, n); r.bad {
		return nil
	}
	return bytes.Clone(b)
}

func (r *reader) point() kyber.Point {
	b := r.bytes(r.PointLen())
	if r.bad {
		return nil
	}
	p, ok := r.decodePoint(b)
	r.bad = !ok
	return p
}

// proper reads a point that is not the identity.
func (r *reader) proper() kyber.Point {
	p := r.point()
	r.bad = r.bad || r.isIdentity(p)
	return p
}

func (r *reader) scalar() kyber.Scalar {
	b := r.bytes(scalarSize)
	if r.bad {
		return nil
	}
	v, ok := r.decodeScalar(b)
	r.bad = !ok
	return v
}

func (r *Run) readKeys(p *payload, from int, s *cryptobyte.String) error {
	for g := range groups {
		in := reader{group: &groups[g], s: s}
		key, sig := in.proper(), in.bytes(groups[g].signatureLen())
		if in.bad {
			return errPayload
		}
		if !groups[g].verify(key, groupKeyMessage(g, r.params.Session, from), sig) {
			return errors.New("holds a group key without proof of its secret")
		}
		p.keys[g] = key
	}
	if !s.CopyBytes(p.commitment[:]) || r.kyberIndex(from) < 0 && p.commitment != (digest{}) {
		return errPayload
	}
	return nil
}

// errLength is the fault that matters most: a polynomial of another length changes
// how many shares reconstruct the secret.
var errLength = errors.New("commits to another number of coefficients than the threshold")

func (r *Run) readDeals(p *payload, from int, s *cryptobyte.String) error {
	for g := range groups {
		in := reader{group: &groups[g], s: s}
		var t uint8
		if !s.ReadUint8(&t) {
			return errPayload
		}
		if int(t) != r.params.T {
			return errLength
		}
		d := &p.halves[g]
		for range r.params.T {
			d.commits = append(d.commits, in.point())
		}
		d.sealed = map[int]*sealed{}
		for _, to := range r.receivers(from) {
			d.sealed[to] = &sealed{in.proper(), in.bytes(in.signatureLen()), in.bytes(r.cipherLen[g]), in.bytes(in.signatureLen())}
		}
		if in.bad {
			return errPayload
		}
	}
	return nil
}

func (r *Run) readResponses(p *payload, from int, s *cryptobyte.String) error {
	p.approvals = map[int][2]bool{}
	for _, dealer := range r.dealersOf(from) {
		var both [2]bool
		for g := range groups {
			var b uint8
			if !s.ReadUint8(&b) || b > 1 {
				return errPayload
			}
			both[g] = b == 1
		}
		p.approvals[dealer] = both
	}
	return nil
}

func (r *Run) readJustifications(p *payload, _ int, s *cryptobyte.String) error {
	var count uint16
	if !s.ReadUint16(&count) {
		return errPayload
	}
	last := -1
	for range count {
		var id, receiver uint8
		if !s.ReadUint8(&id) || !s.ReadUint8(&receiver) || id < 1 || int(id) > len(groups) {
			return errPayload
		}
		in := reader{group: &groups[id-1], s: s}
		v := in.scalar()
		if order := int(id)<<8 | int(receiver); in.bad || order <= last || receiver < 1 || int(receiver) > r.params.N {
			return errPayload
		} else {
			last = order
		}
		p.justified = append(p.justified, justified{complaint{int(id) - 1, int(receiver)}, v})
	}
	return nil
}

func appendDigests(b []byte, list []digest) []byte {
	for _, d := range list {
		b = append(b, d[:]...)
	}
	return b
}

// plain is what kyber's dealer seals for a receiver.
func plain(sid []byte, receiver int, v kyber.Scalar, commits []kyber.Point) *vss.Deal {
	return &vss.Deal{SessionID: sid, SecShare: &share.PriShare{I: receiver - 1, V: v}, T: uint32(len(commits)), Commitments: commits}
}

// shareAt is where the share is in kyber's encoding of a deal.
const shareAt = 40

func encodeDeal(d *vss.Deal) ([]byte, error) { return protobuf.Encode(d) }

// cipherLens are the lengths of sealed shares. They depend on nothing but t: indices
// up to 64 are one byte in kyber's encoding.
func cipherLens(t int) (lens [2]int, err error) {
	for g := range groups {
		commits := make([]kyber.Point, t)
		for i := range commits {
			commits[i] = groups[g].Point().Null()
		}
		b, err := encodeDeal(plain(make([]byte, groups[g].Hash().Size()), 1, groups[g].Scalar().Zero(), commits))
		if err != nil {
			return lens, err
		}
		lens[g] = len(b) + gcmTag
	}
	return lens, nil
}
