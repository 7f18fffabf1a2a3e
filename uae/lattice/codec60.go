package lattice

import (
	"encoding/binary"
	"math/bits"
)

// Two coefficients of 60 bits make 15 bytes, two values of 48 bits make 12,
// little endian both.

const (
	q60    = 1<<60 - 1<<14 + 1
	mask60 = 1<<60 - 1
	mask48 = 1<<48 - 1
	mask42 = 1<<42 - 1
)

var le = binary.LittleEndian

func put60(b *[15]byte, c0, c1 uint64) {
	lo := c0 | c1<<60
	le.PutUint64(b[7:], c1>>4<<8|lo>>56)
	le.PutUint64(b[:], lo)
}

func get60(b *[15]byte) (c0, c1 uint64) {
	lo := le.Uint64(b[:])
	return lo & mask60, le.Uint64(b[7:])>>8<<4 | lo>>60
}

// noise2 is the errors of two coefficients, each plus eta.
func noise2(b *[14]byte) (e0, e1 uint64) {
	e0 = uint64(bits.OnesCount64(le.Uint64(b[:]) & mask42))
	e1 = uint64(bits.OnesCount64(le.Uint64(b[6:]) & mask42))
	return e0, e1
}

func encode60(body, m []byte, f []uint64, noise []byte) {
	for len(body) >= 15 && len(m) >= 12 && len(f) >= 2 && len(noise) >= 14 {
		in := (*[12]byte)(m)
		m0, m1 := le.Uint64(in[:])&mask48, le.Uint64(in[4:])>>16
		e0, e1 := noise2((*[14]byte)(noise))
		c0 := reduce(f[0]+m0*spacing+middle-eta+e0, q60, 60)
		c1 := reduce(f[1]+m1*spacing+middle-eta+e1, q60, 60)
		put60((*[15]byte)(body), c0, c1)
		body, m, f, noise = body[15:], m[12:], f[2:], noise[12:]
	}
}

func update60(out, body []byte, f []uint64, noise []byte) (tooLarge uint64) {
	for len(out) >= 15 && len(body) >= 15 && len(f) >= 2 && len(noise) >= 14 {
		c0, c1 := get60((*[15]byte)(body))
		tooLarge |= (q60-1-c0)>>63 | (q60-1-c1)>>63
		e0, e1 := noise2((*[14]byte)(noise))
		c0 = reduce(f[0]+c0+q60-eta+e0, q60, 60)
		c1 = reduce(f[1]+c1+q60-eta+e1, q60, 60)
		put60((*[15]byte)(out), c0, c1)
		out, body, f, noise = out[15:], body[15:], f[2:], noise[12:]
	}
	return tooLarge
}

func decode60(m, body []byte, f []uint64) (tooLarge, wrong uint64) {
	for len(m) >= 12 && len(body) >= 15 && len(f) >= 2 {
		c0, c1 := get60((*[15]byte)(body))
		tooLarge |= (q60-1-c0)>>63 | (q60-1-c1)>>63
		m0 := reduce(c0+8*q60-f[0], q60, 60) / spacing
		m1 := reduce(c1+8*q60-f[1], q60, 60) / spacing
		wrong |= (m0 | m1) >> 48
		out := (*[12]byte)(m)
		le.PutUint64(out[:], m0|m1<<48)
		le.PutUint32(out[8:], uint32(m1>>16))
		m, body, f = m[12:], body[15:], f[2:]
	}
	return tooLarge, wrong
}

func pack60(body []byte, f []uint64) {
	for len(body) >= 15 && len(f) >= 2 {
		put60((*[15]byte)(body), f[0], f[1])
		body, f = body[15:], f[2:]
	}
}

func unpack60(f []uint64, body []byte) (tooLarge uint64) {
	for len(body) >= 15 && len(f) >= 2 {
		f[0], f[1] = get60((*[15]byte)(body))
		tooLarge |= (q60-1-f[0])>>63 | (q60-1-f[1])>>63
		body, f = body[15:], f[2:]
	}
	return tooLarge
}
