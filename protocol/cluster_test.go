package protocol

import (
	"crypto/ed25519"
	"crypto/rand"
	"testing"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/secret"
)

// testCluster is a whole keyset in one place, with a server per node.
type testCluster struct {
	cert    *Certificate
	keys    []secret.Bytes
	servers []*Server
	author  *Author
	private ed25519.PrivateKey
}

func newTestCluster(t testing.TB, n, th int) *testCluster {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &testCluster{author: &Author{Key: ClientKey(pub), KeyHash: HashPrivateKey(priv)}, private: priv}
	c.cert = testCertificate(t, n, th)
	layout := c.cert.Layout()
	c.keys = make([]secret.Bytes, layout.Keys())
	for i := range c.keys {
		b := make([]byte, dprf.KeySize)
		rand.Read(b)
		c.keys[i] = secret.New(b)
	}
	c.servers = make([]*Server, n+1)
	for node := 1; node <= n; node++ {
		c.servers[node] = c.server(t, node, allowAll)
	}
	return c
}

func allowAll(Caller, string, Op, int) *Refusal { return nil }

func (c *testCluster) server(t testing.TB, node int, gate Gate) *Server {
	t.Helper()
	layout := c.cert.Layout()
	var held []secret.Bytes
	for _, key := range layout.HeldBy(node) {
		held = append(held, c.keys[key])
	}
	share, err := dprf.NewShare(layout, node, held)
	if err != nil {
		t.Fatal(err)
	}
	e := &Epoch{Certificate: c.cert, Encoded: c.cert.Append(nil), Share: share, State: EpochActive}
	return NewServer(node, gate, map[KeysetID]*ServedKeyset{c.cert.Keyset: {Active: e, Epochs: map[uint16]*Epoch{c.cert.Epoch: e}}})
}

// testCertificate makes a certificate with real signatures and made-up checks.
func testCertificate(t testing.TB, n, th int) *Certificate {
	t.Helper()
	c := &Certificate{Terms: Terms{Name: "default", Suite: SuiteTAE1, N: n, T: th, Modes: ModesOf(ModeSealed, ModeLayered), Layers: 20,
		Limits: Limits{MaxBatch: MaxBatchLimit, ObjectsLog2: ObjectsLog2}, Version: 1, Epoch: 1, Attempt: 1}}
	rand.Read(c.Keyset[:])
	var private []ed25519.PrivateKey
	for range n {
		pub, priv, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c.Members = append(c.Members, [32]byte(pub))
		private = append(private, priv)
	}
	c.Checks = make([][32]byte, c.Layout().Keys())
	for i := range c.Checks {
		rand.Read(c.Checks[i][:])
	}
	for _, p := range private {
		c.Signatures = append(c.Signatures, c.Sign(p))
	}
	return c
}

func (c *testCluster) caller() Caller { return Caller{Key: c.author.Key} }

func (c *testCluster) all() dprf.Set { return 1<<c.cert.N - 1 }

// runEncrypt runs one round against the servers.
func (c *testCluster) runEncrypt(e *Encryption, q dprf.Set, detail bool) error {
	r, err := e.Round(q, detail)
	if err != nil {
		return err
	}
	for _, node := range q.Nodes() {
		if err := r.Add(node, c.servers[node].Handle(c.caller(), r.Request(node))); err != nil {
			return err
		}
	}
	return r.Finish()
}

func (c *testCluster) encrypt(t testing.TB, q dprf.Set, detail bool, messages ...Message) [][]byte {
	t.Helper()
	e, err := EncryptMessages(c.cert, c.author, messages)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.runEncrypt(e, q, detail); err != nil {
		t.Fatal(err)
	}
	e.Wipe()
	return e.Objects()
}

// runDecrypt asks the quorum for the secret of one object.
func (c *testCluster) runDecrypt(h *Header, q dprf.Set) (Opened, error) {
	d, err := NewDecryption(c.cert, []*Header{h})
	if err != nil {
		return Opened{}, err
	}
	r, err := d.Round(q, false)
	if err != nil {
		return Opened{}, err
	}
	for _, node := range q.Nodes() {
		if err := r.Add(node, c.servers[node].Handle(c.caller(), r.Request())); err != nil {
			return Opened{}, err
		}
	}
	return r.Unmask(0)
}

func (c *testCluster) decrypt(object, aad []byte, q dprf.Set) ([]byte, error) {
	h, body, err := ParseHeader(object)
	if err != nil {
		return nil, err
	}
	o, err := c.runDecrypt(h, q)
	if err != nil {
		return nil, err
	}
	m, _, err := o.Message(body, aad)
	return m, err
}

// quorums calls f with every set of exactly size of n nodes.
func quorums(n, size int, f func(dprf.Set)) {
	agreeing(1<<n-1, size, make([]dprf.Set, dprf.MaxNodes+1), func(s dprf.Set) bool { f(s); return true })
}
