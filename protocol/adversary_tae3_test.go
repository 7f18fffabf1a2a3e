package protocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/gtank/ristretto255"

	"github.com/seed-a893640b/tae/dprf"
)

// Games against TAE3. As for TAE1, each has a control: one rule is removed and the same
// attack must then succeed.

func only(op Op) Gate {
	return func(_ Caller, _ string, o Op, _ int) *Refusal {
		if o != op {
			return refuse(CodeDenied, "no right")
		}
		return nil
	}
}

func codeOf(answer []byte) Code {
	if len(answer) < 2 {
		return CodeInternal
	}
	return Code(answer[1])
}

// ask3 is a decrypt request for one item, by hand.
func (c *cluster3) ask3(op Op, proofs bool, id []byte, index, count int, proof []byte) []byte {
	t := targetOf(c.cert, op, everybody(c.cert), proofs)
	return append(append(append(append(append(t.append(nil), 0, 1), id...), refU16(index)...), refU16(count)...), proof...)
}

// valueOf reads the value of the one item that was asked for; nil when it is refused.
func valueOf(answer []byte) *ristretto255.Element {
	if codeOf(answer) != CodeOK || len(answer) < 35 || answer[2] != 0 {
		return nil
	}
	return ref3Point(answer[3:35])
}

// opens reports whether a group element is the function's value of an object.
func opens(object []byte, y *ristretto255.Element) bool {
	if y == nil {
		return false
	}
	_, _, err := ref3Open(refRules{}, nil, y, object, nil)
	return err == nil
}

// t-1 nodes with every object, every encrypt answer and all that they received decrypt
// nothing, and no node serves an identity that t nodes have not signed; t nodes do.
func TestGame3Secrecy(t *testing.T) {
	for _, p := range []dprf.Params{{N: 3, T: 2}, {N: 5, T: 3}} {
		c := fixedCluster3(t, p.N, p.T, "secrecy")
		e, objects := c.make3(t, fixed32("b"), fixed32("seed"), Message{Plaintext: []byte("secret")})
		object := objects[0]
		h, _, _ := ParseHeader(object)
		x := h.Source.X0[:]
		quorums(p.N, p.T-1, func(corrupt dprf.Set) {
			nodes := corrupt.Nodes()
			var known []*ristretto255.Element
			for _, node := range nodes {
				known = append(known, c.value(node, x))
			}
			// A combination of what they have is not the value, whoever they pretend to be.
			if opens(object, ref3Combine(p.N, nodes, known)) {
				t.Error("t-1 nodes decrypt")
			}
			for honest := 1; honest <= p.N; honest++ {
				if corrupt.Has(honest) {
					continue
				}
				s := c.server3(t, honest, only(OpEncrypt))
				req := c.ask3(OpDecrypt, false, x, 0, 1, h.Proof)
				if v := valueOf(s.Handle(c.caller(), req)); v != nil {
					t.Error("served without a right")
				}
				// The right to encrypt, with the identity, its commitment and openings of their own.
				own := newOpenings(fixed32("own"), p.N)
				for _, w := range [][]byte{x, e.items[0].w[:]} {
					req := targetOf(c.cert, OpEncrypt, everybody(c.cert), false)
					b := append(req.append(nil), byte(p.N))
					for k := range own.commitments {
						b = append(b, own.commitments[k][:]...)
					}
					b = append(append(append(b, own.secrets[honest-1][:]...), 0, 1), w...)
					answer := s.Handle(c.caller(), b)
					if codeOf(answer) != CodeOK {
						t.Fatal("refused")
					}
					all := append(known[:len(known):len(known)], ref3Point(answer[2:34]))
					if opens(object, ref3Combine(p.N, append(nodes[:len(nodes):len(nodes)], honest), all)) {
						t.Error("encrypt answers decrypt")
					}
				}
				// An identity of their own, signed by t-1 nodes.
				id := random(32)
				var partials [][]byte
				for _, node := range nodes {
					partials = append(partials, ref3Sign(c.sigShare(node), ref3Signed(c.cert.Keyset[:], 1, 1, ref3Leaf(id))))
				}
				forged := ref3CombineSignatures(nodes, partials)
				for _, proof := range [][]byte{forged, partials[0], h.Proof, append([]byte{0xc0}, make([]byte, 47)...)} {
					if v := valueOf(c.servers[honest].Handle(c.caller(), c.ask3(OpDecrypt, false, id, 0, 1, proof))); v != nil {
						t.Error("an invented identity is served")
					}
				}
				// Controls: a node that takes the right to encrypt for that to decrypt, and one
				// that does not check signatures, gives the missing value.
				all := append(known[:len(known):len(known)], valueOf(c.servers[honest].Handle(c.caller(), req)))
				if !opens(object, ref3Combine(p.N, append(nodes[:len(nodes):len(nodes)], honest), all)) {
					t.Error("control: t nodes do not decrypt")
				}
				unchecked := c.epoch(honest).TAE3.Share.Evaluate(dprf.NewInputs([][32]byte{[32]byte(id)}))
				if !bytes.Equal(unchecked[0][:], c.value(honest, id).Encode(nil)) {
					t.Error("control: without the check the value of an invented identity is given")
				}
			}
		})
	}
}

// A second process knows all that t-1 nodes received, has the author's key, and asks
// the others for the same identity, or sends the request somewhere else or as something
// else.
func TestGame3SecondProcess(t *testing.T) {
	c := fixedCluster3(t, 3, 2, "second")
	e, objects := c.make3(t, fixed32("b2"), fixed32("seed2"), Message{Plaintext: []byte("secret")})
	object := objects[0]
	r, _ := e.VerifiedRound(0)
	seen := r.Request(1) // all that the corrupt node 1 has
	x := e.items[0].x[:]
	for _, honest := range []int{2, 3} {
		if code := codeOf(c.servers[honest].Handle(c.caller(), seen)); code != CodeBadOpening {
			t.Errorf("re-addressed: %v", code)
		}
		zero := bytes.Clone(seen)
		clear(zero[30+3+1+96:][:32])
		if code := codeOf(c.servers[honest].Handle(c.caller(), zero)); code != CodeBadOpening {
			t.Errorf("without a secret: %v", code)
		}
		// Control: a node that does not check the secret.
		ctx := sessionContext(c.cert.Keyset, SuiteTAE3, c.author.Key, &e.open.r)
		again := freshIdentity(&ctx, &e.items[0].w)
		values := []*ristretto255.Element{c.value(1, x), c.value(honest, again[:])}
		if !opens(object, ref3Combine(3, []int{1, honest}, values)) {
			t.Error("control: the secret decides nothing")
		}
		// Control: R left out of the identity. Then openings of one's own make the same one.
		off := refRules{noR: true}
		one := refX(refSession{c.cert.Keyset[:], 3, c.author.Key[:], fixed("R of the victim")}.contextWith(off), e.items[0].w[:])
		two := refX(refSession{c.cert.Keyset[:], 3, c.author.Key[:], fixed("R of the attacker")}.contextWith(off), e.items[0].w[:])
		if !bytes.Equal(one, two) {
			t.Error("control: R")
		}
	}
	for what, change := range map[string]func(b []byte){
		"as a decryption":    func(b []byte) { b[1] = byte(OpDecrypt) },
		"in another suite":   func(b []byte) { b[2] = byte(SuiteTAE1) },
		"for another epoch":  func(b []byte) { b[22] = 2 },
		"another generation": func(b []byte) { b[28] = 2 },
		"another keyset":     func(b []byte) { b[5] ^= 1 },
	} {
		b := bytes.Clone(seen)
		change(b)
		if codeOf(c.servers[1].Handle(c.caller(), b)) == CodeOK {
			t.Errorf("%s: served", what)
		}
	}
	// Another client that repeats the request gets values of another identity.
	other := Caller{Key: ClientKey(random(32))}
	answer := c.servers[1].Handle(other, seen)
	if codeOf(answer) == CodeOK && bytes.Equal(answer[2:34], c.value(1, x).Encode(nil)) {
		t.Error("another client gets the author's value")
	}
}

// part3 is one object cut into what a forger can recombine.
type part3 struct {
	x, masked, body, proof []byte
	index, count           uint16
}

// q sessions give q objects, counted by identity, masked value and body, whatever is
// mixed: items of a batch, requests, clients, keysets, epochs.
func TestGame3Forgery(t *testing.T) {
	c := fixedCluster3(t, 3, 2, "forgery")
	other := fixedCluster3(t, 3, 2, "another keyset")
	epoch2 := c.twin3(t, func(cert *Certificate) { cert.Epoch = 2 })
	generation2 := c.twin3(t, func(cert *Certificate) { cert.Generation = 2 })
	second := *c
	tc := *c.testCluster
	tc.author = &Author{Key: ClientKey(random(32))}
	second.testCluster = &tc
	m := Message{Plaintext: []byte("message")}
	var parts []part3
	cut := func(cl *cluster3, name string, messages ...Message) {
		_, objects := cl.make3(t, fixed32("b %s", name), fixed32("seed %s", name), messages...)
		for _, object := range objects {
			h, body, err := ParseHeader(object)
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, part3{h.Source.X0[:], h.Masked[:], body, h.Proof, h.Index, h.Count})
		}
	}
	cut(c, "batch", m, m, m)
	cut(c, "alone", m)
	cut(&second, "client", m)
	cut(other, "keyset", m)
	cut(epoch2, "epoch", m)
	count := map[string]int{}
	control, proofs := map[string]bool{}, 0
	for k, cl := range []*cluster3{c, other, epoch2, generation2} {
		for _, x := range parts {
			served := false
			for _, p := range parts {
				req := cl.ask3(OpDecrypt, false, x.x, int(p.index), int(p.count), p.proof)
				v := valueOf(cl.servers[1].Handle(cl.caller(), req))
				served = served || v != nil
				if v != nil {
					proofs++
				}
			}
			for _, e := range parts {
				for _, b := range parts {
					h := &Header{Params: Params{Suite: SuiteTAE3, Mode: ModeSealed, Keyset: cl.cert.Keyset}, Epoch: cl.cert.Epoch,
						Source: Source{X0: Identity(x.x)}, Count: 1, Proof: make([]byte, 48), Masked: [32]byte(e.masked)}
					o, ok := openedWith(h, cl.y(x.x))
					if !ok {
						t.Fatal("element")
					}
					_, _, err := o.Message(b.body, nil)
					if served && err == nil {
						count[fmt.Sprintf("%x %x %x", x.x, e.masked, b.body)] |= 1 << k
					}
					object := append(h.Append(nil), b.body...)
					if _, _, err := ref3Open(refRules{noX0: true}, nil, cl.y(x.x), object, nil); served && err == nil {
						control[fmt.Sprintf("%x %x %x", x.x, e.masked, b.body)] = true
					}
				}
			}
		}
	}
	if len(count) != len(parts) {
		t.Errorf("%d sessions, %d valid objects", len(parts), len(count))
	}
	for object, where := range count {
		// New shares of the same keys open what the old ones made, and nothing else does.
		if where != 1|8 && where != 2 && where != 4 {
			t.Errorf("%.8s opens in the clusters %b", object, where)
		}
	}
	if proofs != 5+1+1+5 {
		t.Errorf("%d proofs are good", proofs)
	}
	if len(control) <= len(count) { // a reader that does not compare the commitment
		t.Errorf("control: %d objects", len(control))
	}
	// The same identity signed in two requests is still one object.
	e := encryptMessages(c.cert, c.author, []Message{m, m}, fixed32("b twice"), fixed32("seed twice"))
	c.run3(t, e)
	first := bytes.Clone(e.Objects()[0])
	one := *e
	one.items = e.items[:1]
	one.items[0].object = append(make([]byte, batchHeaderSize(0, 1)), first[batchHeaderSize(0, 2):]...)
	c.run3(t, &one)
	h1, b1, err1 := ParseHeader(first)
	h2, b2, err2 := ParseHeader(one.Objects()[0])
	if errors.Join(err1, err2) != nil || h1.Source != h2.Source || h1.Masked != h2.Masked || !bytes.Equal(b1, b2) || bytes.Equal(h1.Proof, h2.Proof) {
		t.Error("the same session made two objects")
	}
}

// bits3 flips every bit of an object. Nodes see identity, index, count and proof only,
// so a flip elsewhere is the reader's to find.
func (c *cluster3) bits3(t *testing.T, object, aad []byte, step int, read func(o *Opened, body []byte) error) {
	t.Helper()
	h, body, err := ParseHeader(object)
	if err != nil {
		t.Fatal(err)
	}
	head := len(object) - len(body)
	y := c.y(h.Source.X0[:])
	if o, ok := openedWith(h, y); !ok || read(&o, body) != nil {
		t.Fatal("the object does not open")
	}
	blind := 0
	for bit := 0; bit < 8*len(object); bit += step {
		bad := bytes.Clone(object)
		bad[bit/8] ^= 1 << (bit % 8)
		g, body, err := ParseHeader(bad)
		if err != nil || CheckObject(c.cert, g) != nil {
			continue
		}
		if bit/8 < head && (g.ID() != h.ID() || g.Index != h.Index || g.Count != h.Count || !bytes.Equal(g.Proof, h.Proof)) {
			good, err := c.cert.verifyProofs([]item3{{g.ID(), g.Index, g.Count, g.Proof}})
			if err != nil || good[0] {
				t.Errorf("bit %d: the proof is still good: %v", bit, err)
			}
			continue
		}
		if o, ok := openedWith(g, y); ok && read(&o, body) == nil {
			t.Errorf("bit %d does not matter", bit)
		}
		if _, _, err := ref3Open(refRules{noX0: true}, nil, y, bad, aad); err == nil {
			blind++
		}
	}
	if h.Kind == KindMessage && blind < 100/step { // control: a reader that does not compare the commitment
		t.Errorf("control: %d bits", blind)
	}
}

func TestGame3EveryBit(t *testing.T) {
	c := fixedCluster3(t, 3, 2, "bits")
	step := 1
	if testing.Short() {
		step = 7
	}
	_, objects := c.make3(t, fixed32("b bits"), fixed32("seed bits"), Message{Plaintext: []byte("m"), AAD: []byte("a")}, Message{}, Message{Plaintext: []byte("n"), AAD: []byte("a")})
	for _, i := range []int{0, 2} {
		c.bits3(t, objects[i], []byte("a"), step, func(o *Opened, body []byte) error {
			_, _, err := o.Message(body, []byte("a"))
			return err
		})
	}
	for _, kind := range []Kind{KindFile, KindPipe} {
		object, _ := c.stream3(t, kind, sequence(40), nil, fixed32("b %v", kind), fixed32("seed %v", kind))
		c.bits3(t, object, nil, step, func(o *Opened, body []byte) error {
			r, err := o.Stream(bytes.NewReader(body), nil)
			if err == nil {
				_, err = io.Copy(io.Discard, r)
			}
			return err
		})
	}
}

// Associated data, kind, keyset, epoch and suite cannot be exchanged, even where the
// keys are the same.
func TestGame3Confusion(t *testing.T) {
	c := fixedCluster3(t, 3, 2, "confusion")
	e, objects := c.make3(t, fixed32("b conf"), fixed32("seed conf"), Message{[]byte("salary"), []byte("row 1")})
	object := objects[0]
	h, body, _ := ParseHeader(object)
	y := c.y(h.Source.X0[:])
	z := c.cert.SigPoly[0][:]
	for _, aad := range []string{"", "row 2", "row 1 ", "row 1\x00"} {
		if _, _, err := ref3Open(refRules{}, z, y, object, []byte(aad)); err == nil {
			t.Errorf("opens with associated data %q", aad)
		}
		o, _ := openedWith(h, y)
		if _, _, err := o.Message(body, []byte(aad)); err == nil {
			t.Errorf("opens with associated data %q", aad)
		}
	}
	if _, _, err := ref3Open(refRules{}, z, y, object, []byte("row 1")); err != nil {
		t.Error("control: the right data")
	}
	for name, change := range map[string]func(*Certificate){
		"keyset": func(cert *Certificate) { cert.Keyset[3] ^= 1 },
		"epoch":  func(cert *Certificate) { cert.Epoch = 2 },
	} {
		o := c.twin3(t, change)
		moved := *h
		moved.Keyset, moved.Epoch = o.cert.Keyset, o.cert.Epoch
		req := o.ask3(OpDecrypt, false, h.Source.X0[:], 0, 1, h.Proof)
		if valueOf(o.servers[1].Handle(o.caller(), req)) != nil {
			t.Errorf("an object of another %s is served", name)
		}
		opened, _ := openedWith(&moved, y)
		if _, _, err := opened.Message(body, []byte("row 1")); (err == nil) != (name == "epoch") {
			t.Errorf("another %s: %v", name, err) // the epoch is the signature's to tell: born is zero
		}
	}
	// Suites: the same secrets and the same keyset make other commitments and identities.
	one := fixedCluster(t, 3, 2)
	cert := *one.cert
	cert.Keyset = c.cert.Keyset
	e1 := encryptMessages(&cert, c.author, []Message{{[]byte("salary"), []byte("row 1")}}, fixed32("b conf"), fixed32("seed conf"))
	p1, p3 := e1.params(KindMessage), e.params(KindMessage)
	rho := Rho(fixed("rho")[:30])
	hb := *fixed32("hb")
	ad1, ad3 := aadHash(&p1, nil), aadHash(&p3, nil)
	if freshCommitment(&rho, 0, &hb, &ad1) == freshCommitment(&rho, 0, &hb, &ad3) {
		t.Error("both suites make the same commitment")
	}
	w := *fixed32("w")
	ctx1, ctx3 := sessionContext(c.cert.Keyset, SuiteTAE1, c.author.Key, &e.open.r), sessionContext(c.cert.Keyset, SuiteTAE3, c.author.Key, &e.open.r)
	if freshIdentity(&ctx1, &w) == freshIdentity(&ctx3, &w) {
		t.Error("both suites make the same identity")
	}
	off := refRules{noParams: true}
	if !bytes.Equal(refCommit(off, rho[:], 0, hb[:], p1.Append(nil), nil), refCommit(off, rho[:], 0, hb[:], p3.Append(nil), nil)) {
		t.Error("control: parameters left out of the commitment")
	}
	mixed := bytes.Clone(object)
	mixed[9] = byte(SuiteTAE1)
	if h, _, err := ParseHeader(mixed); err == nil && CheckObject(c.cert, h) == nil {
		t.Error("an object of suite 1 fits a keyset of suite 3")
	}
	if g, _, err := ParseHeader(object); err != nil || CheckObject(&cert, g) == nil {
		t.Error("an object of suite 3 fits a keyset of suite 1")
	}
	for _, born := range []uint16{1, 0xffff} {
		if (&Header{Params: h.Params, Epoch: 1, Source: h.Source}).verify(&e.rhos[0], born, c.author.Key, &e.open.r, &hb, &ad3) == nil {
			t.Error("born other than zero")
		}
	}
}

// Inner nodes are no leaves, and index and count fix the path.
func TestGame3Tree(t *testing.T) {
	var leaves [][32]byte
	var ids []Identity
	for i := range 21 {
		id := Identity(fixed("leaf %d", i))
		ids = append(ids, id)
		leaves = append(leaves, merkleLeaf(ModeSealed, &id))
	}
	roots := map[[32]byte]int{}
	for n := 1; n <= len(leaves); n++ {
		root, paths := merkleTree(leaves[:n])
		if old := roots[root]; old != 0 {
			t.Errorf("trees of %d and %d leaves have one root", old, n)
		}
		roots[root] = n
		for i := range n {
			var path []byte
			for _, p := range paths[i] {
				path = append(path, p[:]...)
			}
			for j := range n {
				if merklePathLen(j, n)*32 == len(path) && (merkleRoot(leaves[i], j, n, path) == root) != (i == j) {
					t.Errorf("leaf %d of %d as leaf %d", i, n, j)
				}
			}
			for other := 1; other <= len(leaves); other++ { // the root of another number of leaves: the number is signed
				if other != n && i < other && merklePathLen(i, other)*32 == len(path) && merkleRoot(leaves[i], i, other, path) == root {
					a, b := batchMessage(KeysetID{}, SuiteTAE3, 1, n, &root), batchMessage(KeysetID{}, SuiteTAE3, 1, other, &root)
					if bytes.Equal(a, b) {
						t.Errorf("leaf %d of %d passes for one of %d", i, n, other)
					}
				}
			}
			// A last leaf that is doubled, as some trees do it, is another tree.
			twice, _ := merkleTree(append(leaves[:n:n], leaves[n-1]))
			if twice == root {
				t.Error("a doubled leaf makes no difference")
			}
		}
	}
	// An inner node, taken for an identity, leads to the same root under one label only.
	root, paths := merkleTree(leaves[:4])
	inner := merkleNode(&leaves[0], &leaves[1])
	up := paths[0][1]
	asID := Identity(inner)
	leaf := merkleLeaf(ModeSealed, &asID)
	if merkleRoot(leaf, 0, 2, up[:]) == root {
		t.Error("an inner node is a leaf")
	}
	if merkleRoot(inner, 0, 2, up[:]) != root { // the leaf of a tree without the hash on leaves
		t.Error("control: one label for both")
	}
	if merkleLeaf(ModeSealed, &ids[0]) == merkleLeaf(ModeLattice, &ids[0]) {
		t.Error("the mode is not in the leaf")
	}
	// Lengths are fixed by index and count, in objects and requests.
	c := fixedCluster3(t, 3, 2, "tree")
	_, objects := c.make3(t, fixed32("b tree"), fixed32("seed tree"), Message{}, Message{}, Message{})
	for i, object := range objects {
		for _, change := range [][2]uint16{{3, 3}, {0, 0}, {1, 1025}, {65535, 65535}, {uint16(i), 2}, {uint16(i), 4}, {uint16(i+1) % 3, 3}, {uint16(2 - i), 3}} {
			if change == [2]uint16{uint16(i), 3} {
				continue
			}
			b := bytes.Clone(object)
			binary.BigEndian.PutUint16(b[99:], change[0])
			binary.BigEndian.PutUint16(b[101:], change[1])
			if _, _, err := c.decrypt3(t, []int{1, 2}, false, honest, b, nil); err == nil {
				t.Errorf("item %d opens as %d of %d", i, change[0], change[1])
			}
			h, _, _ := ParseHeader(object)
			h.Index, h.Count = change[0], change[1]
			req := c.ask3(OpDecrypt, false, h.Source.X0[:], int(h.Index), int(h.Count), h.Proof)
			if valueOf(c.servers[1].Handle(c.caller(), req)) != nil {
				t.Errorf("item %d is served as %d of %d", i, change[0], change[1])
			}
		}
	}
}

// Answers do not depend on who else answers: those of any t nodes, each asked once,
// combine. Control: nodes that apply the Lagrange factors themselves.
func TestGame3AnyQuorum(t *testing.T) {
	for _, p := range []dprf.Params{{N: 5, T: 3}, {N: 16, T: 3}, {N: 17, T: 4}, {N: 64, T: 5}} {
		c := fixedCluster3(t, p.N, p.T, "quorum")
		if everybody(c.cert).Size() != p.N || everybody(c.cert).Has(p.N+1) {
			t.Fatal("everybody")
		}
		id := fixed32("x")
		in := dprf.NewInputs([][32]byte{*id})
		values := make([]*ristretto255.Element, p.N+1)
		for node := 1; node <= p.N; node++ {
			v := c.epoch(node).TAE3.Share.Evaluate(in)
			values[node] = ref3Point(v[0][:])
			if values[node].Equal(c.value(node, id[:])) != 1 {
				t.Fatal("another value than the specification's")
			}
		}
		try := 0
		check := func(q dprf.Set) {
			var list []*ristretto255.Element
			for _, node := range q.Nodes() {
				list = append(list, values[node])
			}
			y := dprf.NewCombiner(c.cert.Params(), q).Combine(list)
			if y.Equal(c.y(id[:])) != 1 || ref3Combine(p.N, q.Nodes(), list).Equal(y) != 1 {
				t.Errorf("n=%d quorum %v: another value", p.N, q)
			}
			try++
		}
		if p.N == 5 {
			quorums(p.N, p.T, check)
			quorums(p.N, p.T+1, check)
		} else {
			first, last := firstOf(everybody(c.cert), p.T), dprf.Set(0)
			for node := p.N; last.Size() < p.T; node-- {
				last |= dprf.SetOf(node)
			}
			check(first)
			check(last)
			check(dprf.SetOf(1, p.N, p.N/2) | firstOf(everybody(c.cert), p.T-2))
		}
		if try == 0 {
			t.Fatal("no quorum")
		}
		// Control: node 1 was asked as one of q, the others as some of r.
		q, r := []int{1, 2, 3, 4, 5}[:p.T], append([]int{1}, []int{5, 4, 3, 2}[:p.T-1]...)
		if p.T == 5 {
			continue
		}
		sum := ristretto255.NewElement()
		for _, i := range r {
			by := r
			if i == 1 {
				by = q
			}
			sum.Add(sum, ref3Mul(ref3Lagrange(by, i, ref3Q), ref3Mul(c.share(i), ref3Hash(id[:]))))
		}
		if sum.Equal(c.y(id[:])) == 1 {
			t.Error("control: factors applied by nodes")
		}
	}
}
