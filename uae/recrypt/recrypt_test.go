package recrypt

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gtank/ristretto255"

	"github.com/seed-a893640b/tae/uae"
	"github.com/seed-a893640b/tae/uae/internal/vectest"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func fixedRandom(b []byte) *random { return expand((*[152]byte)(b)) }

func TestVectors(t *testing.T) {
	s := New()
	vectest.Run(t, "recrypt.json", vectest.Subject{
		Name: "recrypt", Scheme: s, ID: uae.ReCrypt, RandomLen: 152,
		Encrypt: func(k uae.Key, m, aad, r []byte) ([]byte, error) {
			return s.encrypt(nil, k, m, aad, fixedRandom(r))
		},
		ReKeyGen: func(k1, k2 uae.Key, h, r []byte) ([]byte, error) {
			return s.reKeyGen(k1, k2, h, fixedRandom(r))
		},
		Lengths: []int{0, 1, 30, 31, 100},
		Updates: 3,
	})
}

func TestBlockEncoding(t *testing.T) {
	e := ristretto255.NewElement()
	tries := 0
	for i := range 400 {
		m := bytes.Repeat([]byte{byte(i)}, i%(BlockSize+1))
		encode(e, m)
		b := e.Encode(nil)
		if !bytes.Equal(b[1:1+len(m)], m) || !bytes.Equal(b[1+len(m):31], make([]byte, 30-len(m))) {
			t.Fatalf("block %d does not hold its message", i)
		}
		if b[0]&1 != 0 || b[31]>>6 != 0 {
			t.Fatalf("block %d: counter out of range", i)
		}
		tries += int(b[0]>>1) + int(b[31])<<7 + 1
	}
	if mean := float64(tries) / 400; mean < 3 || mean > 5 {
		t.Errorf("%.2f tries per block, expected 4", mean)
	}
}

// Tokens have one length and no field that depends on age, and an updated body
// is a fresh one: the message plus a uniform multiple. So even a holder of
// tokens cannot tell ages. The share y is uniform again after every update.
func TestTokenHidesAge(t *testing.T) {
	s := New()
	k := s.KeyGen()
	ct := must(s.Encrypt(nil, k, make([]byte, 10), nil))
	seen := map[string]bool{}
	for range 4 {
		token := must(s.ReKeyGen(k, k, ct[:HeaderSize]))
		if len(token) != TokenSize || !bytes.Equal(token[:8], []byte("UAET\x01\x03\x00\x00")) {
			t.Fatal("tokens differ in form")
		}
		y := string(ct[HeaderSize : HeaderSize+shareSize])
		if seen[y] {
			t.Error("share repeats")
		}
		seen[y] = true
		ct = must(s.ReEncrypt(nil, token, ct))
	}
}

// A key without the body opens the header only, which has neither the body's key
// nor a hash of the message: with a guess of the message nothing can be checked.
func TestKeyWithoutBody(t *testing.T) {
	s := New()
	k, m := s.KeyGen(), []byte("yes")
	ct := must(s.Encrypt(nil, k, m, nil))
	st, _, err := open(k, ct[:HeaderSize])
	if err != nil {
		t.Fatal(err)
	}
	h := newMessageHash(nil)
	_, _ = h.Write(m)
	if tag(h, st.chi).Equal(st.tau) == 1 {
		t.Error("the header alone confirms a guess")
	}
	y := ristretto255.NewScalar()
	if err := y.Decode(ct[HeaderSize : HeaderSize+shareSize]); err != nil {
		t.Fatal(err)
	}
	if tag(h, y.Subtract(st.chi, y)).Equal(st.tau) != 1 {
		t.Error("with the body it should")
	}
}

func TestBadBodies(t *testing.T) {
	s := New()
	k := s.KeyGen()
	ct := must(s.Encrypt(nil, k, make([]byte, 70), nil))
	token := must(s.ReKeyGen(k, k, ct[:HeaderSize]))
	for _, at := range []int{0, shareSize, shareSize + pointSize, shareSize + 2*pointSize} {
		bad := slices.Clone(ct)
		for i := range 32 {
			bad[HeaderSize+at+i] = 0xff // neither scalar nor element
		}
		if _, err := s.ReEncrypt(nil, token, bad); !errors.Is(err, uae.ErrFormat) {
			t.Errorf("at %d: ReEncrypt: %v", at, err)
		}
		if m, err := s.Decrypt(nil, k, bad, nil); !errors.Is(err, uae.ErrFormat) || m != nil {
			t.Errorf("at %d: Decrypt: %v", at, err)
		}
	}
	swapped := slices.Clone(ct)
	b := swapped[HeaderSize+shareSize:]
	copy(b, ct[HeaderSize+shareSize+pointSize:][:pointSize])
	copy(b[pointSize:], ct[HeaderSize+shareSize:][:pointSize])
	if _, err := s.Decrypt(nil, k, swapped, nil); err != uae.ErrOpen {
		t.Errorf("swapped blocks: %v", err)
	}
}

// The attack of ePrint 2020/222 section 5.4: a server that re-encrypts whatever
// bodies it is shown under a token. The game: the challenge was encrypted under
// k1, the adversary has k2, and the oracle refuses to move the challenge itself
// to k2. It moves a changed one, and the change can be taken back. This is why
// integrity is called weak; in package nested the same adversary fails.
func TestReEncryptionOracleAttack(t *testing.T) {
	s := New()
	k1, k2 := s.KeyGen(), s.KeyGen()
	challenge := must(s.Encrypt(nil, k1, []byte("secret"), nil))
	token := must(s.ReKeyGen(k1, k2, challenge[:HeaderSize]))
	oracle := func(ct []byte) []byte {
		if bytes.Equal(ct, challenge) {
			return nil
		}
		return must(s.ReEncrypt(nil, token, ct))
	}
	change := hashToPoint("attack", nil)
	shift := func(ct []byte, op func(e *ristretto255.Element)) []byte {
		out := slices.Clone(ct)
		at := HeaderSize + shareSize
		e := ristretto255.NewElement()
		if err := e.Decode(out[at : at+pointSize]); err != nil {
			t.Fatal(err)
		}
		op(e)
		e.Encode(out[at:at])
		return out
	}
	asked := shift(challenge, func(e *ristretto255.Element) { e.Add(e, change) })
	answer := oracle(asked)
	if _, err := s.Decrypt(nil, k2, answer, nil); err != uae.ErrOpen {
		t.Errorf("the answer itself is ill-formed, but: %v", err)
	}
	moved := shift(answer, func(e *ristretto255.Element) { e.Subtract(e, change) })
	if m, err := s.Decrypt(nil, k2, moved, nil); err != nil || string(m) != "secret" {
		t.Errorf("the attack should work: %q, %v", m, err)
	}
}

func fixed() (uae.Key, []byte) {
	k := must(uae.ParseKey(append([]byte("UAEK\x01\x03\x00\x00"), make([]byte, 32)...)))
	r := fixedRandom(bytes.Repeat([]byte{7}, 152))
	return k, must(New().encrypt(nil, k, []byte("message"), []byte("aad"), r))
}

func FuzzRecryptToken(f *testing.F) {
	s := New()
	k, ct := fixed()
	f.Add(must(s.reKeyGen(k, k, ct[:HeaderSize], fixedRandom(make([]byte, 152)))))
	f.Fuzz(func(t *testing.T, b []byte) {
		tok, err := parseToken(b)
		if err != nil {
			if _, err := s.ReEncrypt(nil, b, ct); err == nil {
				t.Fatal("ReEncrypt takes a token that does not parse")
			}
			return
		}
		again := append([]byte(nil), b[:40]...)
		again = tok.y.Encode(tok.x.Encode(append(again, tok.Header...)))
		if !bytes.Equal(append(again, b[len(b)-4:]...), b) {
			t.Fatal("not canonical")
		}
	})
}

func FuzzRecryptCiphertext(f *testing.F) {
	s := New()
	k, ct := fixed()
	f.Add(ct)
	f.Add(ct[:HeaderSize])
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := s.Decrypt(nil, k, b, []byte("aad"))
		if err == nil && string(m) != "message" {
			t.Fatalf("wrong plaintext %q", m)
		}
		if err != nil && (m != nil || errors.Is(err, uae.ErrFormat) == errors.Is(err, uae.ErrOpen)) && !errors.Is(err, uae.ErrScheme) && !errors.Is(err, uae.ErrVersion) {
			t.Fatalf("%q, %v", m, err)
		}
	})
}

// A body is 32-byte scalars and elements; both decoders must be canonical.
func FuzzRecryptBlock(f *testing.F) {
	_, ct := fixed()
	f.Add(ct[HeaderSize:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != 64 {
			return
		}
		y, e := ristretto255.NewScalar(), ristretto255.NewElement()
		if y.Decode(b[:32]) == nil && !bytes.Equal(y.Encode(nil), b[:32]) {
			t.Fatal("scalar not canonical")
		}
		if e.Decode(b[32:]) == nil && !bytes.Equal(e.Encode(nil), b[32:]) {
			t.Fatal("element not canonical")
		}
	})
}

func Example() {
	scheme := New()
	oldKey, newKey := scheme.KeyGen(), scheme.KeyGen()
	stored, err := scheme.Encrypt(nil, oldKey, []byte("total: 12"), nil)
	if err != nil {
		panic(err)
	}
	token, err := scheme.ReKeyGen(oldKey, newKey, stored[:scheme.HeaderSize()])
	if err != nil {
		panic(err)
	}
	if stored, err = scheme.ReEncrypt(stored[:0], token, stored); err != nil {
		panic(err)
	}
	message, err := scheme.Decrypt(nil, newKey, stored, nil)
	fmt.Printf("%s, %v\n", message, err)
	// Output: total: 12, <nil>
}
