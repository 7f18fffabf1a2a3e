package lattice

// R60: 16 coefficients of 60 bits make 15 words of 64, 16 values of 48 bits make
// 12, all little endian. The word that holds the end of coefficient k holds the
// beginning of the next. Two coefficients make whole bytes.

const (
	q60    = 1<<60 - 1<<14 + 1
	mask60 = 1<<60 - 1
	mask48 = 1<<48 - 1
)

func put60(b []byte, c *[unit]uint64) {
	w := (*[120]byte)(b)
	le.PutUint64(w[0:], c[0]|c[1]<<60)
	le.PutUint64(w[8:], c[1]>>4|c[2]<<56)
	le.PutUint64(w[16:], c[2]>>8|c[3]<<52)
	le.PutUint64(w[24:], c[3]>>12|c[4]<<48)
	le.PutUint64(w[32:], c[4]>>16|c[5]<<44)
	le.PutUint64(w[40:], c[5]>>20|c[6]<<40)
	le.PutUint64(w[48:], c[6]>>24|c[7]<<36)
	le.PutUint64(w[56:], c[7]>>28|c[8]<<32)
	le.PutUint64(w[64:], c[8]>>32|c[9]<<28)
	le.PutUint64(w[72:], c[9]>>36|c[10]<<24)
	le.PutUint64(w[80:], c[10]>>40|c[11]<<20)
	le.PutUint64(w[88:], c[11]>>44|c[12]<<16)
	le.PutUint64(w[96:], c[12]>>48|c[13]<<12)
	le.PutUint64(w[104:], c[13]>>52|c[14]<<8)
	le.PutUint64(w[112:], c[14]>>56|c[15]<<4)
}

func get60(c *[unit]uint64, b []byte) {
	w := (*[120]byte)(b)
	c[0] = le.Uint64(w[0:]) & mask60
	c[1] = (le.Uint64(w[0:])>>60 | le.Uint64(w[8:])<<4) & mask60
	c[2] = (le.Uint64(w[8:])>>56 | le.Uint64(w[16:])<<8) & mask60
	c[3] = (le.Uint64(w[16:])>>52 | le.Uint64(w[24:])<<12) & mask60
	c[4] = (le.Uint64(w[24:])>>48 | le.Uint64(w[32:])<<16) & mask60
	c[5] = (le.Uint64(w[32:])>>44 | le.Uint64(w[40:])<<20) & mask60
	c[6] = (le.Uint64(w[40:])>>40 | le.Uint64(w[48:])<<24) & mask60
	c[7] = (le.Uint64(w[48:])>>36 | le.Uint64(w[56:])<<28) & mask60
	c[8] = (le.Uint64(w[56:])>>32 | le.Uint64(w[64:])<<32) & mask60
	c[9] = (le.Uint64(w[64:])>>28 | le.Uint64(w[72:])<<36) & mask60
	c[10] = (le.Uint64(w[72:])>>24 | le.Uint64(w[80:])<<40) & mask60
	c[11] = (le.Uint64(w[80:])>>20 | le.Uint64(w[88:])<<44) & mask60
	c[12] = (le.Uint64(w[88:])>>16 | le.Uint64(w[96:])<<48) & mask60
	c[13] = (le.Uint64(w[96:])>>12 | le.Uint64(w[104:])<<52) & mask60
	c[14] = (le.Uint64(w[104:])>>8 | le.Uint64(w[112:])<<56) & mask60
	c[15] = le.Uint64(w[112:]) >> 4
}

func putPlain60(m []byte, c *[unit]uint64) {
	w := (*[96]byte)(m)
	for i := range 4 {
		v, p := (*[4]uint64)(c[4*i:]), (*[24]byte)(w[24*i:])
		le.PutUint64(p[0:], v[0]&mask48|v[1]<<48)
		le.PutUint64(p[8:], v[1]>>16&(1<<32-1)|v[2]<<32)
		le.PutUint64(p[16:], v[2]>>32&(1<<16-1)|v[3]<<16)
	}
}

func getPlain60(c *[unit]uint64, m []byte) {
	w := (*[96]byte)(m)
	for i := range 4 {
		v, p := (*[4]uint64)(c[4*i:]), (*[24]byte)(w[24*i:])
		w0, w1, w2 := le.Uint64(p[0:]), le.Uint64(p[8:]), le.Uint64(p[16:])
		v[0] = w0 & mask48
		v[1] = (w0>>48 | w1<<16) & mask48
		v[2] = (w1>>32 | w2<<32) & mask48
		v[3] = w2 >> 16
	}
}

func addPlain60(c, f *[unit]uint64, noise *[noiseUnit]byte) {
	_, _, _ = c[0], f[0], noise[0]
	for i := 0; i < unit; i += 2 {
		x := f[i] + c[i]*spacing + errorAt(noise, i) + (middle - eta)
		y := f[i+1] + c[i+1]*spacing + errorAt(noise, i+1) + (middle - eta)
		c[i], c[i+1] = reduce(x, q60, 60), reduce(y, q60, 60)
	}
}

func addError60(c, f *[unit]uint64, noise *[noiseUnit]byte) (tooLarge uint64) {
	_, _, _ = c[0], f[0], noise[0]
	for i := 0; i < unit; i += 2 {
		x, y := c[i], c[i+1]
		tooLarge |= (q60 - 1 - x) | (q60 - 1 - y)
		x += f[i] + errorAt(noise, i) + (q60 - eta)
		y += f[i+1] + errorAt(noise, i+1) + (q60 - eta)
		c[i], c[i+1] = reduce(x, q60, 60), reduce(y, q60, 60)
	}
	return tooLarge
}

func subtract60(c, f *[unit]uint64) (tooLarge, all uint64) {
	_, _ = c[0], f[0]
	for i := 0; i < unit; i += 2 {
		x, y := c[i], c[i+1]
		tooLarge |= (q60 - 1 - x) | (q60 - 1 - y)
		x = reduce(x+8*q60-f[i], q60, 60)
		y = reduce(y+8*q60-f[i+1], q60, 60)
		x, y = divide(x), divide(y)
		c[i], c[i+1] = x, y
		all |= x | y
	}
	return tooLarge, all
}
