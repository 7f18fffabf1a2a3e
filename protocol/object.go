package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/sig/bls"
)

// Magic starts every object. Its bytes show what happened to a file that went
// through a text conversion: the first is not ASCII, and CR LF and LF are both in it.
const Magic = "\x89TAE\r\n\x1a\n"

const (
	objectVersion = 1

	paramsSize = len(Magic) + 6 + 16
	sourceSize = 32 + 1 + 2 + 32 // x_0, flag, e_src, id_src
	maskedSize = 32              // rho || born, masked

	proofStart = paramsSize + 2 + sourceSize

	// MinHeader is the number of bytes from which HeaderSize can tell the length of
	// a whole header.
	MinHeader = proofStart + 4
)

// ErrNotObject reports bytes that are not an object of this format; errors that
// wrap it say what is wrong with them.
var ErrNotObject = errors.New("not a TAE object")

// ErrObjectVersion reports an object of a format version that this program does
// not read.
var ErrObjectVersion = errors.New("unsupported object version")

// Params are the header bytes that an object keeps for its whole life; its
// commitment covers them.
type Params struct {
	Suite  Suite
	Mode   Mode
	Kind   Kind
	Layers uint8 // as in the keyset's terms
	Keyset KeysetID
}

// Append appends the 30 bytes of the parameters.
func (p *Params) Append(b []byte) []byte {
	b = append(b, Magic...)
	b = append(b, objectVersion, uint8(p.Suite), uint8(p.Mode), uint8(p.Kind), 0, p.Layers)
	return append(b, p.Keyset[:]...)
}

// Source says where an object's present identity comes from. A fresh object has
// Flag 0 and zero EpochSrc and IDSrc.
type Source struct {
	X0       Identity
	Moved    bool
	EpochSrc uint16
	IDSrc    Identity
}

// Header is everything of an object but its body (section 6).
type Header struct {
	Params
	Epoch  uint16
	Source Source
	// Proof shows that an encrypt session took place. TAE1: the tags of all keys, 16
	// bytes each. TAE3: a signature of 48 bytes on the root of the request's identities
	// and the path, 32 bytes a step, from this one's Index of Count to the root.
	Proof        []byte
	Index, Count uint16
	Masked       [32]byte // TAE1: rho || born under the mask of the identity; TAE3: M + Y
}

// Size is the length of the encoded header in bytes.
func (h *Header) Size() int { return proofStart + h.proofPrefix() + len(h.Proof) + maskedSize }

// proofPrefix is the length of the fields before the proof: the number of tags, or
// index and count.
func (h *Header) proofPrefix() int {
	if h.Suite == SuiteTAE3 {
		return 4
	}
	return 2
}

// SealedHeaderSize is the length of a sealed TAE1 header for a keyset of the
// given parameters. It does not depend on the message.
func SealedHeaderSize(p dprf.Params) int {
	return proofStart + 2 + dprf.TagSize*p.Keys() + maskedSize
}

// StreamHeaderSize is the length of the header of a file or pipe under the keyset:
// an object that is alone in its request.
func StreamHeaderSize(c *Certificate) int {
	if c.Suite == SuiteTAE3 {
		return batchHeaderSize(0, 1)
	}
	return SealedHeaderSize(dprf.Params{N: c.N, T: c.T})
}

// batchHeaderSize is the length of the TAE3 header of item index of count.
func batchHeaderSize(index, count uint16) int {
	return proofStart + 4 + batchProofSize(index, count) + maskedSize
}

func batchProofSize(index, count uint16) int {
	return bls.SignatureSize + 32*merklePathLen(int(index), int(count))
}

// Append appends the canonical encoding of the header.
func (h *Header) Append(b []byte) []byte {
	b = h.Params.Append(b)
	b = binary.BigEndian.AppendUint16(b, h.Epoch)
	b = append(b, h.Source.X0[:]...)
	flag := byte(0)
	if h.Source.Moved {
		flag = 1
	}
	b = append(b, flag)
	b = binary.BigEndian.AppendUint16(b, h.Source.EpochSrc)
	b = append(b, h.Source.IDSrc[:]...)
	if h.Suite == SuiteTAE3 {
		b = binary.BigEndian.AppendUint16(b, h.Index)
		b = binary.BigEndian.AppendUint16(b, h.Count)
	} else {
		b = binary.BigEndian.AppendUint16(b, uint16(len(h.Proof)/dprf.TagSize))
	}
	b = append(b, h.Proof...)
	return append(b, h.Masked[:]...)
}

func notObject(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotObject, fmt.Sprintf(format, args...))
}

// mangled names the usual ways in which a binary file is damaged.
func mangled(b []byte) error {
	switch {
	case len(b) == 0:
		return notObject("it is empty")
	case len(b) >= 2 && (b[0] == 0xff && b[1] == 0xfe || b[0] == 0xfe && b[1] == 0xff):
		return notObject("it was converted to UTF-16, as some shells do on redirection; write it with -o")
	case len(b) >= 4 && string(b[:4]) == "\xc2\x89TA":
		return notObject("it was converted to UTF-8 text on the way")
	case len(b) >= len(Magic) && string(b[:4]) == Magic[:4]:
		return notObject("its line ends were converted on the way")
	case len(b) >= 10 && string(b[:10]) == "-----BEGIN":
		return notObject("it is armored text")
	case len(b) < len(Magic) && string(b) == Magic[:len(b)]:
		return notObject("it ends after %d bytes", len(b))
	}
	return notObject("it does not start with the format's magic bytes")
}

// HeaderSize tells the length of the header that starts with prefix, at least
// MinHeader bytes of it, or says why it is not a header.
func HeaderSize(prefix []byte) (int, error) {
	if len(prefix) < len(Magic) || string(prefix[:len(Magic)]) != Magic {
		return 0, mangled(prefix)
	}
	if len(prefix) > len(Magic) && prefix[len(Magic)] != objectVersion {
		return 0, fmt.Errorf("%w: version %d, this program reads version %d", ErrObjectVersion, prefix[len(Magic)], objectVersion)
	}
	if len(prefix) < MinHeader {
		return 0, notObject("its header is cut off after %d bytes", len(prefix))
	}
	if Suite(prefix[len(Magic)+1]) == SuiteTAE3 {
		index, count := binary.BigEndian.Uint16(prefix[proofStart:]), binary.BigEndian.Uint16(prefix[proofStart+2:])
		if index >= count || count > MaxBatchLimit {
			return 0, notObject("its header claims to be item %d of %d", index, count)
		}
		return batchHeaderSize(index, count), nil
	}
	tags := int(binary.BigEndian.Uint16(prefix[proofStart:]))
	if tags > dprf.MaxKeys {
		return 0, notObject("its header claims %d tags, at most %d are possible", tags, dprf.MaxKeys)
	}
	return proofStart + 2 + dprf.TagSize*tags + maskedSize, nil
}

// ParseHeader parses the header at the start of b and returns what follows it.
// Only the canonical form is accepted: parsing and encoding give the same bytes.
func ParseHeader(b []byte) (h *Header, body []byte, err error) {
	size, err := HeaderSize(b)
	if err != nil {
		return nil, nil, err
	}
	if len(b) < size {
		return nil, nil, notObject("its header is cut off after %d of %d bytes", len(b), size)
	}
	p := b[len(Magic)+1:]
	h = &Header{Params: Params{Suite: Suite(p[0]), Mode: Mode(p[1]), Kind: Kind(p[2]), Layers: p[4], Keyset: KeysetID(p[5:21])}}
	if p[3] != 0 {
		return nil, nil, notObject("unknown flags %08b", p[3])
	}
	p = b[paramsSize:]
	h.Epoch = binary.BigEndian.Uint16(p)
	h.Source.X0 = Identity(p[2:34])
	flag := p[34]
	h.Source.Moved = flag == 1
	h.Source.EpochSrc = binary.BigEndian.Uint16(p[35:])
	h.Source.IDSrc = Identity(p[37:69])
	if h.Suite == SuiteTAE3 {
		h.Index, h.Count = binary.BigEndian.Uint16(b[proofStart:]), binary.BigEndian.Uint16(b[proofStart+2:])
	}
	h.Proof = append([]byte(nil), b[proofStart+h.proofPrefix():size-maskedSize]...)
	h.Masked = [32]byte(b[size-maskedSize : size])
	if flag > 1 {
		return nil, nil, notObject("source flag %d is neither 0 nor 1", flag)
	}
	if err := h.check(); err != nil {
		return nil, nil, err
	}
	return h, b[size:], nil
}

// check applies the rules that need no key.
func (h *Header) check() error {
	s := &h.Source
	switch {
	case h.Suite != SuiteTAE1 && h.Suite != SuiteTAE3:
		return fmt.Errorf("%w: %v", ErrObjectVersion, h.Suite)
	case h.Mode != ModeSealed:
		return fmt.Errorf("%w: %v", ErrObjectVersion, h.Mode)
	case h.Kind > KindPipe:
		return notObject("unknown kind of body %d", h.Kind)
	case h.Suite == SuiteTAE3 && h.Layers != 0:
		return notObject("a tae3 object has no layers")
	case h.Layers > MaxLayers:
		return notObject("%d layers, at most %d are possible", h.Layers, MaxLayers)
	case h.Epoch == 0:
		return notObject("epoch 0 does not exist")
	case len(h.Proof) == 0:
		return notObject("it has no tags")
	case !s.Moved && (s.EpochSrc != 0 || s.IDSrc != Identity{}):
		return notObject("a fresh object names a source")
	case s.Moved && (s.EpochSrc < 1 || s.EpochSrc >= h.Epoch):
		return notObject("it was moved from epoch %d to epoch %d; only forward moves exist", s.EpochSrc, h.Epoch)
	}
	return nil
}
