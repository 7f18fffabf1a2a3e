package lattice

import (
	"encoding/binary"
	"math/bits"
)

// unit is how many coefficients are packed together, in memory that stays in
// the first cache.
const unit = 16

// A codec packs units. The functions take a slice that holds at least the bytes
// of a unit, and unpacked values may have more bits than a packed one has room
// for only in putPlain, which drops them.
type codec struct {
	plain, body int // bytes of a unit

	put      func(body []byte, c *[unit]uint64)
	get      func(c *[unit]uint64, body []byte)
	putPlain func(m []byte, c *[unit]uint64)
	getPlain func(c *[unit]uint64, m []byte)

	// addPlain sets c to f + encoded c + error, addError to f + c + error and
	// subtract to decoded c - f. The top bit of tooLarge says that a value of c
	// was q or more; all is the bitwise or of what was decoded.
	addPlain func(c, f *[unit]uint64, noise *[noiseUnit]byte)
	addError func(c, f *[unit]uint64, noise *[noiseUnit]byte) (tooLarge uint64)
	subtract func(c, f *[unit]uint64) (tooLarge, all uint64)
}

const maxUnit = 120 // bytes of any unit

var le = binary.LittleEndian

// encode sets body to f + encoded m + error. f holds ring coefficients below 8q
// and noise noiseLen bytes each; body has the length that belongs to m. A last
// unit that is not full is done in a copy with zeros, which are the padding.
func (r *ring) encode(body, m []byte, f []uint64, noise []byte) {
	var c [unit]uint64
	for len(m) >= r.plain {
		r.getPlain(&c, m)
		r.addPlain(&c, (*[unit]uint64)(f), (*[noiseUnit]byte)(noise))
		r.put(body, &c)
		body, m, f, noise = body[r.body:], m[r.plain:], f[unit:], noise[noiseLen*unit:]
	}
	if len(m) > 0 {
		var p, b [maxUnit]byte
		copy(p[:], m)
		r.getPlain(&c, p[:])
		r.addPlain(&c, (*[unit]uint64)(f), (*[noiseUnit]byte)(noise))
		r.put(b[:], &c)
		copy(body, b[:])
		clear(p[:])
	}
	clear(c[:])
}

// update sets out to body + f + error. The result is not zero if a coefficient
// was out of range.
func (r *ring) update(out, body []byte, f []uint64, noise []byte) (tooLarge uint64) {
	var c [unit]uint64
	for len(body) >= r.body {
		r.get(&c, body)
		tooLarge |= r.addError(&c, (*[unit]uint64)(f), (*[noiseUnit]byte)(noise))
		r.put(out, &c)
		out, body, f, noise = out[r.body:], body[r.body:], f[unit:], noise[noiseLen*unit:]
	}
	if len(body) > 0 {
		var b [maxUnit]byte
		copy(b[:], body)
		r.get(&c, b[:])
		tooLarge |= r.addError(&c, (*[unit]uint64)(f), (*[noiseUnit]byte)(noise))
		r.put(b[:], &c)
		copy(out, b[:len(body)])
	}
	return tooLarge >> 63
}

// decode sets m to the decoded body - f. tooLarge is not zero if a coefficient
// was out of range, wrong if a value has too many bits or the padding is not
// zero.
func (r *ring) decode(m, body []byte, f []uint64) (tooLarge, wrong uint64) {
	var c [unit]uint64
	for len(m) >= r.plain {
		r.get(&c, body)
		large, all := r.subtract(&c, (*[unit]uint64)(f))
		tooLarge, wrong = tooLarge|large, wrong|all>>(r.plainBits&63)
		r.putPlain(m, &c)
		m, body, f = m[r.plain:], body[r.body:], f[unit:]
	}
	if len(m) > 0 {
		var p, b [maxUnit]byte
		copy(b[:], body)
		r.get(&c, b[:])
		large, _ := r.subtract(&c, (*[unit]uint64)(f))
		tooLarge |= large
		groups := len(body) / r.groupBody
		for _, v := range c[:groups*r.groupCoefs] {
			wrong |= v >> r.plainBits
		}
		r.putPlain(p[:], &c)
		copy(m, p[:])
		for _, x := range p[len(m) : groups*r.groupPlain] {
			wrong |= uint64(x)
		}
		clear(p[:])
	}
	clear(c[:])
	return tooLarge >> 63, wrong
}

// errorAt is the error of coefficient i of a unit, plus eta.
func errorAt(noise *[noiseUnit]byte, i int) uint64 {
	return uint64(bits.OnesCount64(le.Uint64(noise[noiseLen*i:]) & noiseMask))
}

// divide is floor(v / spacing) for v below 2^60: the quotient by a product with
// 2^75/spacing rounded up, wrong by less than v*spacing/2^75 < 2^-3.
func divide(v uint64) uint64 {
	const inverse = 1<<75/spacing + 1
	h, _ := bits.Mul64(v, inverse)
	return h >> 11
}

// pack and unpack convert a whole ring element with coefficients in [0, q).
func (r *ring) pack(body []byte, f []uint64) {
	for ; len(f) >= unit; body, f = body[r.body:], f[unit:] {
		r.put(body, (*[unit]uint64)(f))
	}
}

func (r *ring) unpack(f []uint64, body []byte) (tooLarge uint64) {
	for ; len(f) >= unit; body, f = body[r.body:], f[unit:] {
		c := (*[unit]uint64)(f)
		r.get(c, body)
		for _, v := range c {
			tooLarge |= r.q - 1 - v
		}
	}
	return tooLarge >> 63
}
