package dkg

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"go.dedis.ch/kyber/v3"
	pedersen "go.dedis.ch/kyber/v3/share/dkg/pedersen"
	vss "go.dedis.ch/kyber/v3/share/vss/pedersen"
	"go.dedis.ch/kyber/v3/sign/schnorr"

	"github.com/seed-a893640b/tae/internal/labelhash"
)

// nonceSize is that of AES-GCM. kyber seals under a fresh key each time, with a zero
// nonce; it panics on one of another length, so none travels.
const nonceSize = 12

func (g *group) verify(key kyber.Point, message, sig []byte) bool {
	return guard(func() error { return schnorr.Verify(g, key, message, sig) }) == nil
}

func groupKeyMessage(g int, session [32]byte, member int) []byte {
	d := labelhash.New(labelGroupKey).Byte(groups[g].id).Fixed(session[:]).Byte(byte(member)).Sum()
	return d[:]
}

// commitmentTo hashes a dealer's polynomials.
func commitmentTo(session [32]byte, dealer int, polys [2][]kyber.Point) digest {
	h := labelhash.New(labelCommitment).Fixed(session[:]).Byte(byte(dealer)).Byte(byte(len(polys[0])))
	for _, poly := range polys {
		for _, c := range poly {
			h.Fixed(encode(c))
		}
	}
	return h.Sum()
}

// sessionID is how kyber names a dealing.
func (h *half) sessionID(dealer int, commits []kyber.Point) []byte {
	d := h.group.Hash()
	d.Write(encode(h.keys[dealer]))
	for _, k := range h.receiverKeys {
		d.Write(encode(k))
	}
	for _, c := range commits {
		d.Write(encode(c))
	}
	_ = binary.Write(d, binary.LittleEndian, uint32(len(commits)))
	return d.Sum(nil)
}

// aead opens and seals as kyber does for one dealer and Diffie-Hellman point.
func (h *half) aead(dealer int, dh kyber.Point) (gcm cipher.AEAD, context []byte, err error) {
	d := h.group.Hash()
	d.Write([]byte("vss-dealer"))
	d.Write(encode(h.keys[dealer]))
	d.Write([]byte("vss-verifiers"))
	for _, k := range h.receiverKeys {
		d.Write(encode(k))
	}
	context = d.Sum(nil)
	secret := encode(dh)
	defer clear(secret)
	key, err := hkdf.Key(sha256.New, secret, nil, string(context), 32)
	if err != nil {
		return nil, nil, err
	}
	defer clear(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, nil, err
	}
	gcm, err = cipher.NewGCM(block)
	return gcm, context, err
}

// signedDeal is what kyber's dealer signs besides the ephemeral key.
func signedDeal(index int, sealed []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(index)), sealed...)
}

var errDeal = errors.New("dkg: bad deal")

// open opens a sealed share with the Diffie-Hellman point of ephemeral key and
// receiver's key, and judges it. It depends on nothing but what all members have and
// the point, so that all who know the point come to the same verdict. What it accepts is exactly what
// kyber's dealer would have sealed for the coefficients that everybody sees.
func (r *Run) open(g, dealer, receiver int, dh kyber.Point) (kyber.Scalar, error) {
	h := &r.halves[g]
	d := &r.in[PhaseDeals][dealer].halves[g]
	s := d.sealed[receiver]
	if !h.group.verify(h.keys[dealer], encode(s.ephemeral), s.keySig) ||
		!h.group.verify(h.keys[dealer], signedDeal(r.kyberIndex(dealer), s.cipher), s.sig) {
		return nil, errDeal
	}
	gcm, context, err := h.aead(dealer, dh)
	if err != nil {
		return nil, err
	}
	text, err := gcm.Open(nil, make([]byte, nonceSize), s.cipher, context)
	if err != nil {
		return nil, errDeal
	}
	defer clear(text)
	v, ok := h.group.decodeScalar(text[shareAt : shareAt+scalarSize])
	if !ok {
		return nil, errDeal
	}
	want, err := encodeDeal(plain(h.sessionID(dealer, d.commits), receiver, v, d.commits))
	if err != nil {
		return nil, err
	}
	defer clear(want)
	if !bytes.Equal(text, want) || !h.group.fits(d.commits, receiver, v) {
		return nil, errDeal
	}
	return v, nil
}

// toKyber is the deal as kyber takes it.
func (r *Run) toKyber(dealer int, s *sealed) *pedersen.Deal {
	return &pedersen.Deal{
		Index:     uint32(r.kyberIndex(dealer)),
		Deal:      &vss.EncryptedDeal{DHKey: encode(s.ephemeral), Signature: s.keySig, Nonce: make([]byte, nonceSize), Cipher: s.cipher},
		Signature: s.sig,
	}
}

// fromKyber takes a deal of our own kyber apart.
func (g *group) fromKyber(d *pedersen.Deal) (*sealed, error) {
	p, ok := g.decodePoint(d.Deal.DHKey)
	if !ok || !bytes.Equal(d.Deal.Nonce, make([]byte, nonceSize)) {
		return nil, errors.New("dkg: internal error: kyber made another deal than expected")
	}
	return &sealed{p, d.Deal.Signature, d.Deal.Cipher, d.Signature}, nil
}

// ephemeral is the secret of an ephemeral key of the own dealing. kyber draws it inside
// and does not give it out, so it is drawn again from the same stream: of two for each
// receiver, the first.
func (h *half) ephemeral(transcript []byte, receiver int) kyber.Scalar {
	h.suite.enter("deals", transcript)
	h.suite.count = uint32(2 * (receiver - 1))
	return h.group.Scalar().Pick(h.suite.RandomStream())
}
