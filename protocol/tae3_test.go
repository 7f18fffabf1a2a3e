package protocol

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"

	"go.dedis.ch/kyber/v3/share"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/dprf/ristretto"
	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/sig"
	"github.com/seed-a893640b/tae/sig/bls"
)

// newTestCluster3 makes a whole TAE3 keyset in one place, which only a test may do.
func newTestCluster3(t testing.TB, n, th int) *testCluster {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &testCluster{author: &Author{Key: ClientKey(pub), KeyHash: HashPrivateKey(priv)}, private: priv}
	cert := &Certificate{Terms: Terms{Name: "default", Suite: SuiteTAE3, N: n, T: th, Modes: ModesOf(ModeSealed),
		Limits: Limits{MaxBatch: MaxBatchLimit, ObjectsLog2: ObjectsLog2}, Version: 1, Epoch: 1, Attempt: 1, Generation: 1}}
	rand.Read(cert.Keyset[:])
	var private []ed25519.PrivateKey
	for range n {
		pub, priv, _ := ed25519.GenerateKey(rand.Reader)
		cert.Members = append(cert.Members, [32]byte(pub))
		private = append(private, priv)
	}
	suite, group := ristretto.Suite{}, bls.KeyGroup{}
	key := share.NewPriPoly(suite, th, nil, suite.RandomStream())
	sigKey := share.NewPriPoly(group, th, nil, group.RandomStream())
	_, keyPoly := key.Commit(nil).Info()
	_, sigPoly := sigKey.Commit(nil).Info()
	for i := range th {
		b, _ := keyPoly[i].MarshalBinary()
		cert.KeyPoly = append(cert.KeyPoly, [dprf.ElementSize]byte(b))
		b, _ = sigPoly[i].MarshalBinary()
		cert.SigPoly = append(cert.SigPoly, [bls.PublicKeySize]byte(b))
	}
	for _, p := range private {
		cert.Signatures = append(cert.Signatures, cert.Sign(p))
	}
	if err := cert.Prepare(); err != nil {
		t.Fatal(err)
	}
	c.cert = cert
	c.servers = make([]*Server, n+1)
	for node := 1; node <= n; node++ {
		b, _ := key.Eval(node - 1).V.MarshalBinary()
		ddh, err := dprf.NewDDHShare(cert.Params(), node, secret.New(b))
		if err != nil {
			t.Fatal(err)
		}
		b, _ = sigKey.Eval(node - 1).V.MarshalBinary()
		sk, err := bls.NewKeyShare(secret.New(b))
		if err != nil {
			t.Fatal(err)
		}
		if err := cert.CheckShares(ddh, sk); err != nil {
			t.Fatal(err)
		}
		e := &Epoch{Certificate: cert, Encoded: cert.Append(nil), State: EpochActive, TAE3: &TAE3Epoch{Share: ddh, SigKey: sk, NodeKey: private[node-1]}}
		c.servers[node] = NewServer(node, allowAll, map[KeysetID]*ServedKeyset{cert.Keyset: {Active: e, Epochs: map[uint16]*Epoch{1: e}}})
	}
	return c
}

// liar3 changes a node's answer.
type liar3 func(node int, op Op, answer []byte) []byte

func honest(_ int, _ Op, answer []byte) []byte { return answer }

// encrypt3 asks the nodes in order until t good answers are in; errs are what the
// others did.
func (c *testCluster) encrypt3(t testing.TB, order []int, l liar3, messages ...Message) ([][]byte, map[int]error) {
	t.Helper()
	e, err := EncryptMessages(c.cert, c.author, messages)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.VerifiedRound(0)
	if err != nil {
		t.Fatal(err)
	}
	errs := map[int]error{}
	for _, node := range order {
		if r.Done() {
			break
		}
		r.Extend(dprf.SetOf(node))
		if err := r.Add(node, l(node, OpEncrypt, c.servers[node].Handle(c.caller(), r.Request(node)))); err != nil {
			errs[node] = err
		}
	}
	for node, err := range r.Lies() {
		errs[node] = err
	}
	if !r.Done() {
		return nil, errs
	}
	return e.Objects(), errs
}

func (c *testCluster) decrypt3(t testing.TB, order []int, proofs bool, l liar3, object, aad []byte) ([]byte, map[int]error, error) {
	t.Helper()
	h, body, err := ParseHeader(object)
	if err != nil {
		return nil, nil, err
	}
	d, err := NewDecryption(c.cert, []*Header{h})
	if err != nil {
		return nil, nil, err
	}
	r, err := d.VerifiedRound(0, proofs)
	if err != nil {
		t.Fatal(err)
	}
	errs := map[int]error{}
	for _, node := range order {
		if r.Done() {
			break
		}
		r.Extend(dprf.SetOf(node))
		if err := r.Add(node, l(node, OpDecrypt, c.servers[node].Handle(c.caller(), r.Request()))); err != nil {
			errs[node] = err
		}
	}
	o, err := r.Unmask(0)
	if err != nil {
		return nil, errs, err
	}
	m, _, err := o.Message(body, aad)
	return m, errs, err
}

func TestTAE3RoundTrip(t *testing.T) {
	for _, p := range []dprf.Params{{N: 2, T: 2}, {N: 3, T: 2}, {N: 5, T: 3}} {
		c := newTestCluster3(t, p.N, p.T)
		m := []Message{{Plaintext: []byte("one"), AAD: []byte("a")}, {Plaintext: nil}, {Plaintext: make([]byte, 5000)}}
		quorums(p.N, p.T, func(q dprf.Set) {
			objects, errs := c.encrypt3(t, q.Nodes(), honest, m...)
			if len(errs) > 0 || objects == nil {
				t.Fatalf("%v quorum %v: %v", p, q, errs)
			}
			for i, object := range objects {
				if want := batchHeaderSize(uint16(i), 3) + 64 + len(m[i].Plaintext); len(object) != want {
					t.Errorf("object of %d bytes, want %d", len(object), want)
				}
				quorums(p.N, p.T, func(q2 dprf.Set) {
					got, _, err := c.decrypt3(t, q2.Nodes(), i == 1, honest, object, m[i].AAD)
					if err != nil || !bytes.Equal(got, m[i].Plaintext) {
						t.Fatalf("%v %v then %v item %d: %v", p, q, q2, i, err)
					}
				})
			}
		})
	}
}

// Every kind of lie is found and named while the others finish the operation, and
// what was signed convicts its node before third parties.
func TestTAE3Lies(t *testing.T) {
	c := newTestCluster3(t, 5, 3)
	other := c.encryptOnce(t, []byte("another"))
	flip := func(at int) liar3 {
		return func(node int, _ Op, answer []byte) []byte {
			if node == 2 {
				answer = bytes.Clone(answer)
				if at < 0 {
					answer[len(answer)+at] ^= 1
				} else {
					answer[at] ^= 1
				}
			}
			return answer
		}
	}
	tail := dprf.ProofSize + bls.SignatureSize + 64
	for what, l := range map[string]liar3{
		"wrong value":     flip(2),
		"wrong proof":     flip(-tail),
		"wrong partial":   flip(-64 - 1),
		"wrong signature": flip(-1),
		"cut":             func(n int, _ Op, a []byte) []byte { return a[:len(a)-boolBit(n == 2)] },
		"another's": func(n int, _ Op, a []byte) []byte {
			if n == 2 {
				return other
			}
			return a
		},
	} {
		objects, errs := c.encrypt3(t, []int{1, 2, 3, 4, 5}, l, Message{Plaintext: []byte("m")})
		if objects == nil || len(errs) != 1 || errs[2] == nil {
			t.Errorf("%s: %v", what, errs)
			continue
		}
		if got, _, err := c.decrypt3(t, []int{4, 5, 1}, false, honest, objects[0], nil); err != nil || string(got) != "m" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// encryptOnce is node 1's answer to some request.
func (c *testCluster) encryptOnce(t testing.TB, m []byte) []byte {
	e, err := EncryptMessages(c.cert, c.author, []Message{{Plaintext: m}})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := e.VerifiedRound(dprf.SetOf(1))
	return c.servers[1].Handle(c.caller(), r.Request(1))
}

// resign3 lies the way only the node itself can: with its signature over the lie.
func (c *testCluster) resign3(t testing.TB, private ed25519.PrivateKey, change func(a *answer3)) *LieError {
	t.Helper()
	e, err := EncryptMessages(c.cert, c.author, []Message{{Plaintext: []byte("m")}, {Plaintext: []byte("n")}})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := e.VerifiedRound(dprf.SetOf(1, 2, 3))
	a, _, err := r.open(2, c.servers[2].Handle(c.caller(), r.Request(2)))
	if err != nil {
		t.Fatal(err)
	}
	change(a)
	s := sigSign(private, a)
	answer := []byte{wireVersion, byte(CodeOK)}
	for i := range a.values {
		answer = append(answer, a.values[i][:]...)
	}
	answer = append(append(append(answer, a.proof[:]...), a.partial[:]...), s[:]...)
	for _, node := range []int{1, 2, 3} {
		b := answer
		if node != 2 {
			b = c.servers[node].Handle(c.caller(), r.Request(node))
		}
		err = errors.Join(err, r.Add(node, b))
	}
	for _, l := range r.Lies() {
		err = errors.Join(err, l)
	}
	var lie *LieError
	if !errors.As(err, &lie) {
		t.Fatalf("no lie found: %v", err)
	}
	return lie
}

func TestTAE3Evidence(t *testing.T) {
	c := newTestCluster3(t, 3, 2)
	private := c.servers[2].keysets[c.cert.Keyset].Active.TAE3.NodeKey
	for what, change := range map[string]func(a *answer3){
		"value":   func(a *answer3) { a.values[0] = a.values[1] },
		"proof":   func(a *answer3) { a.proof[40] ^= 1 },
		"partial": func(a *answer3) { copy(a.partial[:], c.someSignature(t)) },
	} {
		lie := c.resign3(t, private, change)
		if lie.Evidence == nil {
			t.Fatalf("%s: no evidence", what)
		}
		b := lie.Evidence.Append(nil)
		e, err := ParseEvidence(b)
		if err != nil || !bytes.Equal(e.Append(nil), b) {
			t.Fatalf("%s: %v", what, err)
		}
		if what2, err := e.Verify(c.cert.Members); err != nil || e.Node() != 2 {
			t.Errorf("%s: %q %v", what, what2, err)
		}
		// Altered evidence convicts nobody, and nobody else can be framed.
		for at := len(b) - 1; at > len(b)-400 && at > 0; at -= 7 {
			bad := bytes.Clone(b)
			bad[at] ^= 1
			if e, err := ParseEvidence(bad); err == nil {
				if _, err := e.Verify(c.cert.Members); err == nil {
					t.Fatalf("%s: altered at %d, and still convicts node %d", what, at, e.Node())
				}
			}
		}
	}
	// A right answer is no evidence.
	e, _ := EncryptMessages(c.cert, c.author, []Message{{}})
	r, _ := e.VerifiedRound(dprf.SetOf(2))
	a, _, err := r.open(2, c.servers[2].Handle(c.caller(), r.Request(2)))
	if err != nil {
		t.Fatal(err)
	}
	if what, err := (&Evidence{*a}).Verify(c.cert.Members); err == nil {
		t.Errorf("a right answer convicts: %s", what)
	}
}

func (c *testCluster) someSignature(t testing.TB) []byte {
	s, err := c.servers[1].keysets[c.cert.Keyset].Active.TAE3.SigKey.Sign([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	b := s.Bytes()
	return b[:]
}

func TestTAE3WrongDecryptValueIsNamed(t *testing.T) {
	c := newTestCluster3(t, 4, 2)
	objects, _ := c.encrypt3(t, []int{1, 2}, honest, Message{Plaintext: []byte("m")})
	l := func(node int, op Op, answer []byte) []byte {
		if node == 1 {
			answer = bytes.Clone(answer)
			clear(answer[3:35]) // the encoding of the identity element
		}
		return answer
	}
	if _, _, err := c.decrypt3(t, []int{1, 2, 3, 4}, false, l, objects[0], nil); !errors.Is(err, ErrAuthentication) {
		t.Errorf("a wrong value without proofs: %v", err)
	}
	got, errs, err := c.decrypt3(t, []int{1, 2, 3, 4}, true, l, objects[0], nil)
	if err != nil || string(got) != "m" || !errors.Is(errs[1], ErrProof) || len(errs) != 1 {
		t.Errorf("with proofs: %q %v %v", got, errs, err)
	}
}

func TestTAE3RefusesDuplicates(t *testing.T) {
	c := newTestCluster3(t, 3, 2)
	e, _ := EncryptMessages(c.cert, c.author, []Message{{}, {}})
	e.items[1] = e.items[0]
	r, _ := e.VerifiedRound(dprf.SetOf(1))
	var refusal *Refusal
	if err := r.Add(1, c.servers[1].Handle(c.caller(), r.Request(1))); !errors.As(err, &refusal) || refusal.Code != CodeMalformed {
		t.Errorf("got %v", err)
	}
}

// Every bit of a TAE3 object counts.
func TestTAE3EveryBit(t *testing.T) {
	c := newTestCluster3(t, 3, 2)
	objects, _ := c.encrypt3(t, []int{1, 2}, honest, Message{Plaintext: []byte("m")}, Message{Plaintext: []byte("n")})
	object := objects[1]
	step := 1
	if testing.Short() {
		step = 13
	}
	for bit := 0; bit < 8*len(object); bit += step {
		bad := bytes.Clone(object)
		bad[bit/8] ^= 1 << (bit % 8)
		if _, _, err := c.decrypt3(t, []int{1, 3}, false, honest, bad, nil); err == nil {
			t.Fatalf("bit %d does not matter", bit)
		}
	}
}

// Parts of two requests, positions of one, epochs and keysets do not mix.
func TestTAE3MixedParts(t *testing.T) {
	c := newTestCluster3(t, 3, 2)
	a, _ := c.encrypt3(t, []int{1, 2}, honest, Message{Plaintext: []byte("a0")}, Message{Plaintext: []byte("a1")}, Message{Plaintext: []byte("a2")})
	b, _ := c.encrypt3(t, []int{1, 2}, honest, Message{Plaintext: []byte("b0")}, Message{Plaintext: []byte("b1")}, Message{Plaintext: []byte("b2")})
	all := append(append([][]byte{}, a...), b...)
	for i := range all {
		for j := range all {
			hi, body, _ := ParseHeader(all[i])
			hj, _, _ := ParseHeader(all[j])
			if i == j {
				continue
			}
			for what, change := range map[string]func(h *Header){
				"proof":    func(h *Header) { h.Proof, h.Index, h.Count = hj.Proof, hj.Index, hj.Count },
				"identity": func(h *Header) { h.Source = hj.Source },
				"masked":   func(h *Header) { h.Masked = hj.Masked },
				"both":     func(h *Header) { h.Source, h.Proof, h.Index = hj.Source, hj.Proof, hj.Index },
			} {
				h := *hi
				change(&h)
				mixed := append(h.Append(nil), body...)
				if _, _, err := c.decrypt3(t, []int{1, 2}, false, honest, mixed, nil); err == nil {
					t.Errorf("object %d with the %s of %d decrypts", i, what, j)
				}
			}
		}
	}
}

func TestMerkle(t *testing.T) {
	for n := 1; n <= 70; n++ {
		var leaves [][32]byte
		for i := range n {
			leaves = append(leaves, [32]byte{byte(i), byte(n)})
		}
		root, paths := merkleTree(leaves)
		for i := range n {
			if len(paths[i]) != merklePathLen(i, n) {
				t.Fatalf("leaf %d of %d: path of %d", i, n, len(paths[i]))
			}
			var path []byte
			for _, p := range paths[i] {
				path = append(path, p[:]...)
			}
			if merkleRoot(leaves[i], i, n, path) != root {
				t.Fatalf("leaf %d of %d does not lead to the root", i, n)
			}
		}
	}
}

func BenchmarkTAE3(b *testing.B) {
	c := newTestCluster3(b, 3, 2)
	for _, n := range []int{1, 16, 128, 1024} {
		messages := make([]Message, n)
		for i := range messages {
			messages[i].Plaintext = fmt.Appendf(nil, "message of 32 bytes, number %d...", i)
		}
		per := func(b *testing.B) { b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/item") }
		e, err := EncryptMessages(c.cert, c.author, messages)
		if err != nil {
			b.Fatal(err)
		}
		r, _ := e.VerifiedRound(dprf.SetOf(1, 2))
		requests := [][]byte{nil, r.Request(1), r.Request(2)}
		answers := [][]byte{nil, c.servers[1].Handle(c.caller(), requests[1]), c.servers[2].Handle(c.caller(), requests[2])}
		b.Run(fmt.Sprintf("node-encrypt/batch=%d", n), func(b *testing.B) {
			for b.Loop() {
				c.servers[1].Handle(c.caller(), requests[1])
			}
			per(b)
		})
		b.Run(fmt.Sprintf("client-encrypt/batch=%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := EncryptMessages(c.cert, c.author, messages); err != nil {
					b.Fatal(err)
				}
				r, _ = e.VerifiedRound(dprf.SetOf(1, 2))
				r.Add(1, answers[1])
				if err := r.Add(2, answers[2]); err != nil || !r.Done() {
					b.Fatal(err)
				}
			}
			per(b)
		})
		var headers []*Header
		for _, object := range e.Objects() {
			h, _, err := ParseHeader(object)
			if err != nil {
				b.Fatal(err)
			}
			headers = append(headers, h)
		}
		d, err := NewDecryption(c.cert, headers)
		if err != nil {
			b.Fatal(err)
		}
		dr, _ := d.VerifiedRound(dprf.SetOf(1, 2), false)
		req := dr.Request()
		b.Run(fmt.Sprintf("node-decrypt/batch=%d", n), func(b *testing.B) {
			for b.Loop() {
				c.servers[1].Handle(c.caller(), req)
			}
			per(b)
		})
		a1, a2 := c.servers[1].Handle(c.caller(), req), c.servers[2].Handle(c.caller(), req)
		b.Run(fmt.Sprintf("client-decrypt/batch=%d", n), func(b *testing.B) {
			for b.Loop() {
				dr, _ := d.VerifiedRound(dprf.SetOf(1, 2), false)
				dr.Add(1, a1)
				dr.Add(2, a2)
				for i := range headers {
					if _, err := dr.Unmask(i); err != nil {
						b.Fatal(err)
					}
				}
			}
			per(b)
		})
	}
}

func sigSign(private ed25519.PrivateKey, a *answer3) [sig.Size]byte {
	return sig.Sign(private, labelAnswer, a.digest())
}
