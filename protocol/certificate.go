package protocol

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/labelhash"
	"github.com/seed-a893640b/tae/sig"
	"github.com/seed-a893640b/tae/sig/bls"
)

const (
	certMagic   = "TAEC"
	certVersion = 1

	labelTerms       = "tae/v1/terms"
	labelCertificate = "tae/v1/epoch-certificate"

	// MaxLayers bounds the slots of a layered object: the 96-byte key commitment
	// of its body is worth about 2^128 at 62 layers.
	MaxLayers = 62
	// MaxBatchLimit bounds the items of one request in every keyset.
	MaxBatchLimit = 1024
	// ObjectsLog2 is the bound on objects per epoch, 2^36: half of the birthday
	// bound of the 128-bit block cipher leaves a margin of 2^-56.
	ObjectsLog2 = 36
)

// Limits are the limits of a keyset that its members agreed to.
type Limits struct {
	MaxBatch    uint16 // items of one request, 1 to MaxBatchLimit
	ObjectsLog2 uint8  // objects per epoch, as a power of two
}

// Terms is what the members of a keyset agree to before they make an epoch's
// keys. Members are in the order of their indices 1..n.
type Terms struct {
	Keyset     KeysetID
	Name       string
	Suite      Suite
	N, T       int
	Modes      Modes
	Layers     uint8 // slots of a layered object; 0 when layered is not offered
	Limits     Limits
	Version    uint32 // of the keyset; raised by replacement and resharing
	Epoch      uint16 // from 1
	Attempt    uint16 // from 1
	Generation uint32 // of the shares; 0 in TAE1
	Members    [][32]byte
}

// Validate checks every rule on terms (section 5). allowOne admits t = 1.
func (t *Terms) Validate(allowOne bool) error {
	if err := CheckName(t.Name); err != nil {
		return err
	}
	if err := t.validateSuite(allowOne); err != nil {
		return err
	}
	if len(t.Members) != t.N {
		return fmt.Errorf("protocol: %d members listed, n = %d", len(t.Members), t.N)
	}
	seen := map[[32]byte]int{}
	for i, m := range t.Members {
		if err := sig.CheckPublicKey(m[:]); err != nil {
			return fmt.Errorf("protocol: member %d: %w", i+1, err)
		}
		if j := seen[m]; j != 0 {
			return fmt.Errorf("protocol: members %d and %d have the same key", j, i+1)
		}
		seen[m] = i + 1
	}
	if t.Modes == 0 || t.Modes>>4 != 0 {
		return fmt.Errorf("protocol: modes %08b: at least one of sealed, layered, lattice, recrypt and nothing else", t.Modes)
	}
	if layered := t.Modes.Has(ModeLayered); layered != (t.Layers > 0) || t.Layers > MaxLayers {
		return fmt.Errorf("protocol: %d layers: 1 to %d with mode layered, 0 without", t.Layers, MaxLayers)
	}
	if t.Limits.MaxBatch < 1 || t.Limits.MaxBatch > MaxBatchLimit {
		return fmt.Errorf("protocol: at most %d items a request: must be 1 to %d", t.Limits.MaxBatch, MaxBatchLimit)
	}
	if t.Limits.ObjectsLog2 < 1 || t.Limits.ObjectsLog2 > ObjectsLog2 {
		return fmt.Errorf("protocol: 2^%d objects an epoch: must be 2^1 to 2^%d", t.Limits.ObjectsLog2, ObjectsLog2)
	}
	if t.Version < 1 || t.Epoch < 1 || t.Attempt < 1 {
		return errors.New("protocol: version, epoch and attempt start at 1")
	}
	return nil
}

// Params are n and t.
func (t *Terms) Params() dprf.Params { return dprf.Params{N: t.N, T: t.T} }

func (t *Terms) validateSuite(allowOne bool) error {
	switch t.Suite {
	case SuiteTAE1:
		if t.Generation != 0 {
			return errors.New("protocol: the generation of tae1 is 0")
		}
		return t.Params().Validate(allowOne)
	case SuiteTAE3:
		if t.Generation < 1 {
			return errors.New("protocol: generations of tae3 start at 1")
		}
		if t.Modes != ModesOf(ModeSealed) {
			return errors.New("protocol: tae3 offers mode sealed and no other")
		}
		if t.T == 1 {
			return fmt.Errorf("%w: tae3 needs t >= 2", dprf.ErrThreshold) // a shared key that every node holds is no shared key
		}
		return t.Params().ValidateThreshold(allowOne)
	}
	return fmt.Errorf("protocol: %v is not supported by this version; tae1 and tae3 are", t.Suite)
}

// Append appends the canonical encoding of the terms.
func (t *Terms) Append(b []byte) []byte {
	c := cryptobyte.NewBuilder(b)
	c.AddBytes(t.Keyset[:])
	c.AddUint8LengthPrefixed(func(c *cryptobyte.Builder) { c.AddBytes([]byte(t.Name)) })
	c.AddUint8(uint8(t.Suite))
	c.AddUint8(uint8(t.N))
	c.AddUint8(uint8(t.T))
	c.AddUint8(uint8(t.Modes))
	c.AddUint8(t.Layers)
	c.AddUint16(t.Limits.MaxBatch)
	c.AddUint8(t.Limits.ObjectsLog2)
	c.AddUint32(t.Version)
	c.AddUint16(t.Epoch)
	c.AddUint16(t.Attempt)
	c.AddUint32(t.Generation)
	for i := range t.Members {
		c.AddBytes(t.Members[i][:])
	}
	return c.BytesOrPanic()
}

func (t *Terms) read(s *cryptobyte.String) bool {
	var name cryptobyte.String
	var suite, n, th, modes uint8
	ok := s.CopyBytes(t.Keyset[:]) && s.ReadUint8LengthPrefixed(&name) &&
		s.ReadUint8(&suite) && s.ReadUint8(&n) && s.ReadUint8(&th) && s.ReadUint8(&modes) && s.ReadUint8(&t.Layers) &&
		s.ReadUint16(&t.Limits.MaxBatch) && s.ReadUint8(&t.Limits.ObjectsLog2) &&
		s.ReadUint32(&t.Version) && s.ReadUint16(&t.Epoch) && s.ReadUint16(&t.Attempt) && s.ReadUint32(&t.Generation)
	if !ok {
		return false
	}
	t.Name, t.Suite, t.N, t.T, t.Modes = string(name), Suite(suite), int(n), int(th), Modes(modes)
	t.Members = make([][32]byte, t.N)
	for i := range t.Members {
		if !s.CopyBytes(t.Members[i][:]) {
			return false
		}
	}
	return true
}

// ParseTerms parses and validates terms; t = 1 is left to the caller's policy.
func ParseTerms(b []byte) (*Terms, error) {
	s := cryptobyte.String(b)
	t := new(Terms)
	if !t.read(&s) || !s.Empty() {
		return nil, errors.New("protocol: malformed terms")
	}
	if err := t.Validate(true); err != nil {
		return nil, err
	}
	return t, nil
}

// Digest is what the members of an attempt agree to; it goes into every
// statement of key generation and into the keys.
func (t *Terms) Digest() [32]byte { return labelhash.New(labelTerms).Var(t.Append(nil)).Sum() }

// Session names the key generation under these terms.
func (t *Terms) Session() dprf.Session {
	return dprf.Session{Keyset: t.Keyset, Epoch: t.Epoch, Attempt: t.Attempt, Proposal: t.Digest()}
}

// Layout is the structure of the keys of TAE1. Parsed terms are valid, so it cannot
// fail.
func (t *Terms) Layout() *dprf.Layout {
	l, err := dprf.NewLayout(dprf.Params{N: t.N, T: t.T})
	if err != nil {
		panic("internal error: layout of unchecked terms: " + err.Error())
	}
	return l
}

// A Certificate proves that all members hold the keys of an epoch: each signed
// the terms and the key-check values after it had stored its keys. Only a
// complete certificate is ever encoded.
type Certificate struct {
	Terms
	Checks [][32]byte // TAE1: per key in the order of key numbers
	// KeyPoly and SigPoly are TAE3's public polynomials, t commitments each: of the
	// function's key, and of the signature key.
	KeyPoly    [][dprf.ElementSize]byte
	SigPoly    [][bls.PublicKeySize]byte
	Signatures [][sig.Size]byte

	public *publicKeys  // made by Prepare, TAE3
	layout *dprf.Layout // made by Prepare, TAE1
}

// Digest is what the members sign.
func (c *Certificate) Digest() [32]byte {
	h := labelhash.New(labelCertificate).Var(c.Terms.Append(nil))
	if c.Suite == SuiteTAE3 {
		return h.Uint32(uint32(len(c.KeyPoly))).Fixed(c.appendKeys(nil)).Sum()
	}
	return h.Uint32(uint32(len(c.Checks))).Fixed(c.appendKeys(nil)).Sum()
}

// Sign is one member's signature on the certificate.
func (c *Certificate) Sign(key ed25519.PrivateKey) [sig.Size]byte {
	return sig.Sign(key, labelCertificate, c.Digest())
}

// VerifyMember checks one member's signature.
func (c *Certificate) VerifyMember(node int, signature []byte) bool {
	return sig.Verify(c.Members[node-1][:], labelCertificate, c.Digest(), signature)
}

// Verify checks that all members signed and that they are the given ones: a
// client or node takes the members' keys from its own configuration, never from
// the certificate.
func (c *Certificate) Verify(members [][32]byte) error {
	if len(members) != c.N {
		return fmt.Errorf("protocol: certificate of keyset %s has %d members, the configuration %d", c.Name, c.N, len(members))
	}
	digest := c.Digest()
	for i := range members {
		if members[i] != c.Members[i] {
			return fmt.Errorf("protocol: certificate of keyset %s names another key for node %d than the configuration", c.Name, i+1)
		}
		if !sig.Verify(members[i][:], labelCertificate, digest, c.Signatures[i][:]) {
			return fmt.Errorf("protocol: certificate of keyset %s: bad signature of node %d", c.Name, i+1)
		}
	}
	return nil
}

// Newer reports whether c is to be followed rather than o: the higher version,
// then epoch, then attempt.
func (c *Certificate) Newer(o *Certificate) bool {
	switch {
	case o == nil:
		return true
	case c.Version != o.Version:
		return c.Version > o.Version
	case c.Epoch != o.Epoch:
		return c.Epoch > o.Epoch
	}
	return c.Attempt > o.Attempt
}

// Append appends the canonical encoding.
func (c *Certificate) Append(b []byte) []byte {
	b = append(append(b, certMagic...), certVersion)
	b = c.appendKeys(c.Terms.Append(b))
	for i := range c.Signatures {
		b = append(b, c.Signatures[i][:]...)
	}
	return b
}

// appendKeys appends what the certificate says of the keys: key-check values, or the
// two public polynomials.
func (c *Certificate) appendKeys(b []byte) []byte {
	for i := range c.Checks {
		b = append(b, c.Checks[i][:]...)
	}
	for i := range c.KeyPoly {
		b = append(b, c.KeyPoly[i][:]...)
	}
	for i := range c.SigPoly {
		b = append(b, c.SigPoly[i][:]...)
	}
	return b
}

// readKeys reads what appendKeys wrote. The caller has checked the length.
func (c *Certificate) readKeys(s *cryptobyte.String) {
	if c.Suite == SuiteTAE3 {
		c.KeyPoly = make([][dprf.ElementSize]byte, c.T)
		for i := range c.KeyPoly {
			s.CopyBytes(c.KeyPoly[i][:])
		}
		c.SigPoly = make([][bls.PublicKeySize]byte, c.T)
		for i := range c.SigPoly {
			s.CopyBytes(c.SigPoly[i][:])
		}
		return
	}
	c.Checks = make([][32]byte, c.Params().Keys())
	for i := range c.Checks {
		s.CopyBytes(c.Checks[i][:])
	}
}

// keysSize is the length of what appendKeys writes.
func (t *Terms) keysSize() int {
	if t.Suite == SuiteTAE3 {
		return t.T * (dprf.ElementSize + bls.PublicKeySize)
	}
	return 32 * t.Params().Keys()
}

// ParseCertificate parses a certificate and checks its form, not its signatures.
func ParseCertificate(b []byte) (*Certificate, error) {
	s := cryptobyte.String(b)
	var magic []byte
	var version uint8
	c := new(Certificate)
	if !s.ReadBytes(&magic, len(certMagic)) || string(magic) != certMagic || !s.ReadUint8(&version) {
		return nil, errors.New("protocol: not an epoch certificate")
	}
	if version != certVersion {
		return nil, fmt.Errorf("protocol: epoch certificate of version %d, this program reads version %d", version, certVersion)
	}
	if !c.Terms.read(&s) {
		return nil, errors.New("protocol: truncated epoch certificate")
	}
	if err := c.Validate(true); err != nil {
		return nil, err
	}
	if len(s) != c.keysSize()+sig.Size*c.N {
		return nil, errors.New("protocol: epoch certificate has the wrong length for its n and t")
	}
	c.readKeys(&s)
	c.Signatures = make([][sig.Size]byte, c.N)
	for i := range c.Signatures {
		s.CopyBytes(c.Signatures[i][:])
	}
	return c, nil
}
