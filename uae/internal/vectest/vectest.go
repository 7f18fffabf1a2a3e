// Package vectest runs the test vectors in testdata/uae, which are made by the
// same code under "go test -run Vectors -update" and must then not differ from
// what is committed.
package vectest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-a893640b/tae/uae"
)

var update = flag.Bool("update", false, "write the vectors instead of comparing")

// A Vector is one message encrypted and then updated. Byte strings are hex; one
// of more than 600 bytes is given as "sha256:" and its hash. Key is an encoded
// key, Random what the operation draws from crypto/rand.
type Vector struct {
	Name       string   `json:"name"`
	Key        string   `json:"key"`
	Random     string   `json:"random"`
	Length     int      `json:"message_length"` // message byte i is 7i+1 mod 256
	AAD        string   `json:"aad"`
	Ciphertext string   `json:"ciphertext"`
	Updates    []Update `json:"updates"`
}

// An Update is one ReKeyGen and ReEncrypt.
type Update struct {
	Key        string `json:"key"`
	Random     string `json:"random"`
	Token      string `json:"token"`
	Ciphertext string `json:"ciphertext"`
}

// A Subject is a scheme with its deterministic steps.
type Subject struct {
	Name      string
	Scheme    uae.Scheme
	ID        uae.SchemeID
	Param     uint16
	RandomLen int
	Encrypt   func(k uae.Key, m, aad, random []byte) ([]byte, error)
	ReKeyGen  func(k1, k2 uae.Key, header, random []byte) ([]byte, error)
	Lengths   []int
	Updates   int
}

// Run makes the vectors of s and compares them with file, or writes it.
func Run(t *testing.T, file string, subjects ...Subject) {
	t.Helper()
	var made []Vector
	for _, s := range subjects {
		for _, n := range s.Lengths {
			made = append(made, s.vector(t, n))
		}
	}
	path := filepath.Join("..", "..", "testdata", "uae", file)
	js, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	js = append(js, '\n')
	if *update {
		if err := os.WriteFile(path, js, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var loaded []Vector
	if err := json.Unmarshal(have, &loaded); err != nil {
		t.Fatal(err)
	}
	if len(loaded) == 0 || len(loaded) != len(made) {
		t.Fatalf("%s has %d vectors, not %d", path, len(loaded), len(made))
	}
	if !bytes.Equal(have, js) {
		for i := range made {
			a, _ := json.Marshal(made[i])
			b, _ := json.Marshal(loaded[i])
			if !bytes.Equal(a, b) {
				t.Errorf("vector %q differs:\nmade   %s\nloaded %s", made[i].Name, a, b)
			}
		}
		t.Errorf("%s is not what this code makes", path)
	}
}

// Message is the message of n bytes that the vectors use.
func Message(n int) []byte {
	m := make([]byte, n)
	for i := range m {
		m[i] = byte(7*i + 1)
	}
	return m
}

func (s Subject) vector(t *testing.T, n int) Vector {
	t.Helper()
	fresh := func(tag string, n int) []byte { // any fixed bytes
		var b []byte
		for i := byte(0); len(b) < n; i++ {
			h := sha256.Sum256(append([]byte(s.Name+tag), i))
			b = append(b, h[:]...)
		}
		return b[:n]
	}
	key := func(tag string) (uae.Key, string) {
		b := append([]byte{'U', 'A', 'E', 'K', 1, byte(s.ID), byte(s.Param >> 8), byte(s.Param)}, fresh(tag, 32)...)
		k, err := uae.ParseKey(b)
		if err != nil {
			t.Fatal(err)
		}
		return k, hex.EncodeToString(b)
	}
	m, aad := Message(n), []byte("aad")
	k, kHex := key("key0")
	random := fresh("random0", s.RandomLen)
	v := Vector{Name: s.Name, Key: kHex, Random: hex.EncodeToString(random), Length: n, AAD: hex.EncodeToString(aad), Updates: []Update{}}
	ct, err := s.Encrypt(k, m, aad, random)
	if err != nil {
		t.Fatal(err)
	}
	v.Ciphertext = show(ct)
	for i := range s.Updates {
		tag := string(rune('1' + i))
		k2, k2Hex := key("key" + tag)
		random := fresh("random"+tag, s.RandomLen)
		token, err := s.ReKeyGen(k, k2, ct[:s.Scheme.HeaderSize()], random)
		if err != nil {
			t.Fatal(err)
		}
		if ct, err = s.Scheme.ReEncrypt(nil, token, ct); err != nil {
			t.Fatal(err)
		}
		v.Updates = append(v.Updates, Update{k2Hex, hex.EncodeToString(random), show(token), show(ct)})
		k = k2
	}
	if got, err := s.Scheme.Decrypt(nil, k, ct, aad); err != nil || !bytes.Equal(got, m) {
		t.Fatalf("%s, %d bytes: does not decrypt: %v", s.Name, n, err)
	}
	return v
}

func show(b []byte) string {
	if len(b) <= 600 {
		return hex.EncodeToString(b)
	}
	h := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(h[:])
}
