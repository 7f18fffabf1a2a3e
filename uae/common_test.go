package uae_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-a893640b/tae/uae"
	"github.com/seed-a893640b/tae/uae/nested"
	"github.com/seed-a893640b/tae/uae/recrypt"
)

// A scheme under test, with what the common tests need to know about it.
type subject struct {
	name    string
	s       uae.Scheme
	other   uae.Scheme // the same scheme with another parameter, or another scheme
	chunk   int        // message bytes of the unit it works in
	updates int        // how many updates to run through
	bound   int        // -1: none
	size    func(n int) int
	// malleable says that a flip of this bit of the body may go unseen.
	malleable func(bit int) bool
}

func subjects() []subject {
	n20, n3 := must(nested.New(20)), must(nested.New(3))
	rc := recrypt.New()
	never := func(int) bool { return false }
	return append([]subject{
		{"nested20", n20, n3, 64, 20, 20, n20.CiphertextSize, never},
		{"nested3", n3, n20, 64, 3, 3, n3.CiphertextSize, never},
		{"recrypt", rc, n3, recrypt.BlockSize, 6, -1, rc.CiphertextSize, never},
	}, latticeSubjects()...)
}

func each(t *testing.T, f func(t *testing.T, c subject)) {
	t.Helper()
	for _, c := range subjects() {
		t.Run(c.name, func(t *testing.T) { t.Parallel(); f(t, c) })
	}
}

// message is n deterministic bytes.
func message(n int) []byte {
	m := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(m)
	return m
}

func (c subject) header(ct []byte) []byte { return ct[:c.s.HeaderSize()] }

func (c subject) update(t *testing.T, k1, k2 uae.Key, ct []byte) []byte {
	t.Helper()
	token, err := c.s.ReKeyGen(k1, k2, c.header(ct))
	if err != nil {
		t.Fatal(err)
	}
	next, err := c.s.ReEncrypt(nil, token, ct)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// Every update, with a key of its own, keeps the message and all sizes; keys of
// other ages and other associated data are refused.
func TestUpdatesKeepMessageAndSize(t *testing.T) {
	each(t, func(t *testing.T, c subject) {
		for _, n := range []int{0, 1, c.chunk - 1, c.chunk, c.chunk + 1, 2*c.chunk + 1} {
			k, m, aad := c.s.KeyGen(), message(n), []byte("record 7")
			ct := must(c.s.Encrypt(nil, k, m, aad))
			tokenSize := 0
			var visible []byte
			for age := 0; ; age++ {
				if len(ct) != c.size(n) {
					t.Fatalf("n=%d age=%d: size %d, want %d", n, age, len(ct), c.size(n))
				}
				if age > 0 && !bytes.Equal(ct[:16], visible) {
					t.Fatalf("n=%d age=%d: the visible header changes", n, age)
				}
				visible = slices.Clone(ct[:16])
				got, err := c.s.Decrypt(nil, k, ct, aad)
				if err != nil || !bytes.Equal(got, m) {
					t.Fatalf("n=%d age=%d: %v", n, age, err)
				}
				left := must(c.s.Remaining(k, c.header(ct)))
				if want := c.bound - age; c.bound >= 0 && left != want || c.bound < 0 && left != -1 {
					t.Fatalf("n=%d age=%d: %d updates remain", n, age, left)
				}
				if age == c.updates || testing.Short() && age == 3 {
					break
				}
				next := c.s.KeyGen()
				token := must(c.s.ReKeyGen(k, next, c.header(ct)))
				if tokenSize != 0 && len(token) != tokenSize {
					t.Fatalf("token of %d bytes after one of %d", len(token), tokenSize)
				}
				tokenSize = len(token)
				old := ct
				ct = must(c.s.ReEncrypt(nil, token, ct))
				for _, bad := range []struct {
					k   uae.Key
					ct  []byte
					aad []byte
				}{{k, ct, aad}, {next, old, aad}, {next, ct, nil}, {next, ct, []byte("record 8")}} {
					if _, err := c.s.Decrypt(nil, bad.k, bad.ct, bad.aad); err != uae.ErrOpen {
						t.Fatalf("n=%d age=%d: %v", n, age, err)
					}
				}
				k = next
			}
		}
	})
}

func TestEveryChangedByteIsRefused(t *testing.T) {
	each(t, func(t *testing.T, c subject) {
		n, aad := min(c.chunk+1, 100), []byte("aad")
		k := c.s.KeyGen()
		ct := c.update(t, k, k, must(c.s.Encrypt(nil, k, message(n), aad)))
		head := 8 * c.s.HeaderSize()
		step := 1 + 8*len(ct)/4000
		if testing.Short() {
			step = 1 + 8*len(ct)/300
		}
		for bit := 0; bit < 8*len(ct); bit += step {
			if bit >= head && c.malleable(bit-head) {
				continue
			}
			bad := slices.Clone(ct)
			bad[bit/8] ^= 1 << (bit % 8)
			got, err := c.s.Decrypt(nil, k, bad, aad)
			if err == nil || got != nil {
				t.Fatalf("bit %d of %d: accepted", bit, 8*len(ct))
			}
			if bit < head {
				if _, err := c.s.ReKeyGen(k, k, c.header(bad)); err == nil {
					t.Fatalf("bit %d: ReKeyGen accepts", bit)
				}
			}
		}
	})
}

// What anyone can see to be wrong has an error of its own.
func TestVisibleFaultsAreNamed(t *testing.T) {
	each(t, func(t *testing.T, c subject) {
		k, m := c.s.KeyGen(), message(c.chunk+3)
		ct := must(c.s.Encrypt(nil, k, m, nil))
		ct2 := must(c.s.Encrypt(nil, k, m, nil))
		token := must(c.s.ReKeyGen(k, k, c.header(ct)))
		foreign := must(c.other.Encrypt(nil, c.other.KeyGen(), m, nil))
		set := func(b []byte, at int, v byte) []byte { b = slices.Clone(b); b[at] = v; return b }
		next := must(c.s.ReEncrypt(nil, token, ct))
		for _, f := range []struct {
			name      string
			token, ct []byte
			want      error
		}{
			{"empty", token, nil, uae.ErrFormat},
			{"magic", token, set(ct, 0, 'X'), uae.ErrFormat},
			{"version", token, set(ct, 4, 2), uae.ErrVersion},
			{"scheme", token, set(ct, 5, 9), uae.ErrScheme},
			{"parameter", token, set(ct, 6, 99), uae.ErrScheme},
			{"foreign", token, foreign, uae.ErrScheme},
			{"length field", token, set(ct, 8, 255), uae.ErrFormat},
			{"header cut", token, ct[:c.s.HeaderSize()-1], uae.ErrFormat},
			{"header only", token, c.header(ct), uae.ErrFormat},
			{"cut", token, ct[:len(ct)-1], uae.ErrFormat},
			{"extended", token, append(slices.Clone(ct), 0), uae.ErrFormat},
			{"token empty", nil, ct, uae.ErrFormat},
			{"token magic", set(token, 3, 'C'), ct, uae.ErrFormat},
			{"token version", set(token, 4, 0), ct, uae.ErrVersion},
			{"token scheme", set(token, 5, 0), ct, uae.ErrScheme},
			{"token parameter", set(token, 6, 99), ct, uae.ErrScheme},
			{"token cut", token[:len(token)-1], ct, uae.ErrFormat},
			{"token extended", append(slices.Clone(token), 0), ct, uae.ErrFormat},
			{"token for another", token, ct2, uae.ErrTarget},
			{"token twice", token, next, uae.ErrTarget},
		} {
			if got, err := c.s.ReEncrypt(nil, f.token, f.ct); !errors.Is(err, f.want) || got != nil {
				t.Errorf("%s: ReEncrypt: %v, want %v", f.name, err, f.want)
			}
			if strings.HasPrefix(f.name, "token") {
				continue
			}
			if _, err := c.s.Decrypt(nil, k, f.ct, nil); !errors.Is(err, f.want) {
				t.Errorf("%s: Decrypt: %v, want %v", f.name, err, f.want)
			}
			if bytes.Equal(f.ct[:min(len(f.ct), c.s.HeaderSize())], c.header(ct)) {
				continue
			}
			h := f.ct[:min(len(f.ct), c.s.HeaderSize())]
			if _, err := c.s.ReKeyGen(k, k, h); !errors.Is(err, f.want) && f.name != "length field" {
				t.Errorf("%s: ReKeyGen: %v, want %v", f.name, err, f.want)
			}
		}
		if _, err := c.s.ReKeyGen(k, k, append(slices.Clone(c.header(ct)), 0)); !errors.Is(err, uae.ErrFormat) {
			t.Errorf("long header: %v", err)
		}
		for at := 0; at < len(token); at += 1 + len(token)/500 {
			if got, err := c.s.ReEncrypt(nil, set(token, at, token[at]^0x10), ct); err == nil || got != nil {
				t.Errorf("token byte %d changed: accepted", at)
			}
		}
	})
}

// Keys of another scheme or parameter are refused everywhere, before any use.
func TestForeignKeys(t *testing.T) {
	each(t, func(t *testing.T, c subject) {
		k, bad := c.s.KeyGen(), c.other.KeyGen()
		ct := must(c.s.Encrypt(nil, k, nil, nil))
		_, e1 := c.s.Encrypt(nil, bad, nil, nil)
		_, e2 := c.s.Decrypt(nil, bad, ct, nil)
		_, e3 := c.s.ReKeyGen(bad, k, c.header(ct))
		_, e4 := c.s.ReKeyGen(k, bad, c.header(ct))
		_, e5 := c.s.Remaining(bad, c.header(ct))
		_, e6 := c.s.Encrypt(nil, uae.Key{}, nil, nil)
		for i, err := range []error{e1, e2, e3, e4, e5, e6} {
			if !errors.Is(err, uae.ErrScheme) {
				t.Errorf("call %d: %v", i+1, err)
			}
		}
	})
}

// dst is appended to; on an error it is untouched and nothing of the message is
// left in the room behind it.
func TestDst(t *testing.T) {
	each(t, func(t *testing.T, c subject) {
		k, m := c.s.KeyGen(), bytes.Repeat([]byte("marker--"), (c.chunk+50)/8)
		prefix := []byte("prefix")
		room := func() []byte { return append(make([]byte, 0, 2*c.size(len(m))+99), prefix...) }
		ct := must(c.s.Encrypt(room(), k, m, nil))
		if !bytes.HasPrefix(ct, prefix) {
			t.Fatal("prefix lost")
		}
		ct = ct[len(prefix):]
		token := must(c.s.ReKeyGen(k, k, c.header(ct)))
		two := must(c.s.ReEncrypt(room(), token, ct))
		if want := must(c.s.ReEncrypt(nil, token, ct)); string(two) != string(prefix)+string(want) {
			t.Fatal("ReEncrypt differs with dst")
		}
		two = two[len(prefix):]
		if got := must(c.s.Decrypt(room(), k, two, nil)); string(got) != string(prefix)+string(m) {
			t.Fatal("Decrypt differs with dst")
		}
		if place := must(c.s.ReEncrypt(ct[:0], token, ct)); !bytes.Equal(place, two) || &place[0] != &ct[0] {
			t.Fatal("ReEncrypt in place differs")
		}
		dst := room()
		if _, err := c.s.Decrypt(dst, k, two, []byte("other")); err != uae.ErrOpen {
			t.Fatal(err)
		}
		if all := dst[:cap(dst)]; string(dst) != string(prefix) || bytes.Contains(all, m[:8]) {
			t.Fatal("plaintext left behind after a failed check")
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	each(t, func(t *testing.T, c subject) {
		k := c.s.KeyGen()
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				m := message(c.chunk + i)
				ct := must(c.s.Encrypt(nil, k, m, nil))
				ct = must(c.s.ReEncrypt(nil, must(c.s.ReKeyGen(k, k, c.header(ct))), ct))
				if !bytes.Equal(must(c.s.Decrypt(nil, k, ct, nil)), m) {
					t.Error("wrong message")
				}
			})
		}
		wg.Wait()
	})
}

func TestStreamsMakeTheSameFormat(t *testing.T) {
	each(t, func(t *testing.T, c subject) {
		st, ok := c.s.(uae.Streamer)
		if !ok {
			t.Skip("no streaming")
		}
		several := 4*runtime.GOMAXPROCS(0)*c.chunk + 1 // more than a stream holds at once
		if c.name == "recrypt" {
			several = 1025 * c.chunk
		}
		if testing.Short() {
			several = 2
		}
		for _, n := range []int{0, 1, c.chunk, 3*c.chunk + 1, several} {
			k, m, aad := c.s.KeyGen(), message(n), []byte("aad")
			var body bytes.Buffer
			header := must(st.EncryptStream(&body, k, bytes.NewReader(m), aad))
			ct := append(header, body.Bytes()...)
			if got, err := c.s.Decrypt(nil, k, ct, aad); err != nil || !bytes.Equal(got, m) {
				t.Fatalf("n=%d: %v", n, err)
			}
			token := must(c.s.ReKeyGen(k, k, c.header(ct)))
			var moved bytes.Buffer
			next := must(st.ReEncryptStream(&moved, token, c.header(ct), bytes.NewReader(body.Bytes())))
			want := must(c.s.ReEncrypt(nil, token, ct))
			if !bytes.Equal(append(slices.Clone(next), moved.Bytes()...), want) {
				t.Fatalf("n=%d: streamed update differs", n)
			}
			for _, b := range [][]byte{append(slices.Clone(body.Bytes()), 0), body.Bytes()[:max(0, body.Len()-1)]} {
				if len(b) == body.Len() {
					continue // an empty body cannot be cut
				}
				if _, err := st.ReEncryptStream(&moved, token, c.header(ct), bytes.NewReader(b)); !errors.Is(err, uae.ErrFormat) {
					t.Errorf("n=%d: body of other length: %v", n, err)
				}
			}
		}
	})
}

func TestKeyEncoding(t *testing.T) {
	each(t, func(t *testing.T, c subject) {
		k := c.s.KeyGen()
		b := k.ExposeSecret(nil)
		k2, err := uae.ParseKey(b)
		if err != nil || !k.Equal(k2) || k.Equal(c.s.KeyGen()) {
			t.Fatal("key does not survive its encoding", err)
		}
		if s := fmt.Sprintf("%v %+v %#v %x", k, k, k, k); bytes.Contains([]byte(s), b[8:]) || strings.Contains(s, fmt.Sprintf("%x", b[8:])) {
			t.Error("a printed key shows itself")
		}
		k.Wipe()
		if k.Equal(k2) {
			t.Error("Wipe kept the key")
		}
	})
}
