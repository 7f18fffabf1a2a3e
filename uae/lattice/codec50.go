package lattice

// R50: four coefficients of 50 bits make 25 bytes, four values of 38 bits make
// 19, little endian both.

const (
	q50    = 1<<50 - 1<<14 + 1
	mask50 = 1<<50 - 1
	mask38 = 1<<38 - 1
)

func put50(body []byte, c *[unit]uint64) {
	for i := range 4 {
		v, b := (*[4]uint64)(c[4*i:]), (*[25]byte)(body[25*i:])
		le.PutUint64(b[0:], v[0]|v[1]<<50)
		le.PutUint64(b[8:], v[1]>>14|v[2]<<36)
		le.PutUint64(b[16:], v[2]>>28|v[3]<<22)
		b[24] = byte(v[3] >> 42)
	}
}

func get50(c *[unit]uint64, body []byte) {
	for i := range 4 {
		v, b := (*[4]uint64)(c[4*i:]), (*[25]byte)(body[25*i:])
		w0, w1, w2 := le.Uint64(b[0:]), le.Uint64(b[8:]), le.Uint64(b[16:])
		v[0] = w0 & mask50
		v[1] = (w0>>50 | w1<<14) & mask50
		v[2] = (w1>>36 | w2<<28) & mask50
		v[3] = w2>>22 | uint64(b[24])<<42
	}
}

func putPlain50(m []byte, c *[unit]uint64) {
	for i := range 4 {
		v, b := (*[4]uint64)(c[4*i:]), (*[19]byte)(m[19*i:])
		m0, m1, m2, m3 := v[0]&mask38, v[1]&mask38, v[2]&mask38, v[3]&mask38
		le.PutUint64(b[0:], m0|m1<<38)
		le.PutUint64(b[8:], m1>>26|m2<<12|m3<<50)
		w := m3 >> 14
		b[16], b[17], b[18] = byte(w), byte(w>>8), byte(w>>16)
	}
}

func getPlain50(c *[unit]uint64, m []byte) {
	for i := range 4 {
		v, b := (*[4]uint64)(c[4*i:]), (*[19]byte)(m[19*i:])
		w0, w1 := le.Uint64(b[0:]), le.Uint64(b[8:])
		w2 := uint64(b[16]) | uint64(b[17])<<8 | uint64(b[18])<<16
		v[0] = w0 & mask38
		v[1] = (w0>>38 | w1<<26) & mask38
		v[2] = w1 >> 12 & mask38
		v[3] = w1>>50 | w2<<14
	}
}

func addPlain50(c, f *[unit]uint64, noise *[noiseUnit]byte) {
	_, _, _ = c[0], f[0], noise[0]
	for i := 0; i < unit; i += 2 {
		x := f[i] + c[i]*spacing + errorAt(noise, i) + (middle - eta)
		y := f[i+1] + c[i+1]*spacing + errorAt(noise, i+1) + (middle - eta)
		c[i], c[i+1] = reduce(x, q50, 50), reduce(y, q50, 50)
	}
}

func addError50(c, f *[unit]uint64, noise *[noiseUnit]byte) (tooLarge uint64) {
	_, _, _ = c[0], f[0], noise[0]
	for i := 0; i < unit; i += 2 {
		x, y := c[i], c[i+1]
		tooLarge |= (q50 - 1 - x) | (q50 - 1 - y)
		x += f[i] + errorAt(noise, i) + (q50 - eta)
		y += f[i+1] + errorAt(noise, i+1) + (q50 - eta)
		c[i], c[i+1] = reduce(x, q50, 50), reduce(y, q50, 50)
	}
	return tooLarge
}

func subtract50(c, f *[unit]uint64) (tooLarge, all uint64) {
	_, _ = c[0], f[0]
	for i := 0; i < unit; i += 2 {
		x, y := c[i], c[i+1]
		tooLarge |= (q50 - 1 - x) | (q50 - 1 - y)
		x = reduce(x+8*q50-f[i], q50, 50)
		y = reduce(y+8*q50-f[i+1], q50, 50)
		x, y = divide(x), divide(y)
		c[i], c[i+1] = x, y
		all |= x | y
	}
	return tooLarge, all
}
