package protocol

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/cryptotest"

	"github.com/seed-a893640b/tae/dprf"
)

// moved is the object that a rotation from epoch 1 to epoch 2 makes of a message: the
// body, rho and born stay, the identity names its parent.
func movedObject(t *testing.T, from, to *testCluster, born int) []byte {
	t.Helper()
	v := from.sealWith(refRules{}, random(30), random(32), from.author.Key[:], born, []byte("m"), nil)
	h, body, err := ParseHeader(v.object)
	if err != nil {
		t.Fatal(err)
	}
	h.Source = Source{X0: h.Source.X0, Moved: true, EpochSrc: from.cert.Epoch, IDSrc: h.Source.X0}
	h.Epoch = to.cert.Epoch
	id := h.ID()
	h.Proof = refTags(to.rawKeys(), 1, id[:])
	h.Masked = [32]byte(refXOR(append(bytes.Clone(v.rho), refU16(born)...), refF(to.rawKeys(), id[:])))
	return append(h.Append(nil), body...)
}

// Nodes cannot tell a fresh object from a moved one whose flag was cleared and whose
// identity was put in the place of x_0; the reader does.
func TestGameMovedAsFresh(t *testing.T) {
	from := newTestCluster(t, 3, 2)
	to := from.twin(t, func(c *Certificate) { c.Epoch = 2 })
	object := movedObject(t, from, to, 1)
	if !to.accepted(object, nil) {
		t.Fatal("a moved object does not open")
	}
	if _, _, err := refOpen(to.rawKeys(), object, nil); err != nil {
		t.Fatal("the second implementation does not open a moved object")
	}
	h, body, _ := ParseHeader(object)
	h.Source = Source{X0: h.ID()}
	fresh := append(h.Append(nil), body...)
	if o, err := to.runDecrypt(h, to.all()); err != nil {
		t.Errorf("the nodes refuse: %v", err)
	} else if _, _, err := o.Message(body, nil); !errors.Is(err, ErrAuthentication) {
		t.Errorf("a moved object passes for a fresh one: %v", err)
	}
	// Control: a reader that compares neither x_0 nor born.
	if _, _, err := refOpenWith(refRules{noX0: true, noBorn: true}, to.rawKeys(), fresh, nil); err != nil {
		t.Error("control")
	}
	// It was born before it was moved.
	for _, born := range []int{0, 2, 3, 65535} {
		late := movedObject(t, from, to, born)
		if to.accepted(late, nil) {
			t.Errorf("born in epoch %d, moved from 1 to 2", born)
		}
		if _, _, err := refOpenWith(refRules{noBorn: true}, to.rawKeys(), late, nil); err != nil {
			t.Error("control: refused for another reason")
		}
	}
	// Every field of the source is bound.
	for at := 32; at < 99; at++ {
		for bit := range 8 {
			object[at] ^= 1 << bit
			if to.accepted(object, nil) {
				t.Errorf("bit %d of byte %d flipped", bit, at)
			}
			object[at] ^= 1 << bit
		}
	}
}

// With a random number generator that repeats itself, two requests still have
// different secrets as long as anything in them differs.
func TestGameBadRandomness(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	secrets := func(key [32]byte, counter uint64, m string) (b [32]byte, rho Rho) {
		cryptotest.SetGlobalRandom(t, 1)
		author := &Author{Key: c.author.Key, KeyHash: key, Counter: counter}
		e, err := EncryptMessages(c.cert, author, []Message{{Plaintext: []byte(m)}})
		if err != nil {
			t.Fatal(err)
		}
		return e.open.r, e.rhos[0]
	}
	r1, rho1 := secrets([32]byte{1}, 1, "m")
	// Control: nothing differs, and everything repeats.
	if r, rho := secrets([32]byte{1}, 1, "m"); r != r1 || rho != rho1 {
		t.Error("control: the generator does not repeat itself")
	}
	if r, rho := secrets([32]byte{2}, 1, "m"); r == r1 || rho == rho1 {
		t.Error("another client key, the same secrets")
	}
	if r, rho := secrets([32]byte{1}, 2, "m"); r == r1 || rho == rho1 {
		t.Error("another counter, the same secrets")
	}
	if _, rho := secrets([32]byte{1}, 1, "n"); rho == rho1 {
		t.Error("another message, the same secret")
	}
	stream := func(kind Kind, h StreamHints) Rho {
		cryptotest.SetGlobalRandom(t, 1)
		b, seed := streamSeeds(c.author, kind, &h)
		s := newStream(c.cert, c.author, kind, nil, &b, &seed)
		return s.rhos[0]
	}
	seen := map[Rho]bool{}
	for _, h := range []StreamHints{{}, {FirstChunk: []byte("x")}, {Name: "x"}, {Size: 1}, {ModTime: 1}} {
		seen[stream(KindFile, h)] = true
		seen[stream(KindPipe, h)] = true
	}
	if len(seen) != 10 {
		t.Errorf("%d different secrets of 10 streams", len(seen))
	}
	// All secrets of a batch differ.
	e, err := EncryptMessages(c.cert, c.author, make([]Message, 100))
	if err != nil {
		t.Fatal(err)
	}
	seen = map[Rho]bool{}
	for _, rho := range e.rhos {
		seen[rho] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d different secrets of 100 items", len(seen))
	}
}

// Errors, refusals and reports say who and why, and no value of a request or answer.
func TestGameErrorsHoldNoSecret(t *testing.T) {
	c := newTestCluster(t, 4, 2)
	e, err := EncryptMessages(c.cert, c.author, []Message{{Plaintext: []byte("the plaintext")}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Round(c.all(), true)
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{"the plaintext", string(e.rhos[0][:]), string(e.items[0].w[:])}
	for _, s := range e.open.secrets {
		secrets = append(secrets, string(s[:]))
	}
	var texts []string
	for node := 1; node <= 4; node++ {
		req := r.Request(node)
		for _, b := range [][]byte{req[:len(req)-1], append(bytes.Clone(req), 0), append([]byte{1, 9}, req[2:]...)} {
			texts = append(texts, string(c.servers[node].Handle(c.caller(), b)))
		}
		texts = append(texts, string(c.servers[node%4+1].Handle(c.caller(), req)))
		answer := c.servers[node].Handle(c.caller(), req)
		if node == 3 {
			answer[5] ^= 1
		}
		for i := 2; i+16 <= len(answer); i += 16 {
			secrets = append(secrets, string(answer[i:i+16]))
		}
		if err := r.Add(node, answer[:len(answer)-1]); err != nil {
			texts = append(texts, err.Error())
		}
		if err := r.Add(node, answer); err != nil {
			t.Fatal(err)
		}
	}
	report := r.Finish()
	if report == nil || accused(report) != dprf.SetOf(3) {
		t.Fatalf("got %v", report)
	}
	texts = append(texts, report.Error(), (Opened{secret: [32]byte{1}}).String(), (&Refusal{Code: CodeBusy}).Error())
	for _, text := range texts {
		for _, s := range secrets {
			if strings.Contains(text, s) || strings.Contains(text, hx([]byte(s))) {
				t.Errorf("%q holds a secret", text)
			}
		}
	}
	// Control: the search finds a secret where there is one.
	if !strings.Contains(string(r.Request(1)), secrets[3]) {
		t.Error("control")
	}
}
