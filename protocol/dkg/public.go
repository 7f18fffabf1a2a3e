package dkg

import (
	"errors"
	"fmt"

	"go.dedis.ch/kyber/v3"
	"golang.org/x/crypto/cryptobyte"

	"github.com/seed-a893640b/tae/dprf/ristretto"
	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/sig/bls"
)

// A Public is the two public polynomials of an epoch, t coefficients each. The
// constant terms are the public keys.
type Public struct {
	DDH [][ristretto.Size]byte
	BLS [][bls.PublicKeySize]byte
}

// Errors of reading and checking.
var (
	ErrPublic = errors.New("dkg: malformed public polynomials")
	ErrShare  = errors.New("dkg: the share does not fit the public polynomials")
)

// T is the threshold.
func (p *Public) T() int { return len(p.DDH) }

// Append appends the encoding.
func (p *Public) Append(b []byte) []byte {
	b = append(b, version, byte(len(p.DDH)))
	for i := range p.DDH {
		b = append(b, p.DDH[i][:]...)
	}
	for i := range p.BLS {
		b = append(b, p.BLS[i][:]...)
	}
	return b
}

// ParsePublic decodes and checks every point: the encoding is canonical, the points
// are in their groups, and neither public key is the identity.
func ParsePublic(b []byte) (*Public, error) {
	s := cryptobyte.String(b)
	var v, t uint8
	if !s.ReadUint8(&v) || v != version || !s.ReadUint8(&t) || t < minT || t > MaxN ||
		len(s) != int(t)*(ristretto.Size+bls.PublicKeySize) {
		return nil, ErrPublic
	}
	p := &Public{DDH: make([][ristretto.Size]byte, t), BLS: make([][bls.PublicKeySize]byte, t)}
	for i := range p.DDH {
		s.CopyBytes(p.DDH[i][:])
	}
	for i := range p.BLS {
		s.CopyBytes(p.BLS[i][:])
	}
	if _, err := p.decode(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Public) decode() (polys [2][]kyber.Point, err error) {
	if len(p.DDH) != len(p.BLS) || len(p.DDH) < minT || len(p.DDH) > MaxN {
		return polys, ErrPublic
	}
	for i := range p.DDH {
		for g, b := range [2][]byte{p.DDH[i][:], p.BLS[i][:]} {
			c, ok := groups[g].decodePoint(b)
			if !ok || i == 0 && groups[g].isIdentity(c) {
				return polys, ErrPublic
			}
			polys[g] = append(polys[g], c)
		}
	}
	return polys, nil
}

func publicOf(polys [2][]kyber.Point) *Public {
	p := &Public{}
	for i := range polys[0] {
		p.DDH = append(p.DDH, [ristretto.Size]byte(encode(polys[0][i])))
		p.BLS = append(p.BLS, [bls.PublicKeySize]byte(encode(polys[1][i])))
	}
	return p
}

// Shares are the public shares of an index.
func (p *Public) Shares(index int) (ddh [ristretto.Size]byte, key [bls.PublicKeySize]byte, err error) {
	polys, err := p.decode()
	if err != nil {
		return ddh, key, err
	}
	if index < 1 || index > MaxN {
		return ddh, key, fmt.Errorf("dkg: no index %d", index)
	}
	copy(ddh[:], encode(groups[0].publicAt(polys[0], index)))
	copy(key[:], encode(groups[1].publicAt(polys[1], index)))
	return ddh, key, nil
}

// CheckShare checks both shares of an index against the public polynomials. A node
// does it at every start.
func (p *Public) CheckShare(index int, share, blsShare secret.Bytes) error {
	polys, err := p.decode()
	if err != nil {
		return err
	}
	if index < 1 || index > MaxN {
		return fmt.Errorf("dkg: no index %d", index)
	}
	for g, s := range [2]secret.Bytes{share, blsShare} {
		v, ok := groups[g].decodeScalar(s.Expose())
		if !ok || !groups[g].fits(polys[g], index, v) {
			return fmt.Errorf("%w: %s share of index %d", ErrShare, groups[g].name, index)
		}
	}
	return nil
}
