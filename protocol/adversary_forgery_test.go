package protocol

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"slices"
	"testing"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/secret"
)

// accepted reports whether any quorum of the cluster opens the object.
func (c *testCluster) accepted(object, aad []byte) bool {
	ok := false
	quorums(c.cert.N, c.cert.T, func(q dprf.Set) {
		_, err := c.decrypt(object, aad, q)
		ok = ok || err == nil
	})
	return ok
}

// twin is a cluster with the same DPRF keys whose certificate differs in one thing:
// the worst case of a confusion, since real epochs have independent keys.
func (c *testCluster) twin(t testing.TB, change func(cert *Certificate)) *testCluster {
	t.Helper()
	cert := *c.cert
	change(&cert)
	o := &testCluster{cert: &cert, keys: c.keys, author: c.author, private: c.private, servers: make([]*Server, cert.N+1)}
	for node := 1; node <= cert.N; node++ {
		o.servers[node] = o.server(t, node, allowAll)
	}
	return o
}

// part is one object cut into what a forger can recombine.
type part struct {
	c      *testCluster
	x      []byte
	tags   []byte
	masked []byte
	body   []byte
}

// q sessions give q objects, counted by identity, masked value and body, however
// their parts are put together: sessions, batch positions, epochs, keysets and
// clients.
func TestGameOneObjectPerSession(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	other := newTestCluster(t, 3, 2)
	other.author = c.author
	epoch2 := c.twin(t, func(cert *Certificate) { cert.Epoch = 2 })
	var parts []part
	cut := func(cl *testCluster, object []byte) {
		h, body, err := ParseHeader(object)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part{cl, h.Source.X0[:], h.Proof, h.Masked[:], body})
	}
	m := Message{Plaintext: []byte("message")}
	batch := c.encrypt(t, c.all(), false, m, m)
	cut(c, batch[0])
	cut(c, batch[1])
	cut(c, c.encrypt(t, c.all(), false, m)[0])
	second := *c
	second.author = &Author{Key: ClientKey(random(32))}
	cut(c, second.encrypt(t, c.all(), false, m)[0])
	cut(other, other.encrypt(t, other.all(), false, m)[0])
	cut(epoch2, epoch2.encrypt(t, epoch2.all(), false, m)[0])
	count := map[string]bool{}
	control := 0
	for _, cl := range []*testCluster{c, other, epoch2} {
		for _, x := range parts {
			for _, e := range parts {
				for _, b := range parts {
					for _, tags := range parts {
						h := Header{Params: Params{Suite: SuiteTAE1, Mode: ModeSealed, Layers: 20, Keyset: cl.cert.Keyset}, Epoch: cl.cert.Epoch,
							Source: Source{X0: Identity(x.x)}, Proof: tags.tags, Masked: [32]byte(e.masked)}
						object := append(h.Append(nil), b.body...)
						if _, err := cl.decrypt(object, nil, cl.all()); err == nil {
							count[fmt.Sprintf("%x %x %x", x.x, e.masked, b.body)] = true
						}
						if _, _, err := refOpenWith(refRules{noTags: true}, cl.rawKeys(), object, nil); err == nil {
							control++
						}
					}
				}
			}
		}
	}
	if len(count) != len(parts) {
		t.Errorf("%d sessions, %d valid objects", len(parts), len(count))
	}
	// Tags of single keys exchanged between sessions, and in all orders.
	a, b := parts[0], parts[1]
	for mix := 1; mix < 7; mix++ {
		tags := bytes.Clone(a.tags)
		for k := range 3 {
			if mix>>k&1 == 1 {
				copy(tags[16*k:], b.tags[16*k:][:16])
			}
		}
		h := Header{Params: Params{Suite: SuiteTAE1, Mode: ModeSealed, Layers: 20, Keyset: c.cert.Keyset}, Epoch: 1, Source: Source{X0: Identity(a.x)},
			Proof: tags, Masked: [32]byte(a.masked)}
		if _, err := c.decrypt(append(h.Append(nil), a.body...), nil, c.all()); err == nil {
			t.Errorf("tags of two sessions mixed: %b", mix)
		}
	}
	// Control: nodes that check no tags serve more combinations than there were
	// sessions. For the body see TestGameOneSessionTwoMessages.
	if control <= len(parts) {
		t.Errorf("control: %d combinations without tags", control)
	}
}

// A malicious client cannot make two objects in one session: the masked value and
// the body are fixed by the identity.
func TestGameOneSessionTwoMessages(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	j := c.author.Key[:]
	try := func(rules refRules) (accepted bool) {
		v := c.sealWith(rules, random(30), random(32), j, 1, []byte("pay 1"), nil)
		_, body, _ := ParseHeader(v.object)
		second := refXOR(body, append(make([]byte, 64+4), 1))
		mask := refF(c.rawKeys(), v.x)
		for _, object := range [][]byte{
			c.assemble(v.x, refXOR(append(bytes.Clone(v.rho), 0, 1), mask), second),
			c.assemble(v.x, refXOR(append(random(30), 0, 1), mask), body),
		} {
			if _, _, err := refOpenWith(rules, c.rawKeys(), object, nil); err == nil {
				accepted = true
			}
			if rules == (refRules{}) && c.accepted(object, nil) {
				t.Error("a second object of one session")
			}
		}
		return accepted
	}
	if try(refRules{}) {
		t.Error("a second object of one session")
	}
	if !try(refRules{noBody: true}) {
		t.Error("control: without the body in the commitment there is still one object")
	}
}

// Nobody encrypts in another client's name.
func TestGameOtherAuthor(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	innocent, mallory := random(32), c.author.Key
	v := c.sealWith(refRules{}, random(30), random(32), innocent, 1, []byte("I resign"), nil)
	run := func(off nodeRules, w []byte) (tags, mask []byte) {
		mask = make([]byte, 32)
		tags = make([]byte, 48)
		for node := 1; node <= 3; node++ {
			weak := weakNode{c: c, node: node, off: off, allow: func(Op) bool { return true }}
			answer := weak.handle(mallory, c.encryptRequest(c.all(), v.commitments, v.s[node-1], w))
			for i, k := range c.cert.Layout().HeldBy(node) {
				copy(tags[16*k:], answer[64+16*i:][:16])
				if node == c.cert.Layout().Set(k).Nodes()[0] {
					mask = refXOR(mask, answer[32*i:][:32])
				}
			}
		}
		return tags, mask
	}
	forge := func(off nodeRules, w, x, body []byte) []byte {
		tags, mask := run(off, w)
		h := Header{Params: Params{Suite: SuiteTAE1, Mode: ModeSealed, Layers: 20, Keyset: c.cert.Keyset}, Epoch: 1,
			Source: Source{X0: Identity(x)}, Proof: tags, Masked: [32]byte(refXOR(append(bytes.Clone(v.rho), 0, 1), mask))}
		return append(h.Append(nil), body...)
	}
	_, body, _ := ParseHeader(v.object)
	if c.accepted(forge(nodeRules{}, v.w, v.x, body), nil) {
		t.Error("an object in another client's name")
	}
	// Control: an identity without j.
	weak := c.sealWith(refRules{noJ: true}, v.rho, random(32), innocent, 1, []byte("I resign"), nil)
	v.s, v.commitments = weak.s, weak.commitments
	_, body, _ = ParseHeader(weak.object)
	object := forge(nodeRules{refRules: refRules{noJ: true}}, weak.w, weak.x, body)
	if m, j, err := refOpenWith(refRules{noJ: true}, c.rawKeys(), object, nil); err != nil || string(m) != "I resign" || !bytes.Equal(j, innocent) {
		t.Errorf("control: %v", err)
	}
}

// The epoch in which an object was born is bound: the same commitment asked for in a
// second epoch does not make an object there.
func TestGameBorn(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	epoch2 := c.twin(t, func(cert *Certificate) { cert.Epoch = 2 })
	v := epoch2.sealWith(refRules{}, random(30), random(32), c.author.Key[:], 1, []byte("old"), nil)
	if epoch2.accepted(v.object, nil) {
		t.Error("an object born in another epoch")
	}
	if _, _, err := refOpenWith(refRules{noBorn: true}, c.rawKeys(), v.object, nil); err != nil {
		t.Error("control: the object is refused for another reason")
	}
	// A moved header is no way around: its identity was in no session.
	h, body, _ := ParseHeader(v.object)
	h.Source.Moved, h.Source.EpochSrc, h.Source.IDSrc = true, 1, h.Source.X0
	if epoch2.accepted(append(h.Append(nil), body...), nil) {
		t.Error("an object that nobody moved")
	}
}

// Associated data, parameters, keyset, epoch and suite cannot be exchanged, even
// where the keys are the same.
func TestGameConfusion(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	aad := []byte("row 1")
	object := c.encrypt(t, c.all(), false, Message{[]byte("salary"), aad})[0]
	v := c.sealWith(refRules{noAAD: true}, random(30), random(32), c.author.Key[:], 1, []byte("salary"), aad)
	for _, other := range [][]byte{nil, []byte("row 2"), []byte("row 1 "), []byte("row "), append([]byte("row 1"), 0)} {
		if c.accepted(object, other) {
			t.Errorf("opens with associated data %q", other)
		}
		if _, _, err := refOpenWith(refRules{noAAD: true}, c.rawKeys(), v.object, other); err != nil {
			t.Error("control: a commitment without the associated data still tells")
		}
	}
	twins := map[string]func(*Certificate){
		"keyset":  func(cert *Certificate) { cert.Keyset[3] ^= 1 },
		"epoch":   func(cert *Certificate) { cert.Epoch = 2 },
		"layers":  func(cert *Certificate) { cert.Layers = 19 },
		"nothing": func(*Certificate) {},
	}
	for name, change := range twins {
		o := c.twin(t, change)
		moved := bytes.Clone(object)
		h, body, _ := ParseHeader(moved)
		h.Keyset, h.Epoch, h.Layers = o.cert.Keyset, o.cert.Epoch, o.cert.Layers
		if o.accepted(append(h.Append(nil), body...), aad) != (name == "nothing") {
			t.Errorf("an object of another %s", name)
		}
		if name != "nothing" && o.accepted(object, aad) {
			t.Errorf("an object of another %s, as it is", name)
		}
	}
	// Control: parameters left out of the commitment and the keyset out of the context.
	off := refRules{noParams: true, noKeyset: true}
	v = c.sealWith(off, random(30), random(32), c.author.Key[:], 1, []byte("salary"), aad)
	h, body, _ := ParseHeader(v.object)
	h.Keyset[3] ^= 1
	h.Layers = 19
	if _, _, err := refOpenWith(off, c.rawKeys(), append(h.Append(nil), body...), aad); err != nil {
		t.Error("control: another keyset is still told")
	}
	// The requests say keyset, epoch, attempt, generation and suite, and a node answers
	// for exactly these: TestEveryCodeIsGiven.
}

// Tags of one mode are no proof in another, and a mask is no tag: the first block
// that goes into the PRF differs.
func TestGameModeInTag(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	share := c.servers[1].keysets[c.cert.Keyset].Active.Share
	id := [32]byte(random(32))
	var sc dprf.Scratch
	for made := uint8(1); made <= 4; made++ {
		tags := make([]byte, 48)
		for _, k := range c.cert.Layout().HeldBy(1) {
			share.Tag(&sc, (*[16]byte)(tags[16*k:]), made, &id, k)
		}
		for asked := uint8(1); asked <= 4; asked++ {
			if share.VerifyTags(&sc, asked, &id, tags) != (made == asked) {
				t.Errorf("tags of mode %d and mode %d", made, asked)
			}
		}
		var mask [32]byte
		k := c.cert.Layout().HeldBy(1)[0]
		share.AddMask(&sc, &mask, &id, k)
		if bytes.Equal(mask[:16], mask[16:]) || bytes.Equal(mask[:16], tags[16*k:][:16]) {
			t.Error("two purposes give the same value")
		}
	}
	// Control: a constant first block.
	constant := func(_ int) []byte { return refM(refDerive(c.keys[0].Expose(), "tae/v1/dprf/tag"), 0, 0, 0, id[:]) }
	if !bytes.Equal(constant(1), constant(2)) {
		t.Error("control")
	}
}

// layoutSets are the sets of nodes that hold keys.
func layoutSets(l *dprf.Layout) (sets []dprf.Set) {
	for k := range l.Keys() {
		sets = append(sets, l.Set(k))
	}
	return sets
}

// forgeable looks for a quorum that serves an identity for which only the nodes of
// known gave their tags, and for which their masks are not all known: a tag set that
// is no threshold proof. The honest nodes of the quorum check what verify lists.
func forgeable(l *dprf.Layout, sets []dprf.Set, known dprf.Set, detail bool, verify func(q dprf.Set, node int) []int) bool {
	lacks := func(k int) bool { return sets[k]&known == 0 }
	leak := false
	for q := dprf.Set(1); q < 1<<l.N; q++ {
		if q.Size() < l.T {
			continue
		}
		owner, _ := l.Assign(q)
		for _, node := range (q &^ known).Nodes() {
			passes := !slices.ContainsFunc(verify(q, node), lacks)
			for k := range sets {
				answered := sets[k].Has(node) && (detail || k < len(owner) && int(owner[k]) == node)
				leak = leak || passes && answered && lacks(k)
			}
		}
	}
	return leak
}

// For every cluster of up to 6 nodes, every set of nodes that took part in a session
// or is corrupt, and every quorum: with t nodes all tags are known, with fewer no
// quorum gives a mask that was not known.
func TestGameThresholdProof(t *testing.T) {
	largest := 6
	if testing.Short() {
		largest = 5
	}
	controls := map[string]int{}
	for n := 2; n <= largest; n++ {
		for th := 2; th <= n; th++ {
			l, err := dprf.NewLayout(dprf.Params{N: n, T: th})
			if err != nil {
				t.Fatal(err)
			}
			sets := layoutSets(l)
			held := func(_ dprf.Set, node int) []int { return l.HeldBy(node) }
			assigned := func(q dprf.Set, node int) []int {
				a, _ := l.Assign(q)
				return a.Keys(node)
			}
			for known := dprf.Set(0); known < 1<<n; known++ {
				whole := !slices.ContainsFunc(sets, func(d dprf.Set) bool { return d&known == 0 })
				if whole != (known.Size() >= th) {
					t.Fatalf("n=%d t=%d: nodes %v hold all keys: %v", n, th, known, whole)
				}
				if known.Size() >= th {
					continue
				}
				if forgeable(l, sets, known, false, held) || forgeable(l, sets, known, true, held) {
					t.Errorf("n=%d t=%d: the tags of %v are a proof", n, th, known)
				}
				if forgeable(l, sets, known, true, assigned) {
					controls["only assigned tags verified"]++
				}
				if forgeable(l, sets, known, false, func(dprf.Set, int) []int { return nil }) {
					controls["no tag verified"]++
				}
			}
			if th > 2 {
				wide, err := dprf.NewLayout(dprf.Params{N: n, T: th - 1})
				if err != nil {
					t.Fatal(err)
				}
				quorums(n, th-1, func(known dprf.Set) {
					if !slices.ContainsFunc(layoutSets(wide), func(d dprf.Set) bool { return d&known == 0 }) {
						controls["sets of one node more"]++
					}
				})
			}
		}
	}
	for _, name := range []string{"only assigned tags verified", "no tag verified", "sets of one node more"} {
		if controls[name] == 0 {
			t.Errorf("control, %s: no attack", name)
		}
	}
}

// The same with real nodes: t-1 corrupt nodes look for a mask of an identity that no
// session made. A node that verifies only assigned tags gives it, in detail.
func TestGameInventedIdentity(t *testing.T) {
	for _, p := range sizes {
		c := newTestCluster(t, p.N, p.T)
		layout := c.cert.Layout()
		won := false
		quorums(p.N, p.T-1, func(corrupt dprf.Set) {
			id := random(32)
			tags := make([]byte, 16*len(c.keys))
			for _, node := range corrupt.Nodes() {
				for _, k := range layout.HeldBy(node) {
					copy(tags[16*k:], refTag(c.keys[k].Expose(), 1, id))
				}
			}
			for size := p.T; size <= p.N; size++ {
				quorums(p.N, size, func(q dprf.Set) {
					for _, node := range (q &^ corrupt).Nodes() {
						for _, detail := range []bool{false, true} {
							req := c.decryptRequest(q, detail, id, tags)
							answer := c.servers[node].Handle(c.caller(), req)
							if answer[2] != byte(CodeBadProof) || !bytes.Equal(answer[3:], make([]byte, len(answer)-3)) {
								t.Errorf("n=%d t=%d: node %d serves an invented identity", p.N, p.T, node)
							}
						}
						weak := weakNode{c: c, node: node, off: nodeRules{assignedOnly: true}, allow: func(Op) bool { return true }}
						masks := c.known(corrupt, id)
						if answer := weak.handle(c.author.Key, c.decryptRequest(q, true, id, tags)); answer[0] == 0 {
							c.addDetail(masks, node, answer[1:])
						}
						if _, all := c.total(masks); all {
							won = true
						}
					}
				})
			}
		})
		if !won && p.N > p.T {
			t.Errorf("control, n=%d t=%d: a node that verifies only assigned tags gives nothing away", p.N, p.T)
		}
	}
}

// Keys of one epoch say nothing about another: a client that holds all keys of a
// stolen epoch opens nothing of the next. The control uses the same keys.
func TestGameStolenEpoch(t *testing.T) {
	stolen, c := newTestCluster(t, 3, 2), newTestCluster(t, 3, 2)
	v := c.sealWith(refRules{}, random(30), random(32), c.author.Key[:], 1, []byte("secret"), nil)
	if _, _, err := refOpenWith(refRules{noTags: true}, stolen.rawKeys(), v.object, nil); err == nil {
		t.Error("keys of another epoch open the object")
	}
	same := c.twin(t, func(cert *Certificate) { cert.Attempt = 2 })
	if _, _, err := refOpen(same.rawKeys(), v.object, nil); err != nil {
		t.Error("control")
	}
}

// A certificate counts only with all members' signatures, under the keys that the
// reader's own configuration names.
func TestGameCertificate(t *testing.T) {
	c := fixedCluster(t, 3, 2).cert
	members := slices.Clone(c.Members)
	if err := c.Verify(members); err != nil {
		t.Fatal(err)
	}
	encoded := c.Append(nil)
	for i := range encoded {
		b := bytes.Clone(encoded)
		b[i] ^= 1
		if p, err := ParseCertificate(b); err == nil && p.Verify(members) == nil {
			t.Errorf("byte %d altered", i)
		}
	}
	forged := fixedCluster(t, 3, 2).cert
	var own []ed25519.PrivateKey
	for i := range forged.Members {
		own = append(own, ed25519.NewKeyFromSeed(fixed("mallory %d", i)))
		forged.Members[i] = [32]byte(own[i].Public().(ed25519.PublicKey))
	}
	for i := range own {
		forged.Signatures[i] = forged.Sign(own[i])
	}
	if forged.Verify(members) == nil {
		t.Error("a certificate of other members")
	}
	// Control: a reader that takes the members from the certificate.
	if forged.Verify(forged.Members) != nil {
		t.Error("control")
	}
	// Nor do the members' signatures make a certificate that names somebody else.
	other := fixedCluster(t, 3, 2).cert
	other.Members[1] = forged.Members[1]
	for i := range other.Signatures {
		other.Signatures[i] = other.Sign(ed25519.NewKeyFromSeed(fixed("node %d", i+1)))
	}
	if other.Verify(members) == nil {
		t.Error("a certificate that names another member")
	}
	missing := fixedCluster(t, 3, 2).cert
	missing.Signatures[2] = missing.Signatures[1]
	if missing.Verify(members) == nil {
		t.Error("two of three signatures are enough")
	}
}

// A node with keys of another attempt serves nothing for this one.
func TestGameOtherAttempt(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	object := c.encrypt(t, c.all(), false, Message{Plaintext: []byte("m")})[0]
	again := c.twin(t, func(cert *Certificate) { cert.Attempt = 2 })
	again.keys = nil
	for range c.keys {
		again.keys = append(again.keys, secret.New(random(32)))
	}
	c.servers[2] = again.server(t, 2, allowAll)
	if _, err := c.decrypt(object, nil, dprf.SetOf(1, 2)); err == nil {
		t.Error("a node with other keys took part")
	}
	if _, err := c.decrypt(object, nil, dprf.SetOf(1, 3)); err != nil {
		t.Error(err)
	}
}
