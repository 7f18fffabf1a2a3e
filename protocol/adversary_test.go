package protocol

import (
	"bytes"
	"slices"
	"testing"

	"github.com/seed-a893640b/tae/dprf"
)

// The games have an attacker with up to t-1 nodes, a client's key where they say so,
// every object and everything that was sent. Each has a control: one rule is removed
// and the same attack must then succeed, or the game would show nothing.

// nodeRules are rules of a node that controls switch off.
type nodeRules struct {
	refRules
	openCheck    bool // does not check that s_k opens c_k
	idFromClient bool // takes the identity from an encrypt request in place of w
	anyClient    bool // takes the author from the request's last 32 bytes, not from the channel
	oneRight     bool // the right to encrypt allows decrypt requests as well
	assignedOnly bool // verifies only the tags of keys assigned to it
	noTags       bool // verifies no tags
}

// A weakNode is a node written again for the tests, without the rules that are off.
// With all rules on it answers as Server does; TestWeakNodeIsServer says so.
type weakNode struct {
	c     *testCluster
	node  int
	off   nodeRules
	allow func(Op) bool
}

// handle returns the answer behind its two leading bytes, or nil for a refusal.
func (w *weakNode) handle(caller ClientKey, req []byte) []byte {
	t, rest, err := readTarget(req)
	right := t.op
	if w.off.oneRight {
		right = OpEncrypt
	}
	if err != nil || t.keyset != w.c.cert.Keyset || t.epoch != w.c.cert.Epoch || t.attempt != 1 || t.generation != 0 || t.suite != SuiteTAE1 ||
		t.mode != ModeSealed || !w.allow(right) || !t.quorum.Has(w.node) {
		return nil
	}
	layout := w.c.cert.Layout()
	owner, err := layout.Assign(t.quorum)
	if err != nil {
		return nil
	}
	keys := owner.Keys(w.node)
	if t.detail {
		keys = layout.HeldBy(w.node)
	}
	if t.op == OpEncrypt {
		return w.encrypt(caller, &t, keys, rest)
	}
	return w.decrypt(&t, owner, keys, rest)
}

func (w *weakNode) encrypt(caller ClientKey, t *target, keys []int, rest []byte) (out []byte) {
	if w.off.anyClient {
		caller = ClientKey(rest[len(rest)-32:])
		rest = rest[:len(rest)-32]
	}
	r, err := readEncrypt(rest, w.c.cert.N)
	if err != nil || !w.off.openCheck && !r.checkOpening(w.node) {
		return nil
	}
	hash := openingsHash(r.commitments)
	ctx := refSession{w.c.cert.Keyset[:], 1, caller[:], hash[:]}.contextWith(w.off.refRules)
	for i := range r.items {
		x := r.w[32*i:][:32]
		if !w.off.idFromClient {
			x = refX(ctx, x)
		}
		out = append(out, w.masks(x, keys, t.detail)...)
		for _, k := range keys {
			out = append(out, refTag(w.c.keys[k].Expose(), 1, x)...)
		}
	}
	return out
}

func (w *weakNode) decrypt(t *target, owner dprf.Assignment, keys []int, rest []byte) (out []byte) {
	items, count, size, err := readDecrypt(rest, len(w.c.keys))
	if err != nil {
		return nil
	}
	codes := make([]byte, count)
	for i := range count {
		id, tags := items[i*size:][:32], items[i*size+32:][:size-32]
		masks := w.masks(id, keys, t.detail)
		for _, k := range w.c.cert.Layout().HeldBy(w.node) {
			must := !w.off.noTags && (!w.off.assignedOnly || int(owner[k]) == w.node)
			if must && !bytes.Equal(tags[16*k:][:16], refTag(w.c.keys[k].Expose(), 1, id)) {
				codes[i] = byte(CodeBadProof)
			}
		}
		if codes[i] != 0 {
			clear(masks)
		}
		out = append(out, masks...)
	}
	return append(codes, out...)
}

func (w *weakNode) masks(x []byte, keys []int, detail bool) (out []byte) {
	sum := make([]byte, 32)
	for _, k := range keys {
		m := refMask(w.c.keys[k].Expose(), x)
		sum = refXOR(sum, m)
		out = append(out, m...)
	}
	if detail {
		return out
	}
	return sum
}

// both asks the real server and a node without rules off; they must agree.
func TestWeakNodeIsServer(t *testing.T) {
	c := newTestCluster(t, 4, 3)
	e, err := EncryptMessages(c.cert, c.author, []Message{{Plaintext: []byte("a")}, {Plaintext: []byte("b")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, detail := range []bool{false, true} {
		q := dprf.SetOf(1, 2, 4)
		r, err := e.Round(q, detail)
		if err != nil {
			t.Fatal(err)
		}
		ask := func(node int, req []byte) []byte {
			real := c.servers[node].Handle(c.caller(), req)
			weak := (&weakNode{c: c, node: node, allow: func(Op) bool { return true }}).handle(c.author.Key, req)
			if refused := real[1] != 0; refused != (weak == nil) || !refused && !bytes.Equal(real[2:], weak) {
				t.Errorf("node %d answers otherwise", node)
			}
			return real
		}
		for _, node := range q.Nodes() {
			req := r.Request(node)
			if err := r.Add(node, ask(node, req)); err != nil {
				t.Fatal(err)
			}
			req[len(req)-70] ^= 1 // in the secret
			ask(node, req)
			ask(node%4+1, req)
		}
		if err := r.Finish(); err != nil {
			t.Fatal(err)
		}
		h, _, err := ParseHeader(e.Objects()[0])
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			d, err := NewDecryption(c.cert, []*Header{h})
			if err != nil {
				t.Fatal(err)
			}
			r, err := d.Round(q, detail)
			if err != nil {
				t.Fatal(err)
			}
			for node := 1; node <= 4; node++ {
				ask(node, r.Request())
			}
			h.Proof[20] ^= 1 // for the second time
		}
	}
}

// A victim is a client's object with everything that was sent for it.
type victim struct {
	object         []byte
	x, w, rho      []byte
	s, commitments [][]byte // all; an attacker reads only what its nodes were sent
	plaintext      []byte
}

// sealWith makes a message object with all keys in hand, under rules that may be off.
func (c *testCluster) sealWith(rules refRules, rho, b, j []byte, born int, m, aad []byte) victim {
	v := victim{rho: rho, plaintext: m}
	var r []byte
	v.s, v.commitments, r = refOpenings(b, c.cert.N)
	p := Params{Suite: SuiteTAE1, Mode: ModeSealed, Layers: c.cert.Layers, Keyset: c.cert.Keyset}
	params := p.Append(nil)
	plain := slices.Concat(j, r, m)
	body := refXOR(plain, refKeystream(rho, len(plain)))
	hb := refH("tae/v1/body", body)
	v.w = refCommit(rules, rho, born, hb[:], params, aad)
	v.x = refX(refSession{c.cert.Keyset[:], 1, j, r}.contextWith(rules), v.w)
	v.object = c.assemble(v.x, refXOR(append(bytes.Clone(rho), refU16(born)...), refF(c.rawKeys(), v.x)), body)
	return v
}

// assemble makes an object of this cluster's epoch around an identity.
func (c *testCluster) assemble(x, masked, body []byte) []byte {
	h := Header{Params: Params{Suite: SuiteTAE1, Mode: ModeSealed, Layers: c.cert.Layers, Keyset: c.cert.Keyset}, Epoch: c.cert.Epoch,
		Source: Source{X0: Identity(x)}, Proof: refTags(c.rawKeys(), 1, x), Masked: [32]byte(masked)}
	return append(h.Append(nil), body...)
}

// openWithMask is what an attacker does that has found the victim's mask.
func (v *victim) openWithMask(mask []byte) bool {
	h, body, err := ParseHeader(v.object)
	if err != nil {
		return false
	}
	rho := refXOR(h.Masked[:], mask)[:30]
	plain := refXOR(body, refKeystream(rho, len(body)))
	return bytes.Equal(plain[64:], v.plaintext)
}

// known are the masks of the keys that a set of nodes holds, by key.
func (c *testCluster) known(nodes dprf.Set, x []byte) map[int][]byte {
	masks := map[int][]byte{}
	layout := c.cert.Layout()
	for _, node := range nodes.Nodes() {
		for _, k := range layout.HeldBy(node) {
			masks[k] = refMask(c.keys[k].Expose(), x)
		}
	}
	return masks
}

// addDetail notes the masks of a detail answer to one item.
func (c *testCluster) addDetail(masks map[int][]byte, node int, answer []byte) {
	for i, k := range c.cert.Layout().HeldBy(node) {
		if len(answer) >= 32*(i+1) {
			masks[k] = answer[32*i:][:32]
		}
	}
}

// total is the whole mask when all keys' masks are known.
func (c *testCluster) total(masks map[int][]byte) ([]byte, bool) {
	sum := make([]byte, 32)
	for k := range c.keys {
		if masks[k] == nil {
			return nil, false
		}
		sum = refXOR(sum, masks[k])
	}
	return sum, true
}

// encryptRequest writes an encrypt request in detail by hand.
func (c *testCluster) encryptRequest(q dprf.Set, commitments [][]byte, secret []byte, w ...[]byte) []byte {
	t := targetOf(c.cert, OpEncrypt, q, true)
	b := append(t.append(nil), byte(len(commitments)))
	b = append(append(b, bytes.Join(commitments, nil)...), secret...)
	return append(append(b, refU16(len(w))...), bytes.Join(w, nil)...)
}

func (c *testCluster) decryptRequest(q dprf.Set, detail bool, id, tags []byte) []byte {
	t := targetOf(c.cert, OpDecrypt, q, detail)
	return append(append(append(t.append(nil), 0, 1), id...), tags...)
}
