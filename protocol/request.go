package protocol

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/seed-a893640b/tae/dprf"
)

const (
	wireVersion = 1

	// OpStatus asks what a node says of itself.
	OpStatus Op = 17
	// opKeysets asks for the certificates of the keysets that the caller may use.
	opKeysets Op = 16
	// OpMember is the first operation between members; they are not for clients.
	OpMember Op = 32

	// MaxAnswer bounds the items of an answer in bytes: with what comes before
	// them they fit a frame of 4 MiB.
	MaxAnswer = 4<<20 - 64

	flagDetail = 1
)

// RequestOp reads the operation of a request, so that a node can pass it on; it
// is 0 for what is too short to be one.
func RequestOp(req []byte) Op {
	if len(req) < 2 {
		return 0
	}
	return Op(req[1])
}

// target is the start of every request on objects: what it is for, and who is to
// answer. A node answers for exactly this or refuses.
type target struct {
	op         Op
	suite      Suite
	mode       Mode
	detail     bool
	keyset     KeysetID
	epoch      uint16
	attempt    uint16
	generation uint32
	quorum     dprf.Set
}

func (t *target) append(b []byte) []byte {
	flags := byte(0)
	if t.detail {
		flags = flagDetail
	}
	b = append(b, wireVersion, byte(t.op), byte(t.suite), byte(t.mode), flags)
	b = append(b, t.keyset[:]...)
	b = binary.BigEndian.AppendUint16(b, t.epoch)
	b = binary.BigEndian.AppendUint16(b, t.attempt)
	b = binary.BigEndian.AppendUint32(b, t.generation)
	nodes := t.quorum.Nodes()
	b = append(b, byte(len(nodes)))
	for _, n := range nodes {
		b = append(b, byte(n))
	}
	return b
}

const targetFixed = 5 + 16 + 2 + 2 + 4 + 1

// readTarget parses the start of a request and returns the rest of it.
func readTarget(b []byte) (t target, rest []byte, err error) {
	if len(b) < targetFixed {
		return t, nil, errors.New("request is cut off")
	}
	if b[0] != wireVersion {
		return t, nil, &Refusal{Code: CodeVersion, Text: fmt.Sprintf("request version %d, this node speaks %d", b[0], wireVersion)}
	}
	t.op, t.suite, t.mode = Op(b[1]), Suite(b[2]), Mode(b[3])
	if b[4]&^flagDetail != 0 {
		return t, nil, errors.New("unknown flags")
	}
	t.detail = b[4]&flagDetail != 0
	t.keyset = KeysetID(b[5:])
	t.epoch = binary.BigEndian.Uint16(b[21:])
	t.attempt = binary.BigEndian.Uint16(b[23:])
	t.generation = binary.BigEndian.Uint32(b[25:])
	count := int(b[29])
	b = b[targetFixed:]
	if len(b) < count {
		return t, nil, errors.New("quorum is cut off")
	}
	last := byte(0)
	for _, n := range b[:count] {
		if n <= last || n > dprf.MaxNodes {
			return t, nil, errors.New("quorum is not in canonical order")
		}
		t.quorum |= dprf.SetOf(int(n))
		last = n
	}
	return t, b[count:], nil
}

// encryptRequest is what follows the target to encrypt: all opening commitments,
// the receiving node's own secret, and one w per item.
type encryptRequest struct {
	commitments [][32]byte
	secret      [32]byte
	items       int
	w           []byte // 32 bytes each
}

func readEncrypt(b []byte, n int) (r encryptRequest, err error) {
	if len(b) < 1 || int(b[0]) != n {
		return r, fmt.Errorf("openings for a number of nodes other than %d", n)
	}
	b = b[1:]
	if len(b) < 32*(n+1)+2 {
		return r, errors.New("openings are cut off")
	}
	r.commitments = make([][32]byte, n)
	for i := range r.commitments {
		r.commitments[i] = [32]byte(b[32*i:])
	}
	b = b[32*n:]
	r.secret = [32]byte(b)
	r.items = int(binary.BigEndian.Uint16(b[32:]))
	r.w = b[34:]
	if r.items == 0 || len(r.w) != 32*r.items {
		return r, errors.New("wrong length for the number of items")
	}
	return r, nil
}

// checkOpening checks the secret that the node was shown against its commitment.
func (r *encryptRequest) checkOpening(node int) bool {
	c := openCommitment(node, &r.secret)
	return subtle.ConstantTimeCompare(c[:], r.commitments[node-1][:]) == 1
}

// readDecrypt returns the items of a decrypt request, each an identity and its
// tags, size bytes together.
func readDecrypt(b []byte, keys int) (items []byte, count, size int, err error) {
	if len(b) < 2 {
		return nil, 0, 0, errors.New("items are cut off")
	}
	count, size = int(binary.BigEndian.Uint16(b)), dprf.IDSize+dprf.TagSize*keys
	if count == 0 || len(b[2:]) != count*size {
		return nil, 0, 0, errors.New("wrong length for the number of items and tags")
	}
	return b[2:], count, size, nil
}

// KeysetsRequest asks a node for the certificates of the keysets that the caller
// may use; name selects one, empty means all.
func KeysetsRequest(name string) []byte {
	return append([]byte{wireVersion, byte(opKeysets), byte(len(name))}, name...)
}

func readKeysetsRequest(b []byte) (name string, err error) {
	if len(b) < 3 || int(b[2]) != len(b)-3 || len(b) > 3+MaxNameLen {
		return "", errors.New("malformed request for keysets")
	}
	return string(b[3:]), nil
}

// ParseKeysetsAnswer reads the answer to KeysetsRequest. The certificates are
// parsed, not verified.
func ParseKeysetsAnswer(answer []byte) ([]*Certificate, error) {
	b, err := OpenAnswer(answer)
	if err != nil {
		return nil, err
	}
	if len(b) < 2 {
		return nil, ErrAnswer
	}
	count := int(binary.BigEndian.Uint16(b))
	b = b[2:]
	var certs []*Certificate
	for range count {
		if len(b) < 4 || uint64(binary.BigEndian.Uint32(b)) > uint64(len(b)-4) {
			return nil, ErrAnswer
		}
		size := binary.BigEndian.Uint32(b)
		c, err := ParseCertificate(b[4 : 4+size])
		if err != nil {
			return nil, fmt.Errorf("%w: %v", ErrAnswer, err)
		}
		certs = append(certs, c)
		b = b[4+size:]
	}
	if len(b) != 0 {
		return nil, ErrAnswer
	}
	return certs, nil
}
