package lattice

// Four coefficients of 50 bits make 25 bytes, four values of 38 bits make 19,
// little endian both.

const (
	q50    = 1<<50 - 1<<14 + 1
	mask50 = 1<<50 - 1
	mask38 = 1<<38 - 1
)

func put50(b *[25]byte, c *[4]uint64) {
	le.PutUint64(b[0:], c[0]|c[1]<<50)
	le.PutUint64(b[8:], c[1]>>14|c[2]<<36)
	le.PutUint64(b[16:], c[2]>>28|c[3]<<22)
	b[24] = byte(c[3] >> 42)
}

func get50(b *[25]byte) (c [4]uint64) {
	w0, w1, w2, w3 := le.Uint64(b[0:]), le.Uint64(b[8:]), le.Uint64(b[16:]), uint64(b[24])
	c[0] = w0 & mask50
	c[1] = (w0>>50 | w1<<14) & mask50
	c[2] = (w1>>36 | w2<<28) & mask50
	c[3] = w2>>22 | w3<<42
	return c
}

func getPlain50(b *[19]byte) (m [4]uint64) {
	w0, w1 := le.Uint64(b[0:]), le.Uint64(b[8:])
	w2 := uint64(b[16]) | uint64(b[17])<<8 | uint64(b[18])<<16
	m[0] = w0 & mask38
	m[1] = (w0>>38 | w1<<26) & mask38
	m[2] = w1 >> 12 & mask38
	m[3] = w1>>50 | w2<<14
	return m
}

func putPlain50(b *[19]byte, m *[4]uint64) {
	le.PutUint64(b[0:], m[0]|m[1]<<38)
	le.PutUint64(b[8:], m[1]>>26|m[2]<<12|m[3]<<50)
	w := m[3] >> 14
	b[16], b[17], b[18] = byte(w), byte(w>>8), byte(w>>16)
}

// noise4 is the errors of four coefficients, each plus eta.
func noise4(b *[26]byte) (e [4]uint64) {
	e[0], e[1] = noise2((*[14]byte)(b[:14]))
	e[2], e[3] = noise2((*[14]byte)(b[12:]))
	return e
}

func tooLarge50(c *[4]uint64) uint64 {
	return (q50-1-c[0])>>63 | (q50-1-c[1])>>63 | (q50-1-c[2])>>63 | (q50-1-c[3])>>63
}

func encode50(body, m []byte, f []uint64, noise []byte) {
	for len(body) >= 25 && len(m) >= 19 && len(f) >= 4 && len(noise) >= 26 {
		c, e := getPlain50((*[19]byte)(m)), noise4((*[26]byte)(noise))
		for i := range c {
			c[i] = reduce(f[i]+c[i]*spacing+middle-eta+e[i], q50, 50)
		}
		put50((*[25]byte)(body), &c)
		body, m, f, noise = body[25:], m[19:], f[4:], noise[24:]
	}
}

func update50(out, body []byte, f []uint64, noise []byte) (tooLarge uint64) {
	for len(out) >= 25 && len(body) >= 25 && len(f) >= 4 && len(noise) >= 26 {
		c, e := get50((*[25]byte)(body)), noise4((*[26]byte)(noise))
		tooLarge |= tooLarge50(&c)
		for i := range c {
			c[i] = reduce(f[i]+c[i]+q50-eta+e[i], q50, 50)
		}
		put50((*[25]byte)(out), &c)
		out, body, f, noise = out[25:], body[25:], f[4:], noise[24:]
	}
	return tooLarge
}

func decode50(m, body []byte, f []uint64) (tooLarge, wrong uint64) {
	for len(m) >= 19 && len(body) >= 25 && len(f) >= 4 {
		c := get50((*[25]byte)(body))
		tooLarge |= tooLarge50(&c)
		for i := range c {
			c[i] = reduce(c[i]+8*q50-f[i], q50, 50) / spacing
			wrong |= c[i] >> 38
			c[i] &= mask38
		}
		putPlain50((*[19]byte)(m), &c)
		m, body, f = m[19:], body[25:], f[4:]
	}
	return tooLarge, wrong
}

func pack50(body []byte, f []uint64) {
	for len(body) >= 25 && len(f) >= 4 {
		put50((*[25]byte)(body), (*[4]uint64)(f))
		body, f = body[25:], f[4:]
	}
}

func unpack50(f []uint64, body []byte) (tooLarge uint64) {
	for len(body) >= 25 && len(f) >= 4 {
		c := get50((*[25]byte)(body))
		tooLarge |= tooLarge50(&c)
		copy(f, c[:])
		body, f = body[25:], f[4:]
	}
	return tooLarge
}
