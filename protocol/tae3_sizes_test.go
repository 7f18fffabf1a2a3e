package protocol

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/sig"
	"github.com/seed-a893640b/tae/sig/bls"
)

// randomOrder is a random order of all nodes.
func randomOrder(r *rand.Rand, n int) []int {
	order := r.Perm(n)
	for i := range order {
		order[i]++
	}
	return order
}

// resigned lets a node lie with its own signature over the lie.
func resigned(c *testCluster, liar int, ids []Identity, root [32]byte, request []byte, answer []byte, change func(a *answer3)) []byte {
	key := c.servers[liar].keysets[c.cert.Keyset].Active.TAE3.NodeKey
	a := &answer3{cert: c.cert, op: OpEncrypt, node: liar, request: requestHash(request), root: root}
	body := answer[2:]
	for i := range ids {
		a.positions, a.ids = append(a.positions, uint16(i)), append(a.ids, ids[i])
		a.values = append(a.values, [dprf.ElementSize]byte(body[i*dprf.ElementSize:]))
	}
	body = body[len(ids)*dprf.ElementSize:]
	a.proof, a.partial = [dprf.ProofSize]byte(body), [bls.SignatureSize]byte(body[dprf.ProofSize:])
	change(a)
	s := sig.Sign(ed25519.PrivateKey(key), labelAnswer, a.digest())
	out := []byte{wireVersion, byte(CodeOK)}
	for i := range a.values {
		out = append(out, a.values[i][:]...)
	}
	return append(append(append(out, a.proof[:]...), a.partial[:]...), s[:]...)
}

// Quorums of all sizes encrypt and decrypt, and one lying node of each kind is found,
// named, and convicted by its own signature, while the others finish.
func TestTAE3Sizes(t *testing.T) {
	sizes := []dprf.Params{{N: 3, T: 2}, {N: 5, T: 3}, {N: 6, T: 4}, {N: 10, T: 6}, {N: 24, T: 12}}
	tries := 200
	if testing.Short() {
		sizes, tries = sizes[:3], 10
	}
	for _, p := range sizes {
		r := rand.New(rand.NewPCG(uint64(p.N), uint64(p.T)))
		c := newTestCluster3(t, p.N, p.T)
		for range tries {
			objects, errs := c.encrypt3(t, randomOrder(r, p.N)[:p.T], honest, Message{Plaintext: []byte("m")})
			if len(errs) > 0 {
				t.Fatalf("%v: %v", p, errs)
			}
			got, _, err := c.decrypt3(t, randomOrder(r, p.N)[:p.T], false, honest, objects[0], nil)
			if err != nil || string(got) != "m" {
				t.Fatalf("%v: %v", p, err)
			}
		}
		stale := newTestCluster3(t, p.N, p.T) // the shares of another epoch
		for what, change := range map[string]func(a, other *answer3){
			"wrong value":                  func(a, _ *answer3) { a.values[0] = [32]byte{} },
			"wrong proof":                  func(a, _ *answer3) { a.proof[0] ^= 1 },
			"wrong partial signature":      func(a, _ *answer3) { copy(a.partial[:], c.someSignature(t)) },
			"right proof for another item": func(a, o *answer3) { a.proof = o.proof },
			"stale epoch": func(a, _ *answer3) {
				in := dprf.NewInputs(a.ids)
				a.values = stale.servers[a.node].keysets[stale.cert.Keyset].Active.TAE3.Share.Evaluate(in)
			},
		} {
			liar := 1 + r.IntN(p.N)
			e, err := EncryptMessages(c.cert, c.author, []Message{{Plaintext: []byte("a")}, {Plaintext: []byte("b")}})
			if err != nil {
				t.Fatal(err)
			}
			round, _ := e.VerifiedRound(0)
			ids := []Identity{e.items[0].x, e.items[1].x}
			other, _, err := c.honestAnswer(liar)
			if err != nil {
				t.Fatal(err)
			}
			order := append([]int{liar}, randomOrder(r, p.N)...) // the liar answers first
			errs := map[int]error{}
			for i, node := range order {
				if round.Done() || i > 0 && node == liar {
					continue
				}
				round.Extend(dprf.SetOf(node))
				req := round.Request(node)
				answer := c.servers[node].Handle(c.caller(), req)
				if node == liar {
					answer = resigned(c, liar, ids, round.root, req, answer, func(a *answer3) { change(a, other) })
				}
				if err := round.Add(node, answer); err != nil {
					errs[node] = err
				}
				for node, err := range round.Lies() {
					errs[node] = err
				}
			}
			var l *LieError
			if !round.Done() || len(errs) != 1 || !errors.As(errs[liar], &l) {
				t.Errorf("%v %s of node %d: done %v, %v", p, what, liar, round.Done(), errs)
				continue
			}
			if l.Evidence == nil {
				t.Errorf("%v %s: no evidence", p, what)
				continue
			}
			if _, err := l.Evidence.Verify(c.cert.Members); err != nil {
				t.Errorf("%v %s: %v", p, what, err)
			}
			for i, object := range e.Objects() {
				got, _, err := c.decrypt3(t, randomOrder(r, p.N), false, honest, object, nil)
				if err != nil || !bytes.Equal(got, []byte{'a' + byte(i)}) {
					t.Errorf("%v %s: %v", p, what, err)
				}
			}
		}
	}
}

// honestAnswer is a right answer of a node to some other request.
func (c *testCluster) honestAnswer(node int) (*answer3, []byte, error) {
	e, err := EncryptMessages(c.cert, c.author, []Message{{}, {}})
	if err != nil {
		return nil, nil, err
	}
	r, err := e.VerifiedRound(dprf.SetOf(node))
	if err != nil {
		return nil, nil, err
	}
	raw := c.servers[node].Handle(c.caller(), r.Request(node))
	a, _, err := r.open(node, raw)
	return a, raw, err
}
