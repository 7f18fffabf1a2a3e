package protocol

import (
	"bytes"
	"crypto/rand"
	"testing"

	"github.com/seed-a893640b/tae/dprf"
)

// sizes are the clusters that the games are played on.
var sizes = []dprf.Params{{N: 2, T: 2}, {N: 3, T: 2}, {N: 4, T: 2}, {N: 4, T: 3}, {N: 5, T: 3}}

func random(n int) []byte { b := make([]byte, n); rand.Read(b); return b }

// encryptOnly is a gate of a node that lets nobody decrypt.
func encryptOnly(_ Caller, _ string, op Op, _ int) *Refusal {
	if op == OpEncrypt {
		return nil
	}
	return refuse(CodeDenied, "no")
}

// t-1 nodes with every object and as many encrypt answers as they like open
// nothing; t nodes open everything.
func TestGameSecrecy(t *testing.T) {
	for _, p := range sizes {
		c := newTestCluster(t, p.N, p.T)
		m := []byte("the secret of the victim")
		v := c.sealWith(refRules{}, random(30), random(32), c.author.Key[:], 1, m, nil)
		quorums(p.N, p.T-1, func(corrupt dprf.Set) {
			masks := c.known(corrupt, v.x)
			if _, all := c.total(masks); all {
				t.Fatalf("n=%d t=%d: %v hold all keys", p.N, p.T, corrupt)
			}
			// Everything that an encrypt request can reach: own secrets and commitments
			// around the victim's identity, commitment and masked value.
			own := random(32)
			s, commitments, _ := refOpenings(own, p.N)
			mallory := Caller{Key: ClientKey(random(32))}
			for node := 1; node <= p.N; node++ {
				server := c.server(t, node, encryptOnly)
				for _, w := range [][]byte{v.x, v.w, v.object[len(v.object)-32:], random(32)} {
					answer := server.Handle(mallory, c.encryptRequest(c.all(), commitments, s[node-1], w))
					if answer[1] != 0 {
						t.Fatal("an honest session is refused")
					}
					c.leaks(t, v, masks, node, answer)
				}
				h, _, _ := ParseHeader(v.object)
				if answer := server.Handle(mallory, c.decryptRequest(c.all(), true, v.x, h.Proof)); answer[1] != byte(CodeDenied) {
					t.Errorf("decrypted without the right: code %d", answer[1])
				}
				// Control: the right to encrypt taken for the right to decrypt.
				weak := weakNode{c: c, node: node, off: nodeRules{oneRight: true}, allow: func(op Op) bool { return op == OpEncrypt }}
				broken := c.known(corrupt, v.x)
				c.addDetail(broken, node, weak.handle(mallory.Key, c.decryptRequest(c.all(), true, v.x, h.Proof))[1:])
				if total, all := c.total(broken); !corrupt.Has(node) && (!all || !v.openWithMask(total)) {
					t.Errorf("control: n=%d t=%d, corrupt %v and node %d", p.N, p.T, corrupt, node)
				}
				// Control: t nodes open it.
				if total, all := c.total(c.known(corrupt|dprf.SetOf(node), v.x)); !corrupt.Has(node) && (!all || !v.openWithMask(total)) {
					t.Error("t nodes do not open the object")
				}
			}
		})
	}
}

// leaks fails the test when an answer helps to open the victim's object: when any of
// its 32-byte or 16-byte values is a mask, or half of one, that the attacker lacks.
func (c *testCluster) leaks(t *testing.T, v victim, masks map[int][]byte, node int, answer []byte) {
	t.Helper()
	for k := range c.keys {
		if masks[k] != nil {
			continue
		}
		m := refMask(c.keys[k].Expose(), v.x)
		if bytes.Contains(answer, m[:16]) || bytes.Contains(answer, m[16:]) {
			t.Errorf("the answer of node %d holds a mask of the victim's object", node)
		}
	}
	broken := map[int][]byte{}
	for k, m := range masks {
		broken[k] = m
	}
	c.addDetail(broken, node, answer[2:])
	if total, all := c.total(broken); all && v.openWithMask(total) {
		t.Errorf("the answer of node %d opens the victim's object", node)
	}
}

// An encrypt transcript is worth nothing as a decrypt request, at another node, in
// another client's name, or in another quorum or epoch.
func TestGameReplayReframeReaddress(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	v := c.sealWith(refRules{}, random(30), random(32), c.author.Key[:], 1, []byte("the secret"), nil)
	corrupt := dprf.SetOf(1)
	masks := c.known(corrupt, v.x)
	sent := c.encryptRequest(dprf.SetOf(1, 2), v.commitments, v.s[0], v.w) // what node 1 was sent
	stranger := Caller{Key: ClientKey(random(32))}
	refused := func(what string, caller Caller, node int, req []byte) {
		t.Helper()
		answer := c.servers[node].Handle(caller, req)
		if answer[1] == 0 {
			t.Errorf("%s: answered", what)
		}
		c.leaks(t, v, masks, node, answer)
	}
	nodes := func(a, b byte) []byte {
		r := bytes.Clone(sent)
		r[30], r[31] = a, b
		return r
	}
	reframed := bytes.Clone(sent)
	reframed[1] = byte(OpDecrypt)
	refused("re-framed as decrypt", c.caller(), 2, reframed)
	refused("re-framed as decrypt, to its own node", c.caller(), 1, reframed)
	refused("re-addressed", c.caller(), 2, sent)
	refused("re-addressed with the quorum changed", c.caller(), 3, nodes(1, 3))
	refused("re-addressed by another client", stranger, 2, sent)
	refused("the identity as a decrypt request without its tags", c.caller(), 2, c.decryptRequest(dprf.SetOf(1, 2), true, v.x, nil))
	for _, b := range []byte{0, 3, 16, 17, 32, 33, 255} {
		other := bytes.Clone(sent)
		other[1] = b
		if b != 16 {
			refused("another operation", c.caller(), 2, other)
		}
	}
	// With made-up tags the masks come back as zeros.
	for node := 2; node <= 3; node++ {
		answer := c.servers[node].Handle(c.caller(), c.decryptRequest(c.all(), true, v.x, make([]byte, 48)))
		if answer[1] != 0 || answer[2] != byte(CodeBadProof) || !bytes.Equal(answer[3:], make([]byte, len(answer)-3)) {
			t.Errorf("tags of zeros: %x", answer)
		}
		c.leaks(t, v, masks, node, answer)
	}
	// A client's own session around the victim's w is another identity.
	s, commitments, _ := refOpenings(random(32), 3)
	c.leaks(t, v, masks, 2, c.servers[2].Handle(stranger, c.encryptRequest(c.all(), commitments, s[1], v.w)))
	c.leaks(t, v, masks, 2, c.servers[2].Handle(c.caller(), c.encryptRequest(c.all(), commitments, s[1], v.w)))
	// Control: a node that takes the identity from an encrypt request in place of w.
	// Whoever holds the object and may encrypt then opens it.
	weak := weakNode{c: c, node: 2, off: nodeRules{idFromClient: true}, allow: func(op Op) bool { return op == OpEncrypt }}
	c.addDetail(masks, 2, weak.handle(stranger.Key, c.encryptRequest(c.all(), commitments, s[1], v.x)))
	if total, all := c.total(masks); !all || !v.openWithMask(total) {
		t.Error("control: the attack no longer works without the rule")
	}
}

// A second process with the client's own key, and with everything that t-1 nodes
// received, cannot ask for the same identity again.
func TestGameSecondProcess(t *testing.T) {
	for _, p := range sizes {
		c := newTestCluster(t, p.N, p.T)
		quorums(p.N, p.T-1, func(corrupt dprf.Set) {
			c.secondProcess(t, corrupt)
		})
	}
}

func (c *testCluster) secondProcess(t *testing.T, corrupt dprf.Set) {
	seal := func(rules refRules) victim {
		return c.sealWith(rules, random(30), random(32), c.author.Key[:], 1, []byte("the secret"), nil)
	}
	v := seal(refRules{})
	first := corrupt.Nodes()[0]
	masks := c.known(corrupt, v.x)
	own := random(32)
	s, fresh, _ := refOpenings(own, c.cert.N)
	for node := 1; node <= c.cert.N; node++ {
		if corrupt.Has(node) {
			continue
		}
		for what, req := range map[string][]byte{
			"another node's secret": c.encryptRequest(c.all(), v.commitments, v.s[first-1], v.w),
			"no secret":             c.encryptRequest(c.all(), v.commitments, make([]byte, 32), v.w),
			"the commitment itself": c.encryptRequest(c.all(), v.commitments, v.commitments[node-1], v.w),
		} {
			if answer := c.servers[node].Handle(c.caller(), req); answer[1] != byte(CodeBadOpening) {
				t.Errorf("%s: code %d", what, answer[1])
			}
		}
		// Own openings are accepted and lead elsewhere.
		mixed := append([][]byte{}, v.commitments...)
		mixed[node-1] = fresh[node-1]
		for _, commitments := range [][][]byte{fresh, mixed} {
			answer := c.servers[node].Handle(c.caller(), c.encryptRequest(c.all(), commitments, s[node-1], v.w))
			if answer[1] != 0 {
				t.Fatal("an honest opening is refused")
			}
			c.leaks(t, v, masks, node, answer)
		}
		// Controls: R left out of the identity; s_k not checked; all s_k sent to all.
		for what, control := range map[string]struct {
			off         nodeRules
			secret      []byte
			commitments [][]byte
		}{
			"R left out of the identity": {nodeRules{refRules: refRules{noR: true}}, s[node-1], fresh},
			"s_k not checked":            {nodeRules{openCheck: true}, make([]byte, 32), nil},
			"all s_k sent to all nodes":  {nodeRules{}, nil, nil},
		} {
			v := seal(control.off.refRules)
			if control.commitments == nil {
				control.commitments = v.commitments
			}
			if control.secret == nil {
				control.secret = v.s[node-1]
			}
			weak := weakNode{c: c, node: node, off: control.off, allow: func(op Op) bool { return op == OpEncrypt }}
			broken := c.known(corrupt, v.x)
			c.addDetail(broken, node, weak.handle(c.author.Key, c.encryptRequest(c.all(), control.commitments, control.secret, v.w)))
			if total, all := c.total(broken); !all || !v.openWithMask(total) {
				t.Errorf("control, %s: the attack no longer works", what)
			}
		}
	}
}

// The client shows every node its own secret and no other: no request holds two.
func TestGameNoSecretToTwoNodes(t *testing.T) {
	c := newTestCluster(t, 5, 3)
	e, err := EncryptMessages(c.cert, c.author, []Message{{Plaintext: []byte("m")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, detail := range []bool{false, true} {
		for _, q := range []dprf.Set{dprf.SetOf(1, 2, 3), dprf.SetOf(2, 4, 5), c.all()} {
			r, err := e.Round(q, detail)
			if err != nil {
				t.Fatal(err)
			}
			for _, node := range q.Nodes() {
				req := r.Request(node)
				for k := 1; k <= 5; k++ {
					if bytes.Contains(req, e.open.secrets[k-1][:]) != (k == node) {
						t.Errorf("the request to node %d and the secret of node %d", node, k)
					}
				}
			}
		}
	}
	e.Wipe()
	if (e.open.secrets[0] != [32]byte{}) || (e.rhos[0] != Rho{}) {
		t.Error("secrets survive Wipe")
	}
}
