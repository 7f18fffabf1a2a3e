package lattice

import (
	"bytes"
	"errors"
	"testing"

	"github.com/seed-a893640b/tae/uae"
)

func fixed(s *Scheme) (uae.Key, []byte) {
	b := append([]byte("UAEK\x01\x02\x00"), byte(s.r.param))
	k := must(uae.ParseKey(append(b, make([]byte, 32)...)))
	return k, must(s.encrypt(nil, k, []byte("message"), []byte("aad"), new(random)))
}

func FuzzLatticeToken(f *testing.F) {
	s := must(New(R50))
	k, ct := fixed(s)
	f.Add(must(s.reKeyGen(k, k, ct[:HeaderSize], new(random))))
	f.Fuzz(func(t *testing.T, b []byte) {
		tok, err := s.parseToken(b)
		if err != nil {
			if _, err := s.ReEncrypt(nil, b, ct); err == nil {
				t.Fatal("ReEncrypt takes a token that does not parse")
			}
			return
		}
		u, err := s.newUpdater(tok.Part)
		if err != nil {
			return
		}
		defer u.wipe()
		again := append(append([]byte(nil), b[:40]...), tok.Header...)
		again = append(again, tok.Part[:32]...)
		delta := make([]byte, s.r.blockBody())
		s.r.pack(delta, u.key.f)
		if again = append(again, delta...); !bytes.Equal(append(again, b[len(b)-4:]...), b) {
			t.Fatal("not canonical")
		}
	})
}

func FuzzLatticeCiphertext(f *testing.F) {
	s := must(New(R50))
	k, ct := fixed(s)
	f.Add(ct)
	f.Add(ct[:HeaderSize])
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := s.Decrypt(nil, k, b, []byte("aad"))
		if err == nil && string(m) != "message" {
			t.Fatalf("wrong plaintext %q", m)
		}
		if err == nil {
			return
		}
		visible := errors.Is(err, uae.ErrFormat) || errors.Is(err, uae.ErrScheme) || errors.Is(err, uae.ErrVersion)
		if m != nil || visible == errors.Is(err, uae.ErrOpen) {
			t.Fatalf("%q, %v", m, err)
		}
	})
}

// Packed coefficients and packed values are bijections between bytes and words.
func FuzzLatticeCodec(f *testing.F) {
	f.Add(bytes.Repeat([]byte{0xff}, 120))
	f.Add([]byte("\x01"))
	rings := []*ring{must(newRing(R60)), must(newRing(R50))}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, r := range rings {
			var in, out [maxUnit]byte
			copy(in[:], b)
			var c [unit]uint64
			r.get(&c, in[:])
			r.put(out[:], &c)
			if !bytes.Equal(in[:r.body], out[:r.body]) {
				t.Fatalf("%d: coefficients", r.param)
			}
			for _, v := range c {
				if v>>uint(r.param) != 0 {
					t.Fatalf("%d: too many bits", r.param)
				}
			}
			r.getPlain(&c, in[:])
			r.putPlain(out[:], &c)
			if !bytes.Equal(in[:r.plain], out[:r.plain]) {
				t.Fatalf("%d: values", r.param)
			}
			m := b[:min(len(b), r.plain)]
			body, got := make([]byte, r.bodySize(len(m))), make([]byte, len(m))
			mask := make([]uint64, unit)
			for i := range mask {
				mask[i] = uint64(i) << 40
			}
			r.encode(body, m, mask, make([]byte, noiseUnit))
			if large, wrong := r.decode(got, body, mask); large|wrong != 0 || !bytes.Equal(got, m) {
				t.Fatalf("%d: encoding", r.param)
			}
		}
	})
}
