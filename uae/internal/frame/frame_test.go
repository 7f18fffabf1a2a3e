package frame

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/seed-a893640b/tae/uae"
)

var testKey = bytes.Repeat([]byte{9}, 32)

func testHeader(plain []byte) []byte {
	p := Prefix{Scheme: uae.Nested, Param: 20, Length: 5}
	return SealHeader(nil, testKey, new([SaltSize]byte), p, plain)
}

func TestHeader(t *testing.T) {
	for n := range 97 {
		plain := bytes.Repeat([]byte{3}, n)
		h := testHeader(plain)
		if len(h) != Overhead+n {
			t.Fatalf("%d bytes", len(h))
		}
		got, err := OpenHeader(nil, testKey, h)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("%d: %v", n, err)
		}
		for bit := range 8 * len(h) {
			bad := slices.Clone(h)
			bad[bit/8] ^= 1 << (bit % 8)
			if got, err := OpenHeader(nil, testKey, bad); err != uae.ErrOpen || got != nil {
				t.Fatalf("%d, bit %d: %v", n, bit, err)
			}
		}
	}
}

// The mask is a function of key and salt: without a fresh salt two headers under
// one key would show the difference of their plaintexts.
func TestSaltMatters(t *testing.T) {
	plain := make([]byte, 66)
	a := testHeader(plain)
	salt := [SaltSize]byte{1}
	b := SealHeader(nil, testKey, &salt, Prefix{uae.Nested, 20, 5}, plain)
	at := PrefixSize + SaltSize
	if bytes.Equal(a[at:at+32], b[at:at+32]) || bytes.Equal(a[at+32:at+64], b[at+32:at+64]) {
		t.Error("masks repeat")
	}
	if bytes.Equal(a[at:at+32], a[at+32:at+64]) {
		t.Error("the mask repeats within a header")
	}
}

func TestEachCallsOnce(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000} {
		count := make([]int32, n)
		workers := make(chan struct{}, 100)
		Each(n, func() (func(int), func()) {
			return func(i int) { count[i]++ }, func() { workers <- struct{}{} }
		})
		for i, c := range count {
			if c != 1 {
				t.Fatalf("n=%d: %d called %d times", n, i, c)
			}
		}
		if (n > 0) != (len(workers) > 0) {
			t.Errorf("n=%d: %d workers finished", n, len(workers))
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(testHeader(make([]byte, 34)))
	f.Add([]byte("UAEC\x01\x01\x00\x14"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePrefix(b, len(b), uae.Nested, 20)
		if err != nil {
			if p != (Prefix{}) {
				t.Fatal("a value with an error")
			}
			if !errors.Is(err, uae.ErrFormat) && !errors.Is(err, uae.ErrScheme) && !errors.Is(err, uae.ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(p.appendTo(nil), b[:PrefixSize]) {
			t.Fatal("not canonical")
		}
		if len(b) >= Overhead && len(b) <= Overhead+maxPlain {
			if _, err := OpenHeader(nil, testKey, b); err == nil && len(b) != Overhead+34 {
				t.Fatal("forged a header")
			}
		}
	})
}

func FuzzToken(f *testing.F) {
	old := testHeader(make([]byte, 34))
	f.Add(AppendToken(nil, old, old, func(b []byte) []byte { return append(b, 1, 2, 3) }))
	f.Fuzz(func(t *testing.T, b []byte) {
		tok, err := ParseToken(b, len(old), 3, uae.Nested, 20)
		if err != nil {
			if tok.Header != nil || tok.Part != nil {
				t.Fatal("a value with an error")
			}
			return
		}
		again := AppendToken(nil, old, tok.Header, func(b []byte) []byte { return append(b, tok.Part...) })
		if tok.Check(old) == nil && !bytes.Equal(again, b) {
			t.Fatal("not canonical")
		}
		if len(again) != len(b) || !bytes.Equal(again[40:len(b)-4], b[40:len(b)-4]) {
			t.Fatal("not canonical")
		}
	})
}
