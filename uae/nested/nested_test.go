package nested

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/seed-a893640b/tae/uae"
	"github.com/seed-a893640b/tae/uae/internal/frame"
	"github.com/seed-a893640b/tae/uae/internal/vectest"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestVectors(t *testing.T) {
	subject := func(name string, bound, updates int) vectest.Subject {
		s := must(New(bound))
		return vectest.Subject{
			Name: name, Scheme: s, ID: uae.Nested, Param: uint16(bound), RandomLen: len(random{}),
			Encrypt: func(k uae.Key, m, aad, r []byte) ([]byte, error) {
				return s.encrypt(nil, k, m, aad, (*random)(r))
			},
			ReKeyGen: func(k1, k2 uae.Key, h, r []byte) ([]byte, error) {
				return s.reKeyGen(k1, k2, h, (*random)(r))
			},
			Lengths: []int{0, 1, 64, 1000},
			Updates: updates,
		}
	}
	vectest.Run(t, "nested.json", subject("nested t=0", 0, 0), subject("nested t=3", 3, 3))
}

func TestSizes(t *testing.T) {
	if HeaderSize != 106 || PerUpdate != 64 {
		t.Errorf("header %d, per update %d", HeaderSize, PerUpdate)
	}
	for _, bound := range []int{0, 1, 20, MaxUpdates} {
		s := must(New(bound))
		ct := must(s.Encrypt(nil, s.KeyGen(), make([]byte, 100), nil))
		if want := 106 + 100 + 16 + 64*bound; len(ct) != want {
			t.Errorf("t=%d: %d bytes, want %d", bound, len(ct), want)
		}
	}
	if _, err := New(-1); err == nil {
		t.Error("bound -1")
	}
	if _, err := New(MaxUpdates + 1); err == nil {
		t.Error("bound too large")
	}
}

func move(s *Scheme, k1, k2 uae.Key, ct []byte) []byte {
	return must(s.ReEncrypt(nil, must(s.ReKeyGen(k1, k2, ct[:HeaderSize])), ct))
}

// The published code writes out of bounds on update t+1 and trusts the length in
// a token. Here the owner is refused, and so is a token that says the age is t.
func TestOneUpdateTooMany(t *testing.T) {
	s := must(New(2))
	k := s.KeyGen()
	ct := must(s.Encrypt(nil, k, []byte("m"), nil))
	for range 2 {
		ct = move(s, k, k, ct)
	}
	if _, err := s.ReKeyGen(k, k, ct[:HeaderSize]); err != uae.ErrOpen {
		t.Errorf("ReKeyGen at the bound: %v", err)
	}
	for _, age := range []uint16{2, 3, 65535} {
		token := frame.AppendToken(nil, ct[:HeaderSize], ct[:HeaderSize], func(b []byte) []byte {
			return binary.BigEndian.AppendUint16(append(b, make([]byte, partSize-2)...), age)
		})
		if _, err := s.ReEncrypt(nil, token, ct); !errors.Is(err, uae.ErrFormat) {
			t.Errorf("token of age %d: %v", age, err)
		}
	}
}

// Lengths are 64 bits: a header that claims terabytes is an error, not a wrap.
func TestHugeLengths(t *testing.T) {
	s := must(New(1))
	k := s.KeyGen()
	ct := must(s.Encrypt(nil, k, nil, nil))
	for _, n := range []uint64{1 << 31, 1 << 32, 1<<32 + 1, 1 << 63, 1<<64 - 1, 1<<64 - 186} {
		bad := slices.Clone(ct)
		binary.BigEndian.PutUint64(bad[8:], n)
		if _, err := s.Decrypt(nil, k, bad, nil); !errors.Is(err, uae.ErrFormat) {
			t.Errorf("length %d: %v", n, err)
		}
	}
}

// No key means "no history": where the layers end is in the header.
func TestZeroRootIsNotSpecial(t *testing.T) {
	s := must(New(2))
	k := s.KeyGen()
	ct := must(s.encrypt(nil, k, []byte("message"), nil, new(random)))
	ct = move(s, k, k, ct)
	token := must(s.reKeyGen(k, k, ct[:HeaderSize], new(random)))
	ct = must(s.ReEncrypt(nil, token, ct))
	if got := must(s.Decrypt(nil, k, ct, nil)); string(got) != "message" {
		t.Errorf("got %q", got)
	}
}

// Every bit of the pad is verified. The control forgets to, and accepts.
func TestPadIsVerified(t *testing.T) {
	s := must(New(3))
	k := s.KeyGen()
	ct := move(s, k, k, must(s.Encrypt(nil, k, []byte("m"), nil)))
	pad := len(ct) - 2*PerUpdate
	for bit := 8 * pad; bit < 8*len(ct); bit++ {
		bad := slices.Clone(ct)
		bad[bit/8] ^= 1 << (bit % 8)
		if _, err := s.Decrypt(nil, k, bad, nil); err != uae.ErrOpen {
			t.Fatalf("bit %d: %v", bit, err)
		}
		if bit%97 == 0 && !decryptWithoutPadCheck(s, k, bad) {
			t.Fatalf("bit %d: the control notices", bit)
		}
	}
}

func decryptWithoutPadCheck(s *Scheme, k uae.Key, ct []byte) bool {
	root, age, _ := must3(s.open(k, ct[:HeaderSize]))
	body := ct[HeaderSize:]
	payload := body[:len(body)-PerUpdate*(s.t-age)]
	return peel(make([]byte, len(payload)), payload, &root, bodyGCM(&root), age, nil)
}

func must3[A, B, C any](a A, b B, c C, err error) (A, B, C) {
	if err != nil {
		panic(err)
	}
	return a, b, c
}

// All faults behind the header give the same error and no plaintext, at any age.
func TestFaultsBehindTheHeaderLookAlike(t *testing.T) {
	s := must(New(4))
	k, m := s.KeyGen(), []byte("attack at dawn")
	ct := must(s.Encrypt(nil, k, m, nil))
	for age := range 4 {
		n := len(m) + tagSize + PerUpdate*age
		for name, at := range map[string]int{
			"text": 0, "innermost tag": len(m), "outermost tag": n - histSize - 1, "history": n - 1, "pad": n,
		} {
			bad := slices.Clone(ct)
			bad[HeaderSize+at] ^= 1
			room := make([]byte, 0, 4096)
			got, err := s.Decrypt(room, k, bad, nil)
			if err != uae.ErrOpen || got != nil || bytes.Contains(room[:4096], m[:4]) {
				t.Errorf("age %d, %s: %q, %v", age, name, got, err)
			}
		}
		ct = move(s, k, k, ct)
	}
}

// By design the storage sees the age in a token, which is why the guarantee is
// update independence and not more.
func TestTokenShowsAge(t *testing.T) {
	s := must(New(5))
	k := s.KeyGen()
	ct := must(s.Encrypt(nil, k, nil, nil))
	for age := range 5 {
		token := must(s.ReKeyGen(k, k, ct[:HeaderSize]))
		_, p, err := s.parseToken(token)
		if err != nil || p.age != age {
			t.Errorf("age %d: token says %d, %v", age, p.age, err)
		}
		ct = must(s.ReEncrypt(nil, token, ct))
	}
}

// The storage has the keys of all layers it made. They open nothing below the
// first history, and not the message.
func TestTokensAloneOpenNothing(t *testing.T) {
	s := must(New(2))
	k, m := s.KeyGen(), []byte("attack at dawn, by the river")
	ct := must(s.Encrypt(nil, k, m, nil))
	original := slices.Clone(ct[HeaderSize : HeaderSize+len(m)+tagSize])
	var keys []*[32]byte
	for range 2 {
		token := must(s.ReKeyGen(k, k, ct[:HeaderSize]))
		_, p := must2(s.parseToken(token))
		keys = append(keys, p.key)
		ct = must(s.ReEncrypt(nil, token, ct))
	}
	payload := ct[HeaderSize:]
	for i := len(keys) - 1; i >= 0; i-- {
		n := len(payload) - histSize
		inner, err := newGCM(keys[i]).Open(nil, nonce(noncePayload), payload[:n], payload[n:])
		if err != nil {
			t.Fatal(err)
		}
		payload = inner
	}
	if !bytes.Equal(payload, original) {
		t.Fatal("the storage should get back what it had")
	}
	if bytes.Contains(payload, m[:8]) {
		t.Error("message visible")
	}
	for _, key := range keys {
		if _, err := newGCM(key).Open(nil, nonce(noncePayload), payload, nil); err == nil {
			t.Error("a token opens the first layer")
		}
	}
}

func must2[A, B any](a A, b B, err error) (A, B) {
	if err != nil {
		panic(err)
	}
	return a, b
}
