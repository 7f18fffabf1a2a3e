package lattice

import (
	"fmt"

	"github.com/seed-a893640b/tae/uae"
)

// Params names a parameter set. Security is that of ring learning with errors,
// from the lattice estimator with the MATZOV cost model (docs/uae.md section 6).
type Params uint16

const (
	// R60 is the default: n = 4096, q = 2^60 - 2^14 + 1, 48 message bits in a
	// coefficient; 251 bits of security, ciphertext 1.25 times the message.
	R60 Params = 60

	// R50 has shorter tokens, for messages up to about 16 kB: n = 2048,
	// q = 2^50 - 2^14 + 1, 38 bits; 143 bits of security, 1.32 times.
	R50 Params = 50
)

// Both sets share the error and the encoding of a coefficient: value*spacing +
// middle + error, where spacing = floor(q / 2^bits) is such that the largest
// value cannot wrap. The error of one encryption or update is a sum of 42 bits
// less 21, the centred binomial distribution with eta = 21. Decoding is right
// while the sum of all errors is at most middle: certain for 96 updates, and
// wrong with probability 2^-292 per coefficient after MaxUpdates.
const (
	spacing = 4095
	middle  = 2047
	eta     = 21

	noiseLen  = 6         // bytes of stream per error
	noiseMask = 1<<42 - 1 // the bits of them that count
	noiseUnit = noiseLen*unit + 2
)

// set is what differs between the parameter sets.
type set struct {
	param      Params
	n          int
	q, psi     uint64 // psi = g^((q-1)/2n) for the smallest non-residue g
	plainBits  int    // message bits in a coefficient
	groupCoefs int    // coefficients that make whole bytes together
	groupPlain int    // message bytes of a group
	groupBody  int    // body bytes of a group
	codec
}

func newSet(p Params) (set, error) {
	switch p {
	case R60:
		return set{
			param: R60, n: 4096, q: q60, psi: 431606828070683274,
			plainBits: 48, groupCoefs: 2, groupPlain: 12, groupBody: 15,
			codec: codec{96, 120, put60, get60, putPlain60, getPlain60, addPlain60, addError60, subtract60},
		}, nil
	case R50:
		return set{
			param: R50, n: 2048, q: q50, psi: 765727830662934,
			plainBits: 38, groupCoefs: 4, groupPlain: 19, groupBody: 25,
			codec: codec{76, 100, put50, get50, putPlain50, getPlain50, addPlain50, addError50, subtract50},
		}, nil
	}
	return set{}, fmt.Errorf("%w: lattice parameter set %d", uae.ErrScheme, p)
}

// blockPlain and blockBody are the bytes of message and body in a ring element.
func (s *set) blockPlain() int { return s.n / s.groupCoefs * s.groupPlain }
func (s *set) blockBody() int  { return s.n / s.groupCoefs * s.groupBody }

func (s *set) groups(n int) int   { return (n + s.groupPlain - 1) / s.groupPlain }
func (s *set) bodySize(n int) int { return s.groups(n) * s.groupBody }
func (s *set) blocks(n int) int   { return (n + s.blockPlain() - 1) / s.blockPlain() }
