package lattice

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/seed-a893640b/tae/uae"
	"github.com/seed-a893640b/tae/uae/internal/vectest"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestVectors(t *testing.T) {
	subject := func(name string, p Params, lengths ...int) vectest.Subject {
		s := must(New(p))
		return vectest.Subject{
			Name: name, Scheme: s, ID: uae.Lattice, Param: uint16(p), RandomLen: len(random{}),
			Encrypt: func(k uae.Key, m, aad, r []byte) ([]byte, error) {
				return s.encrypt(nil, k, m, aad, (*random)(r))
			},
			ReKeyGen: func(k1, k2 uae.Key, h, r []byte) ([]byte, error) {
				return s.reKeyGen(k1, k2, h, (*random)(r))
			},
			Lengths: lengths,
			Updates: 3,
		}
	}
	vectest.Run(t, "lattice.json",
		subject("R60", R60, 0, 1, 12, 100, 192, 24576, 24577, 24576*(cachedBlocks+1)+5),
		subject("R50", R50, 0, 1, 19, 100, 9728, 9729))
}

func move(s *Scheme, k1, k2 uae.Key, ct []byte) []byte {
	return must(s.ReEncrypt(nil, must(s.ReKeyGen(k1, k2, ct[:HeaderSize])), ct))
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		p           Params
		token, k100 int
	}{{R60, 30934, HeaderSize + 15*9}, {R50, 13014, HeaderSize + 25*6}} {
		s := must(New(c.p))
		k := s.KeyGen()
		ct := must(s.Encrypt(nil, k, make([]byte, 100), nil))
		token := must(s.ReKeyGen(k, k, ct[:HeaderSize]))
		if HeaderSize != 138 || len(ct) != c.k100 || len(token) != c.token || len(token) != s.TokenSize() {
			t.Errorf("%d: header %d, ciphertext %d, token %d", c.p, HeaderSize, len(ct), len(token))
		}
	}
}

// A thousand updates through the whole scheme, then no more.
func TestAllUpdates(t *testing.T) {
	updates := MaxUpdates
	for _, p := range []Params{R60, R50} {
		s := must(New(p))
		k, m := s.KeyGen(), bytes.Repeat([]byte{0xff}, 300)
		ct := must(s.Encrypt(nil, k, m, nil))
		if testing.Short() {
			updates = 50
		}
		for range updates {
			ct = move(s, k, k, ct)
		}
		if got, err := s.Decrypt(nil, k, ct, nil); err != nil || !bytes.Equal(got, m) {
			t.Fatalf("after %d updates: %v", updates, err)
		}
		if left := must(s.Remaining(k, ct[:HeaderSize])); left != MaxUpdates-updates {
			t.Errorf("%d updates remain", left)
		}
		if testing.Short() {
			continue
		}
		if _, err := s.ReKeyGen(k, k, ct[:HeaderSize]); err != uae.ErrOpen {
			t.Errorf("update %d: %v", updates+1, err)
		}
	}
}

// The count of updates in the header is what bounds them. No owner makes a header
// with a larger count, and none is opened.
func TestUpdateCounter(t *testing.T) {
	s := must(New(R50))
	k := s.KeyGen()
	key := must(k.ExposeRoot(uae.Lattice, uint16(R50)))
	for _, c := range []struct {
		age          int
		open, update error
	}{{MaxUpdates - 1, nil, nil}, {MaxUpdates, nil, uae.ErrOpen}, {MaxUpdates + 1, uae.ErrOpen, uae.ErrOpen}, {65535, uae.ErrOpen, uae.ErrOpen}} {
		r := draw()
		ct := must(s.encrypt(nil, k, []byte("m"), nil, r))
		st, p, err := s.open(k, ct[:HeaderSize])
		if err != nil {
			t.Fatal(err)
		}
		st.age = c.age
		s.header(ct[:0], key, p.Length, &st, r.salt())
		if _, err := s.Decrypt(nil, k, ct, nil); err != c.open {
			t.Errorf("age %d: Decrypt: %v", c.age, err)
		}
		if _, err := s.ReKeyGen(k, k, ct[:HeaderSize]); err != c.update {
			t.Errorf("age %d: ReKeyGen: %v", c.age, err)
		}
	}
}

// The worst errors, all of one sign: 96 updates decode, 98 errors more than
// middle do not, and that is an error of the padding or the hash, never another
// message unseen.
func TestErrorBudget(t *testing.T) {
	for _, p := range []Params{R60, R50} {
		r := must(newRing(p))
		for _, fill := range []byte{0x00, 0xff} {
			noise := bytes.Repeat([]byte{fill}, noiseUnit) // +21 or -21 each time
			for _, message := range []byte{0x00, 0x55, 0xff} {
				m := bytes.Repeat([]byte{message}, r.plain)
				f := make([]uint64, unit)
				body, got := make([]byte, r.body), make([]byte, r.plain)
				r.encode(body, m, f, noise)
				for update := 1; update <= 98; update++ {
					r.update(body, body, f, noise)
					large, wrong := r.decode(got, body, f)
					same := bytes.Equal(got, m) && wrong == 0
					if large != 0 || same != ((update+1)*eta <= middle) {
						t.Fatalf("%d: fill %x, message %x: after %d updates right is %v", p, fill, message, update, same)
					}
				}
			}
		}
	}
}

// Any message comes back with its length: no padding that a message could look
// like. The published code cuts or extends 10 of 256 constant fills.
func TestNoAmbiguousPadding(t *testing.T) {
	for _, p := range []Params{R60, R50} {
		s := must(New(p))
		k := s.KeyGen()
		check := func(m []byte) {
			ct := must(s.Encrypt(nil, k, m, nil))
			if got, err := s.Decrypt(nil, k, ct, nil); err != nil || !bytes.Equal(got, m) {
				t.Fatalf("%d: %d bytes of %x: %v", p, len(m), m[0], err)
			}
		}
		check(bytes.Repeat([]byte{1}, 1100))
		check(bytes.Repeat([]byte{0xfb}, 300))
		for fill := range 256 {
			check(bytes.Repeat([]byte{byte(fill)}, 12*19))
		}
		for n := range 200 {
			check(append(bytes.Repeat([]byte{byte(n)}, n), 0))
		}
	}
}

// The caller's message is read only, up to and past its end.
func TestMessageIsNotTouched(t *testing.T) {
	s := must(New(R60))
	buf := bytes.Repeat([]byte{0xa5}, 200)
	must(s.Encrypt(nil, s.KeyGen(), buf[:101], nil))
	if !bytes.Equal(buf, bytes.Repeat([]byte{0xa5}, 200)) {
		t.Error("Encrypt writes to the message or behind it")
	}
}

// A coefficient of q or more is refused by name, wherever it is.
func TestCoefficientOutOfRange(t *testing.T) {
	for _, p := range []Params{R60, R50} {
		s := must(New(p))
		k := s.KeyGen()
		n := s.r.blockPlain() + 500
		ct := must(s.Encrypt(nil, k, make([]byte, n), nil))
		token := must(s.ReKeyGen(k, k, ct[:HeaderSize]))
		groups := s.r.groups(n)
		for _, g := range []int{0, 1, groups / 2, groups - 2, groups - 1} {
			for _, v := range []uint64{s.r.q, s.r.q + 1, 1<<uint(p) - 1} {
				for i := range s.r.groupCoefs {
					bad := slices.Clone(ct)
					s.setCoefficient(bad, g*s.r.groupCoefs+i, v)
					if _, err := s.ReEncrypt(nil, token, bad); !errors.Is(err, uae.ErrFormat) {
						t.Fatalf("%d: group %d, %d: ReEncrypt: %v", p, g, v, err)
					}
					if m, err := s.Decrypt(nil, k, bad, nil); !errors.Is(err, uae.ErrFormat) || m != nil {
						t.Fatalf("%d: group %d, %d: Decrypt: %v", p, g, v, err)
					}
				}
			}
			good := slices.Clone(ct)
			s.setCoefficient(good, g*s.r.groupCoefs, s.r.q-1)
			if _, err := s.ReEncrypt(nil, token, good); err != nil {
				t.Fatalf("%d: q-1 refused: %v", p, err)
			}
		}
	}
}

// coefficient and setCoefficient reach into the body of a ciphertext.
func (s *Scheme) coefficient(ct []byte, i int) uint64 {
	_, c := s.group(ct, i)
	return c[i%s.r.groupCoefs]
}

func (s *Scheme) setCoefficient(ct []byte, i int, v uint64) {
	b, c := s.group(ct, i)
	c[i%s.r.groupCoefs] = v
	var packed [maxUnit]byte
	s.r.put(packed[:], &c)
	copy(b, packed[:])
}

func (s *Scheme) group(ct []byte, i int) (b []byte, c [unit]uint64) {
	b = ct[HeaderSize+i/s.r.groupCoefs*s.r.groupBody:][:s.r.groupBody]
	var packed [maxUnit]byte
	copy(packed[:], b)
	s.r.get(&c, packed[:])
	return b, c
}

// A bit is malleable exactly if it only moves the noise: what a flip does to the
// coefficient decides, so most of the low 12 bits can be changed unseen and no
// bit above bit 12 can.
func TestWhichBitsAreMalleable(t *testing.T) {
	s := must(New(R60))
	k, m := s.KeyGen(), bytes.Repeat([]byte{0x3c}, 24)
	ct := must(s.Encrypt(nil, k, m, nil))
	seen := 0
	for bit := range 60 {
		bad := slices.Clone(ct)
		s.setCoefficient(bad, 1, s.coefficient(bad, 1)^1<<bit)
		if s.coefficient(bad, 1) >= s.r.q {
			continue
		}
		got, err := s.Decrypt(nil, k, bad, nil)
		if err == nil && !bytes.Equal(got, m) {
			t.Fatalf("bit %d: wrong plaintext", bit)
		}
		if err == nil {
			seen++
		}
		if err == nil && bit >= 12 {
			t.Errorf("bit %d is malleable", bit)
		}
		if err != nil && bit < 10 {
			t.Errorf("bit %d within the noise is refused", bit)
		}
	}
	if seen == 0 || seen > 12 {
		t.Errorf("%d malleable bits", seen)
	}
}
