package nested

import (
	"bytes"
	"errors"
	"testing"

	"github.com/seed-a893640b/tae/uae"
	"github.com/seed-a893640b/tae/uae/internal/frame"
)

func fixed(s *Scheme) (uae.Key, []byte) {
	b := append([]byte("UAEK\x01\x01\x00"), byte(s.t))
	k := must(uae.ParseKey(append(b, make([]byte, 32)...)))
	return k, must(s.encrypt(nil, k, []byte("message"), []byte("aad"), new(random)))
}

func FuzzNestedToken(f *testing.F) {
	s := must(New(3))
	k, ct := fixed(s)
	f.Add(must(s.reKeyGen(k, k, ct[:HeaderSize], new(random))))
	f.Fuzz(func(t *testing.T, b []byte) {
		tok, p, err := s.parseToken(b)
		if err != nil {
			if _, err := s.ReEncrypt(nil, b, ct); err == nil {
				t.Fatal("ReEncrypt takes a token that does not parse")
			}
			return
		}
		if p.age >= 3 || len(p.hist) != histSize {
			t.Fatal("values out of range")
		}
		again := append([]byte(nil), b[:40]...)
		again = append(append(again, tok.Header...), tok.Part...)
		if !bytes.Equal(append(again, b[len(b)-4:]...), b) {
			t.Fatal("not canonical")
		}
	})
}

func FuzzNestedCiphertext(f *testing.F) {
	s := must(New(3))
	k, ct := fixed(s)
	next := must(s.ReEncrypt(nil, must(s.reKeyGen(k, k, ct[:HeaderSize], new(random))), ct))
	f.Add(ct)
	f.Add(next)
	f.Add(ct[:HeaderSize])
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := s.Decrypt(nil, k, b, []byte("aad"))
		if err == nil {
			if string(m) != "message" {
				t.Fatalf("wrong plaintext %q", m)
			}
			return
		}
		if m != nil {
			t.Fatal("plaintext with an error")
		}
		header, body, _, perr := s.split(b)
		if perr != nil {
			if errors.Is(err, uae.ErrOpen) {
				t.Fatal("a visible fault is not named")
			}
			return
		}
		if !bytes.Equal(append(append([]byte(nil), header...), body...), b) {
			t.Fatal("not canonical")
		}
		if err != uae.ErrOpen {
			t.Fatalf("a fault behind the key is named: %v", err)
		}
		_, _ = frame.OpenHeader(nil, make([]byte, 32), header)
	})
}
