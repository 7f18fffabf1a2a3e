package protocol

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"testing"

	"github.com/seed-a893640b/tae/dprf"
)

// Every quorum of every small cluster encrypts, and every other one decrypts.
func TestEveryQuorumEncryptsAndDecrypts(t *testing.T) {
	largest := 7
	if testing.Short() {
		largest = 5
	}
	for n := 2; n <= largest; n++ {
		for th := 2; th <= n; th++ {
			c := newTestCluster(t, n, th)
			var objects [][]byte
			m := Message{Plaintext: []byte("message"), AAD: []byte("data")}
			quorums(n, th, func(q dprf.Set) { objects = append(objects, c.encrypt(t, q, false, m)[0]) })
			for i, object := range objects {
				quorums(n, th, func(q dprf.Set) {
					got, err := c.decrypt(object, m.AAD, q)
					if err != nil || !bytes.Equal(got, m.Plaintext) {
						t.Fatalf("n=%d t=%d object %d quorum %v: %v", n, th, i, q, err)
					}
				})
			}
		}
	}
}

func TestMessageSizes(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	for _, size := range []int{0, 1, 31, 32, 63, 64, 65, 1000, MaxMessage} {
		m := make([]byte, size)
		rand.Read(m)
		object := c.encrypt(t, dprf.SetOf(1, 2), false, Message{Plaintext: m})[0]
		if want := SealedHeaderSize(dprf.Params{N: 3, T: 2}) + 64 + size; len(object) != want {
			t.Errorf("size %d: object of %d bytes, want %d", size, len(object), want)
		}
		got, err := c.decrypt(object, nil, dprf.SetOf(2, 3))
		if err != nil || !bytes.Equal(got, m) {
			t.Errorf("size %d: %v", size, err)
		}
	}
	if _, err := EncryptMessages(c.cert, c.author, []Message{{Plaintext: make([]byte, MaxMessage+1)}}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an oversized message: %v", err)
	}
}

func TestDetailRoundGivesTheSameObjects(t *testing.T) {
	c := newTestCluster(t, 5, 3)
	m := []Message{{Plaintext: []byte("a")}, {Plaintext: []byte("b"), AAD: []byte("x")}}
	for i, object := range c.encrypt(t, c.all(), true, m...) {
		got, err := c.decrypt(object, m[i].AAD, dprf.SetOf(1, 3, 5))
		if err != nil || !bytes.Equal(got, m[i].Plaintext) {
			t.Errorf("item %d: %v", i, err)
		}
	}
}

// writeStream makes a stream object of the given kind.
func (c *testCluster) writeStream(t testing.TB, kind Kind, data, aad []byte) []byte {
	t.Helper()
	var body bytes.Buffer
	var s *Stream
	var err error
	q := dprf.SetOf(1, 2)
	if kind == KindFile {
		if s, err = NewFile(c.cert, c.author, aad, &StreamHints{}, &body); err != nil {
			t.Fatal(err)
		}
	} else {
		s = NewPipe(c.cert, c.author, aad, &StreamHints{})
		if err := c.runEncrypt(s.Encryption, q, false); err != nil {
			t.Fatal(err)
		}
		if err := s.StartBody(&body); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.Copy(s, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if kind == KindPipe {
		err = s.EndPipe(c.private)
	} else if err = s.FinishBody(); err == nil {
		err = c.runEncrypt(s.Encryption, q, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.Clone(s.Header()), body.Bytes()...)
}

// readStream decrypts a stream object; released is what came out before any error.
func (c *testCluster) readStream(object, aad []byte) (released []byte, author ClientKey, err error) {
	h, body, err := ParseHeader(object)
	if err != nil {
		return nil, author, err
	}
	o, err := c.runDecrypt(h, dprf.SetOf(2, 3))
	if err != nil {
		return nil, author, err
	}
	r, err := o.Stream(bytes.NewReader(body), aad)
	if err != nil {
		return nil, author, err
	}
	released, err = io.ReadAll(r)
	return released, r.Author(), err
}

func TestStreams(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	for _, kind := range []Kind{KindFile, KindPipe} {
		for _, size := range []int{0, 1, ChunkSize - 65, ChunkSize - 64, ChunkSize - 63, ChunkSize, 2*ChunkSize - 65, 2*ChunkSize - 64, 2*ChunkSize - 63, 5 * ChunkSize} {
			data := make([]byte, size)
			rand.Read(data)
			object := c.writeStream(t, kind, data, []byte("aad"))
			got, author, err := c.readStream(object, []byte("aad"))
			if err != nil || !bytes.Equal(got, data) || author != c.author.Key {
				t.Fatalf("%v of %d bytes: %v", kind, size, err)
			}
			if _, _, err := c.readStream(object, []byte("other")); !errors.Is(err, ErrAuthentication) {
				t.Errorf("%v of %d bytes with other associated data: %v", kind, size, err)
			}
		}
	}
}

// A stream that is cut, extended, reordered or altered never ends well, and what
// it released before is a prefix of the truth.
func TestDamagedStreams(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	data := make([]byte, 3*ChunkSize+100)
	rand.Read(data)
	for _, kind := range []Kind{KindFile, KindPipe} {
		object := c.writeStream(t, kind, data, nil)
		start := SealedHeaderSize(dprf.Params{N: 3, T: 2}) + commitSize
		chunk := ChunkSize + tagSize
		check := func(what string, bad []byte) {
			t.Helper()
			got, _, err := c.readStream(bad, nil)
			if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v %s: error %v", kind, what, err)
			}
			if !bytes.HasPrefix(data, got) {
				t.Errorf("%v %s: released something else than the data", kind, what)
			}
		}
		for _, cut := range []int{1, 63, 64, 80, chunk, len(object) - start - 2*chunk, len(object) - start, len(object) - start + 5} {
			check("cut", object[:len(object)-cut])
		}
		check("extended", append(bytes.Clone(object), 0))
		check("extended by a chunk", append(bytes.Clone(object), object[start:start+chunk]...))
		swapped := bytes.Clone(object)
		copy(swapped[start:], object[start+chunk:start+2*chunk])
		copy(swapped[start+chunk:], object[start:start+chunk])
		check("reordered", swapped)
		check("a chunk removed", append(bytes.Clone(object[:start+chunk]), object[start+2*chunk:]...))
		for _, at := range []int{start - 1, start, start + chunk - 1, start + chunk, len(object) - 1} {
			flipped := bytes.Clone(object)
			flipped[at] ^= 1
			check("flipped", flipped)
		}
	}
}
