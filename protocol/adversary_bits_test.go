package protocol

import (
	"bytes"
	"testing"

	"github.com/seed-a893640b/tae/dprf"
)

// Every bit of an object, flipped alone, is noticed: without a key, by the nodes or
// by the reader.
func TestGameEveryBit(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	aad := []byte("aad")
	read := func(object []byte) bool {
		h, body, err := ParseHeader(object)
		if err != nil {
			return false
		}
		o, err := c.runDecrypt(h, c.all())
		if err != nil {
			return false
		}
		if h.Kind == KindMessage {
			_, _, err = o.Message(body, aad)
		} else {
			_, _, err = c.readStream(object, aad)
		}
		return err == nil
	}
	message := c.encrypt(t, c.all(), false, Message{[]byte("short"), aad})[0]
	long := c.encrypt(t, c.all(), false, Message{make([]byte, 100), aad})[0] // under AES-CTR
	file, pipe := c.writeStream(t, KindFile, []byte("short"), aad), c.writeStream(t, KindPipe, []byte("short"), aad)
	for name, object := range map[string][]byte{"message": message, "long message": long, "file": file, "pipe": pipe} {
		if !read(object) {
			t.Fatalf("%s: the object itself is refused", name)
		}
		for bit := range 8 * len(object) {
			object[bit/8] ^= 1 << (bit % 8)
			if read(object) {
				t.Errorf("%s: bit %d of byte %d flipped, and the object opens", name, bit%8, bit/8)
			}
			object[bit/8] ^= 1 << (bit % 8)
		}
	}
	// Of a body of several chunks: the ends of every chunk, and samples between.
	step := 1013
	if testing.Short() {
		step = 20011
	}
	data := sequence(2*ChunkSize + 500)
	for _, kind := range []Kind{KindFile, KindPipe} {
		object := c.writeStream(t, kind, data, aad)
		start := SealedHeaderSize(dprf.Params{N: 3, T: 2})
		for at := start; at < len(object); at += step {
			object[at] ^= 1 << (at % 8)
			if read(object) {
				t.Errorf("%v: byte %d altered", kind, at)
			}
			object[at] ^= 1 << (at % 8)
		}
	}
	// Control: a reader that checks only what needs no key takes alterations of the
	// body.
	message[len(message)-1] ^= 1
	if h, _, err := ParseHeader(message); err != nil || CheckObject(c.cert, h) != nil {
		t.Error("control")
	}
}

// The exception: a tag whose holders in the quorum all lie is checked by nobody. The
// object still opens to what it was made from, and a quorum with an honest holder
// refuses it.
func TestGameTagOfLiars(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	object := c.encrypt(t, c.all(), false, Message{Plaintext: []byte("m")})[0]
	key := 1 // of nodes 1 and 3
	if c.cert.Layout().Set(key) != dprf.SetOf(1, 3) {
		t.Fatal("numbering")
	}
	object[101+16*key] ^= 1
	h, body, err := ParseHeader(object)
	if err != nil {
		t.Fatal(err)
	}
	quorums(3, 2, func(q dprf.Set) {
		d, err := NewDecryption(c.cert, []*Header{h})
		if err != nil {
			t.Fatal(err)
		}
		r, err := d.Round(q, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range q.Nodes() {
			answer := c.servers[node].Handle(c.caller(), r.Request())
			if node == 1 { // the liar, which checks nothing
				weak := weakNode{c: c, node: 1, off: nodeRules{noTags: true}, allow: func(Op) bool { return true }}
				answer = append([]byte{1, 0}, weak.handle(c.author.Key, r.Request())...)
			}
			if err := r.Add(node, answer); err != nil {
				t.Fatal(err)
			}
		}
		o, err := r.Unmask(0)
		var m []byte
		if err == nil {
			m, _, err = o.Message(body, nil)
		}
		if opened := err == nil; opened != (q == dprf.SetOf(1, 2)) || opened && !bytes.Equal(m, []byte("m")) {
			t.Errorf("quorum %v: %q, %v", q, m, err)
		}
	})
}
