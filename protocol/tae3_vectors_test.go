package protocol

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gtank/ristretto255"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/sig"
	"github.com/seed-a893640b/tae/sig/bls"
)

func vectorPath3(name string) string { return filepath.Join("..", "testdata", "tae3", name+".json") }

// loadVectors3 reads a file of TAE3 and fails when it holds nothing.
func loadVectors3(t testing.TB, name string) []vector {
	t.Helper()
	b, err := os.ReadFile(vectorPath3(name))
	if err != nil {
		t.Fatal(err)
	}
	var f vectorFile
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	if f.Format != objectVersion || f.Suite != "TAE3" || len(f.Vectors) == 0 {
		t.Fatalf("%s: format %d, suite %q, %d vectors", name, f.Format, f.Suite, len(f.Vectors))
	}
	return f.Vectors
}

// checkVectors3 compares the vectors that the code makes now with the file.
func checkVectors3(t *testing.T, name string, made []vector) []vector {
	t.Helper()
	b, err := json.MarshalIndent(vectorFile{objectVersion, "TAE3", made}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	if *update {
		if err := os.WriteFile(vectorPath3(name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(vectorPath3(name))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, b) {
		t.Errorf("the code makes other %s vectors than are stored: the format changed", name)
	}
	return loadVectors3(t, name)
}

func (v vector) ints(t testing.TB, name string) (out []int) {
	t.Helper()
	list, ok := v[name].([]any)
	if !ok {
		t.Fatalf("field %s of a vector: %v", name, v[name])
	}
	for _, x := range list {
		out = append(out, int(x.(float64)))
	}
	return out
}

func TestVectors3DDH(t *testing.T) {
	var made []vector
	for _, p := range []dprf.Params{{N: 2, T: 2}, {N: 3, T: 2}, {N: 5, T: 3}, {N: 16, T: 4}, {N: 17, T: 4}, {N: 64, T: 3}} {
		c := fixedCluster3(t, p.N, p.T, "vectors")
		x := *fixed32("identity")
		in := dprf.NewInputs([][32]byte{x})
		v := vector{"n": p.N, "t": p.T, "delta": p.Delta().String(), "key": hx(ref3LE(c.f[0])), "identity": hx(x[:])}
		quorum := []int{1, p.N, 2, p.N/2 + 1, p.N - 1}[:p.T]
		slices.Sort(quorum)
		quorum = slices.Compact(quorum)
		for i := 2; len(quorum) < p.T; i++ {
			if !slices.Contains(quorum, i) {
				quorum = append(quorum, i)
				slices.Sort(quorum)
			}
		}
		var shares, proven, values, coefficients []string
		var list []*ristretto255.Element
		for _, node := range quorum {
			s := c.epoch(node).TAE3.Share
			value, public := s.Evaluate(in)[0], s.PublicShare()
			shares, proven, values = append(shares, hx(ref3LE(c.share(node)))), append(proven, hx(public[:])), append(values, hx(value[:]))
			list = append(list, ref3Point(value[:]))
		}
		q := dprf.SetOf(quorum...)
		for _, k := range p.Coefficients(q) {
			coefficients = append(coefficients, k.String())
		}
		y := dprf.NewCombiner(p, q).Combine(list)
		v["quorum"], v["shares"], v["proven_shares"], v["values"], v["coefficients"] = quorum, shares, proven, values, coefficients
		v["point"], v["y"] = hx(ref3Hash(x[:]).Encode(nil)), hx(y.Encode(nil))
		made = append(made, v)
	}
	for i, v := range checkVectors3(t, "ddh", made) {
		n, q, x, shares := v.int("n"), v.ints(t, "quorum"), v.bytes(t, "identity"), v.list(t, "shares")
		delta := ref3Delta(n)
		if delta.String() != v["delta"] {
			t.Errorf("vector %d: Delta", i)
		}
		sum, values := ristretto255.NewElement(), v.list(t, "values")
		for k := range q {
			own := ref3Own(ref3Int(shares[k]), n)
			value := ref3Mul(own, ref3Hash(x))
			if !bytes.Equal(value.Encode(nil), values[k]) || !bytes.Equal(ref3Base(own).Encode(nil), v.list(t, "proven_shares")[k]) {
				t.Errorf("vector %d: node %d", i, q[k])
			}
			coefficient, _ := new(big.Int).SetString(v["coefficients"].([]any)[k].(string), 10)
			want := ref3Lagrange(q, q[k], ref3Q)
			want.Mul(want, delta)
			if new(big.Int).Mod(want.Sub(want, coefficient), ref3Q).Sign() != 0 || n <= 16 && coefficient.BitLen() > 61 {
				t.Errorf("vector %d: coefficient of node %d", i, q[k])
			}
			sum.Add(sum, ref3Mul(coefficient, value))
		}
		y := ref3Mul(ref3Int(v.bytes(t, "key")), ref3Hash(x)).Encode(nil)
		if !bytes.Equal(sum.Encode(nil), y) || hx(y) != v["y"] || hx(ref3Hash(x).Encode(nil)) != v["point"] {
			t.Errorf("vector %d: Y", i)
		}
	}
}

// Proofs are made here by the second implementation and verified by the real one; package
// dprf makes them again.
func TestVectors3Proof(t *testing.T) {
	c := fixedCluster3(t, 3, 2, "vectors")
	var made []vector
	for i, count := range []int{1, 2, 5, 300} {
		var ids [][]byte
		for k := range count {
			ids = append(ids, fixed("id %d", k))
		}
		s := c.statement3(1+i%2, ids...)
		if i == 2 {
			s.positions = []int{0, 3, 4, 9, 1023}
		}
		system := fixed("system %d", i)
		seed, a, b := s.composites(ref3Rules{})
		proof := s.prove(ref3Rules{}, c.own(1), system)
		if !s.accepted(proof) {
			t.Fatalf("%d items: refused", count)
		}
		made = append(made, vector{"n": 3, "t": 2, "operation": s.op, "keyset": hx(s.keyset), "suite": 3, "epoch": 1, "generation": 1, "node": 1,
			"share": hx(ref3LE(c.share(1))), "proven_share": hx(s.public), "count": count, "positions": s.positions, "ids_are": "SHA-256(\"tae test vector id \" || number), when not listed",
			"ids": hxs(ids[:min(count, 5)]), "values": hxs(s.values[:min(count, 5)]), "system": hx(system), "seed": hx(seed), "a": hx(a.Encode(nil)), "c": hx(b.Encode(nil)),
			"proof": hx(proof)})
	}
	for i, v := range checkVectors3(t, "proof", made) {
		ids := v.list(t, "ids")
		for k := len(ids); k < v.int("count"); k++ {
			ids = append(ids, fixed("id %d", k))
		}
		own := ref3Own(ref3Int(v.bytes(t, "share")), v.int("n"))
		s := &ref3Statement{op: v.int("operation"), keyset: v.bytes(t, "keyset"), suite: 3, epoch: v.int("epoch"), generation: v.int("generation"),
			node: v.int("node"), public: v.bytes(t, "proven_share"), positions: v.ints(t, "positions"), ids: ids}
		for _, id := range ids {
			s.values = append(s.values, ref3Mul(own, ref3Hash(id)).Encode(nil))
		}
		if !s.verify(ref3Rules{}, v.bytes(t, "proof")) || !bytes.Equal(s.seed(), v.bytes(t, "seed")) || !s.accepted(v.bytes(t, "proof")) {
			t.Errorf("vector %d", i)
		}
	}
}

func TestVectors3Merkle(t *testing.T) {
	var made []vector
	for _, n := range []int{1, 2, 3, 5, 8, 13} {
		var ids [][]byte
		var leaves [][32]byte
		for i := range n {
			id := Identity(fixed("id %d", i))
			ids, leaves = append(ids, id[:]), append(leaves, merkleLeaf(ModeSealed, &id))
		}
		root, paths := merkleTree(leaves)
		var leafs, all []string
		for i := range paths {
			var path []byte
			for _, p := range paths[i] {
				path = append(path, p[:]...)
			}
			leafs, all = append(leafs, hx(leaves[i][:])), append(all, hx(path))
		}
		keyset := KeysetID(fixed("keyset"))
		made = append(made, vector{"mode": 1, "ids": hxs(ids), "leaves": leafs, "root": hx(root[:]), "paths": all, "keyset": hx(keyset[:]), "epoch": 7,
			"signed": hx(batchMessage(keyset, SuiteTAE3, 7, n, &root))})
	}
	for i, v := range checkVectors3(t, "merkle", made) {
		ids, paths := v.list(t, "ids"), v.list(t, "paths")
		var leaves [][]byte
		for _, id := range ids {
			leaves = append(leaves, ref3Leaf(id))
		}
		for k := range ids {
			root, path := ref3Tree(leaves, k)
			up, ok := ref3Root(leaves[k], k, len(ids), paths[k])
			if hx(root) != v["root"] || !ok || !bytes.Equal(up, root) || !bytes.Equal(bytes.Join(path, nil), paths[k]) {
				t.Errorf("vector %d: leaf %d", i, k)
			}
		}
		if hx(ref3Signed(v.bytes(t, "keyset"), v.int("epoch"), len(ids), v.bytes(t, "root"))) != v["signed"] {
			t.Errorf("vector %d: message", i)
		}
	}
}

func TestVectors3BLS(t *testing.T) {
	var made []vector
	for _, p := range []dprf.Params{{N: 2, T: 2}, {N: 3, T: 2}, {N: 7, T: 4}} {
		c := fixedCluster3(t, p.N, p.T, "vectors")
		m := fixed("message")
		quorum := []int{1, 2, 5, 7}[:p.T]
		if p.N == 3 {
			quorum = []int{1, 3}
		}
		var shares, publics, partials []string
		var list []*bls.Signature
		for _, node := range quorum {
			s, err := c.epoch(node).TAE3.SigKey.Sign(m)
			if err != nil {
				t.Fatal(err)
			}
			b, public := s.Bytes(), c.epoch(node).TAE3.SigKey.Public()
			shares, publics, partials = append(shares, hx(c.sigShare(node).FillBytes(make([]byte, 32)))), append(publics, hx(public[:])), append(partials, hx(b[:]))
			list = append(list, s)
		}
		s, err := bls.Combine(quorum, list)
		if err != nil {
			t.Fatal(err)
		}
		b := s.Bytes()
		made = append(made, vector{"n": p.N, "t": p.T, "message": hx(m), "quorum": quorum, "shares": shares, "public_shares": publics, "partials": partials,
			"public": hx(c.cert.SigPoly[0][:]), "signature": hx(b[:])})
	}
	for i, v := range checkVectors3(t, "bls", made) {
		m, q, partials := v.bytes(t, "message"), v.ints(t, "quorum"), v.list(t, "partials")
		for k, share := range v.list(t, "shares") {
			if !bytes.Equal(ref3Sign(new(big.Int).SetBytes(share), m), partials[k]) || !ref3VerifySignature(v.list(t, "public_shares")[k], m, partials[k]) {
				t.Errorf("vector %d: node %d", i, q[k])
			}
		}
		if hx(ref3CombineSignatures(q, partials)) != v["signature"] || !ref3VerifySignature(v.bytes(t, "public"), m, v.bytes(t, "signature")) {
			t.Errorf("vector %d: signature", i)
		}
	}
}

// objectVector3 describes an object with everything on the way to its plaintext.
func (c *cluster3) objectVector3(t testing.TB, e *Encryption, item int, b, seed *[32]byte, object, m, aad []byte) vector {
	t.Helper()
	h, body, err := ParseHeader(object)
	if err != nil {
		t.Fatal(err)
	}
	x, rho := e.items[item].x, e.rhos[item][:]
	v := vector{"n": c.cert.N, "t": c.cert.T, "key": hx(ref3LE(c.f[0])), "certificate": hx(c.cert.Append(nil)), "client": hx(c.author.Key[:]), "b": hx(b[:]),
		"seed": hx(seed[:]), "r": hx(e.open.r[:]), "m_element": hx(e.points[item].Encode(nil)), "rho": hx(rho), "born": 0, "aad": hx(aad), "w": hx(e.items[item].w[:]), "x": hx(x[:]),
		"index": int(h.Index), "count": int(h.Count), "signature": hx(h.Proof[:48]), "path": hx(h.Proof[48:]), "y": hx(c.y(x[:]).Encode(nil)), "masked": hx(h.Masked[:]),
		"plaintext_length": len(m), "plaintext": hx(m), "header": hx(object[:len(object)-len(body)]), "body": hx(body), "object": hx(object)}
	hb := refH("tae/v1/body", body)
	if h.Kind != KindMessage {
		commitment := refH("tae/v1/commit", rho)
		v["key_commitment"] = hx(commitment[:])
		if h.Kind == KindPipe {
			hb = refH("tae/v1/pipe", commitment[:])
			v["client_seed"] = hx(c.testCluster.private.Seed())
		}
	}
	v["body_hash"] = hx(hb[:])
	return v
}

func (c *cluster3) checkObjects3(t *testing.T, name string, made []vector, item func(i int) int) {
	t.Helper()
	for i, v := range checkVectors3(t, name, made) {
		stream := refCTR(v.bytes(t, "seed"), 64*(item(i)+1))
		m := ristretto255.NewElement().FromUniformBytes(stream[64*item(i):])
		rho := ref3Rho(m)
		_, _, r := refOpenings(v.bytes(t, "b"), v.int("n"))
		header := v.bytes(t, "header")
		w := refW(rho, 0, v.bytes(t, "body_hash"), refAD(header[:30], v.bytes(t, "aad")))
		x := refX((&refSession{header[14:30], 3, v.bytes(t, "client"), r}).context(), w)
		y := ref3Mul(ref3Int(v.bytes(t, "key")), ref3Hash(x))
		for field, want := range map[string][]byte{"m_element": m.Encode(nil), "rho": rho, "r": r, "w": w, "x": x, "y": y.Encode(nil),
			"masked": ref3Sum(m, y).Encode(nil)} {
			if v[field] != hx(want) {
				t.Errorf("%s %d: %s", name, i, field)
			}
		}
		if object := made[i]["object"].(string); strings.HasPrefix(object, "sha256:") {
			continue
		}
		cert, err := ParseCertificate(v.bytes(t, "certificate"))
		if err != nil || cert.Verify(cert.Members) != nil {
			t.Fatal(err)
		}
		plain, j, err := ref3Open(refRules{}, cert.SigPoly[0][:], y, v.bytes(t, "object"), v.bytes(t, "aad"))
		if err != nil || hx(plain) != v["plaintext"] || hx(j) != v["client"] {
			t.Errorf("%s %d: %v", name, i, err)
		}
		if len(header) != batchHeaderSize(uint16(v.int("index")), uint16(v.int("count"))) {
			t.Errorf("%s %d: header of %d bytes", name, i, len(header))
		}
	}
}

func TestVectors3Message(t *testing.T) {
	var made []vector
	var items []int
	add := func(c *cluster3, name string, pick []int, messages ...Message) {
		b, seed := fixed32("b %s", name), fixed32("seed %s", name)
		e, objects := c.make3(t, b, seed, messages...)
		for _, k := range pick {
			items = append(items, k)
			made = append(made, c.objectVector3(t, e, k, b, seed, objects[k], messages[k].Plaintext, messages[k].AAD))
		}
	}
	for i, size := range []int{0, 1, 64, 65, 300, MaxMessage} {
		add(fixedCluster3(t, 3+i%2, 2+i%2, "vectors"), string(rune('a'+i)), []int{0}, Message{sequence(size), fixed("aad")[:i]})
	}
	var batch []Message
	for i := range 5 {
		batch = append(batch, Message{sequence(10 + i), nil})
	}
	add(fixedCluster3(t, 17, 9, "vectors"), "batch", []int{0, 3, 4}, batch...)
	fixedCluster3(t, 3, 2, "vectors").checkObjects3(t, "message", made, func(i int) int { return items[i] })
}

func TestVectors3File(t *testing.T) { testStreamVectors3(t, KindFile) }

func TestVectors3Pipe(t *testing.T) { testStreamVectors3(t, KindPipe) }

func testStreamVectors3(t *testing.T, kind Kind) {
	var made []vector
	c := fixedCluster3(t, 3, 2, "vectors")
	for i, size := range []int{0, 1000, ChunkSize - 65, ChunkSize - 64, 2*ChunkSize + 5} {
		b, seed, m, aad := fixed32("b %v %d", kind, i), fixed32("seed %v %d", kind, i), sequence(size), fixed("aad")[:i]
		object, s := c.stream3(t, kind, m, aad, b, seed)
		made = append(made, c.objectVector3(t, s.Encryption, 0, b, seed, object, m, aad))
		if got, _, err := ref3Open(refRules{}, c.cert.SigPoly[0][:], c.y(s.items[0].x[:]), object, aad); err != nil || !bytes.Equal(got, m) {
			t.Errorf("%v of %d bytes: %v", kind, size, err)
		}
	}
	c.checkObjects3(t, kind.String(), made, func(int) int { return 0 })
}

// withProof makes an answer with proofs the same in every run: the proof has given
// randomness, and the node signs it.
func (c *cluster3) withProof(a *answer3) {
	s := &ref3Statement{op: int(a.op), keyset: c.cert.Keyset[:], suite: 3, epoch: int(c.cert.Epoch), generation: int(c.cert.Generation), node: a.node,
		public: ref3Base(c.own(a.node)).Encode(nil)}
	for i := range a.ids {
		s.positions, s.ids, s.values = append(s.positions, int(a.positions[i])), append(s.ids, a.ids[i][:]), append(s.values, a.values[i][:])
	}
	a.proof = [64]byte(s.prove(ref3Rules{}, c.own(a.node), fixed("system")))
	a.signature = sig.Sign(c.private[a.node-1], labelAnswer, a.digest())
}

func TestVectors3Request(t *testing.T) {
	c := fixedCluster3(t, 3, 2, "vectors")
	var made []vector
	add := func(what string, node int, req, answer []byte) {
		made = append(made, vector{"what": what, "node": node, "n": 3, "t": 2, "share": hx(ref3LE(c.share(node))),
			"signature_share": hx(c.sigShare(node).FillBytes(make([]byte, 32))), "node_seed": hx(c.private[node-1].Seed()), "system": hx(fixed("system")),
			"certificate": hx(c.cert.Append(nil)), "client": hx(c.author.Key[:]), "request": hx(req), "answer": hx(answer)})
	}
	e := encryptMessages(c.cert, c.author, []Message{{sequence(3), nil}, {sequence(40), []byte("x")}}, fixed32("b req"), fixed32("seed req"))
	r, err := e.VerifiedRound(c.all())
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range []int{1, 3} {
		req := r.Request(node)
		real := c.servers[node].Handle(c.caller(), req)
		a, _, err := r.open(node, real)
		if err != nil {
			t.Fatal(err)
		}
		c.withProof(a)
		answer := []byte{1, 0}
		for i := range a.values {
			answer = append(answer, a.values[i][:]...)
		}
		answer = append(append(append(answer, a.proof[:]...), a.partial[:]...), a.signature[:]...)
		if len(answer) != len(real) || !bytes.Equal(answer[:66], real[:66]) || !bytes.Equal(answer[130:178], real[130:178]) {
			t.Error("the fixed answer differs in more than proof and signature")
		}
		if err := r.Add(node, answer); err != nil {
			t.Fatal(err)
		}
		add("encrypt", node, req, answer)
	}
	if !r.Done() {
		t.Fatal("not done")
	}
	var headers []*Header
	for i, object := range e.Objects() {
		h, _, err := ParseHeader(object)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			h.Proof[50] ^= 1
		}
		headers = append(headers, h)
	}
	d, err := NewDecryption(c.cert, headers)
	if err != nil {
		t.Fatal(err)
	}
	for _, proofs := range []bool{false, true} {
		r, err := d.VerifiedRound(c.all(), proofs)
		if err != nil {
			t.Fatal(err)
		}
		req := r.Request()
		what := "decrypt, the first item with a bad path"
		answer := c.servers[2].Handle(c.caller(), req)
		if proofs {
			what += ", with proofs"
			a := &answer3{cert: c.cert, op: OpDecrypt, node: 2, request: requestHash(req), positions: []uint16{1}, ids: [][32]byte{headers[1].ID()},
				values: [][32]byte{[32]byte(answer[36:])}}
			c.withProof(a)
			answer = append(append(answer[:68:68], a.proof[:]...), a.signature[:]...)
		}
		if err := r.Add(2, answer); err != nil {
			t.Fatal(err)
		}
		add(what, 2, req, answer)
	}
	for _, x := range c.refusals3(t) {
		answer := x.server.Handle(c.caller(), x.req)
		if codeOf(answer) != x.code {
			t.Errorf("%s: %v, want %v", x.what, codeOf(answer), x.code)
		}
		add("refused: "+x.what, 1, x.req, answer)
	}
	for _, v := range checkVectors3(t, "request", made) {
		checkRequestVector3(t, v)
	}
}

// refusals3 are requests to node 1 that TAE3 refuses for reasons of its own.
func (c *cluster3) refusals3(t testing.TB) (list []refusedRequest) {
	t.Helper()
	e, objects := c.make3(t, fixed32("b"), fixed32("seed"), Message{Plaintext: sequence(3)})
	r, _ := e.VerifiedRound(0)
	good := r.Request(1)
	h, _, _ := ParseHeader(objects[0])
	decrypt := func(index, count int, proof []byte) []byte {
		return c.ask3(OpDecrypt, false, h.Source.X0[:], index, count, proof)
	}
	add := func(what string, code Code, req []byte, change func(b []byte) []byte) {
		list = append(list, refusedRequest{what, code, c.servers[1], change(bytes.Clone(req))})
	}
	same := func(b []byte) []byte { return b }
	set := func(at int, v byte) func([]byte) []byte { return func(b []byte) []byte { b[at] = v; return b } }
	add("suite 1", CodeMalformed, good, set(2, 1))
	add("another generation", CodeGeneration, good, set(28, 2))
	add("two equal items", CodeMalformed, good, func(b []byte) []byte {
		b[len(b)-33] = 2
		return append(b, b[len(b)-32:]...)
	})
	add("a secret that does not open", CodeBadOpening, good, set(33+1+96, good[33+1+96]^1))
	add("a quorum without this node", CodeBadQuorum, good, func(b []byte) []byte { b[29] = 2; return append(b[:30], b[31:]...) })
	add("item 1 of 1", CodeMalformed, decrypt(1, 1, h.Proof), same)
	add("item 0 of 0", CodeMalformed, decrypt(0, 0, h.Proof), same)
	add("item 0 of 1025", CodeMalformed, decrypt(0, 1025, h.Proof), same)
	add("a path too long", CodeMalformed, decrypt(0, 1, append(bytes.Clone(h.Proof), make([]byte, 32)...)), same)
	add("a path too short", CodeMalformed, decrypt(0, 2, h.Proof), same)
	add("no items", CodeMalformed, decrypt(0, 1, h.Proof), func(b []byte) []byte { b[34] = 0; return b[:35] })
	add("1,025 items", CodeTooLarge, decrypt(0, 1, h.Proof), func(b []byte) []byte { b[33], b[34] = 4, 1; return b })
	return list
}

// checkRequestVector3 recomputes answers with the second implementation.
func checkRequestVector3(t *testing.T, v vector) {
	t.Helper()
	what, _ := v["what"].(string)
	req, answer, node := v.bytes(t, "request"), v.bytes(t, "answer"), v.int("node")
	if strings.HasPrefix(what, "refused") {
		if answer[1] == 0 {
			t.Errorf("%s: served", what)
		}
		return
	}
	own := ref3Own(ref3Int(v.bytes(t, "share")), 3)
	key := ed25519.NewKeyFromSeed(v.bytes(t, "node_seed"))
	hash := refH("tae/v1/request", req)
	s := &ref3Statement{op: int(req[1]), keyset: req[5:21], suite: 3, epoch: 1, generation: 1, node: node, public: ref3Base(own).Encode(nil)}
	rest := req[33:]
	want := []byte{1, 0}
	partial, root := make([]byte, 48), make([]byte, 32)
	if req[1] == 1 {
		r := refH("tae/v1/openings", []byte{3}, rest[1:97])
		ctx := (&refSession{req[5:21], 3, v.bytes(t, "client"), r[:]}).context()
		var leaves [][]byte
		for w := rest[131:]; len(w) > 0; w = w[32:] {
			x := refX(ctx, w[:32])
			s.positions, s.ids, leaves = append(s.positions, len(s.ids)), append(s.ids, x), append(leaves, ref3Leaf(x))
		}
		root, _ = ref3Tree(leaves, 0)
		partial = ref3Sign(new(big.Int).SetBytes(v.bytes(t, "signature_share")), ref3Signed(req[5:21], 1, len(leaves), root))
	} else { // items of 32 + 4 + 48 + 32 bytes, of which the first is refused
		s.positions, s.ids = []int{1}, [][]byte{rest[2+116:][:32]}
		want = append(append(want, 12, 0), make([]byte, 32)...)
	}
	for _, x := range s.ids {
		s.values = append(s.values, ref3Mul(own, ref3Hash(x)).Encode(nil))
		want = append(want, s.values[len(s.values)-1]...)
	}
	if req[1] == 1 || req[4] == 1 {
		proof := s.prove(ref3Rules{}, own, v.bytes(t, "system"))
		f := [][]byte{{req[1]}, req[5:21], {3}, refU16(1), refU16(1), refU32(1), {byte(node)}, hash[:], refU16(len(s.ids))}
		for i := range s.ids {
			f = append(f, refU16(s.positions[i]), s.ids[i], s.values[i])
		}
		digest := refH("tae/v1/answer", append(f, proof, partial, root)...)
		want = append(want, proof...)
		if req[1] == 1 {
			want = append(want, partial...)
		}
		want = append(want, ed25519.Sign(key, append([]byte("\x0dtae/v1/answer"), digest[:]...))...)
	}
	if !bytes.Equal(answer, want) {
		t.Errorf("%s, node %d: another answer", what, node)
	}
}

func TestVectors3Certificate(t *testing.T) {
	var made []vector
	for _, p := range []dprf.Params{{N: 2, T: 2}, {N: 3, T: 2}, {N: 24, T: 12}} {
		c := fixedCluster3(t, p.N, p.T, "vectors")
		var seeds []string
		for _, k := range c.private {
			seeds = append(seeds, hx(k.Seed()))
		}
		digest := c.cert.Digest()
		made = append(made, vector{"node_seeds": seeds, "terms": hx(c.cert.Terms.Append(nil)), "key": hx(ref3LE(c.f[0])), "digest": hx(digest[:]), "certificate": hx(c.cert.Append(nil))})
	}
	for i, v := range checkVectors3(t, "certificate", made) {
		if strings.HasPrefix(v["certificate"].(string), "sha256:") {
			continue
		}
		terms, cert, seeds := v.bytes(t, "terms"), v.bytes(t, "certificate"), v.list(t, "node_seeds")
		keys := cert[5+len(terms) : len(cert)-64*len(seeds)]
		d := refH("tae/v1/epoch-certificate", refVar(terms), refU32(len(keys)/128), keys)
		want := bytes.Join([][]byte{[]byte("TAEC\x01"), terms, keys}, nil)
		for _, seed := range seeds {
			want = append(want, ed25519.Sign(ed25519.NewKeyFromSeed(seed), append([]byte("\x18tae/v1/epoch-certificate"), d[:]...))...)
		}
		c, err := ParseCertificate(cert)
		if v["digest"] != hx(d[:]) || !bytes.Equal(cert, want) || err != nil || c.Verify(c.Members) != nil || c.Prepare() != nil {
			t.Errorf("certificate %d: %v", i, err)
		}
		if !bytes.Equal(keys[:32], ref3Base(ref3Int(v.bytes(t, "key"))).Encode(nil)) {
			t.Errorf("certificate %d: public key", i)
		}
	}
}

func TestVectors3Evidence(t *testing.T) {
	c := fixedCluster3(t, 3, 2, "vectors")
	var made []vector
	for _, name := range []string{"wrong value", "zero proof", "partial on another message"} {
		ev, _ := c.signedLie(t, 2, name)
		made = append(made, vector{"what": name, "convicts": true, "node": 2, "evidence": hx(ev.Append(nil))})
	}
	ev, _ := c.signedLie(t, 2, "wrong value")
	c.withProof(&ev.answer)
	ev.answer.values[0] = [32]byte(c.value(2, ev.answer.ids[0][:]).Encode(nil))
	c.withProof(&ev.answer)
	made = append(made, vector{"what": "a right answer", "convicts": false, "node": 2, "evidence": hx(ev.Append(nil))})
	ev.answer.signature[5] ^= 1
	ev.answer.values[0] = [32]byte{}
	made = append(made, vector{"what": "a lie with another's signature", "convicts": false, "node": 2, "evidence": hx(ev.Append(nil))})
	for _, v := range checkVectors3(t, "evidence", made) {
		p, err := ParseEvidence(v.bytes(t, "evidence"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Verify(c.cert.Members); (err == nil) != v["convicts"].(bool) || p.Node() != v.int("node") {
			t.Errorf("%s: %v", v["what"], err)
		}
	}
}

func TestVectors3Reject(t *testing.T) {
	c := fixedCluster3(t, 3, 2, "vectors")
	aad := []byte("aad")
	_, objects := c.make3(t, fixed32("b"), fixed32("seed"), Message{sequence(5), aad}, Message{sequence(6), aad}, Message{sequence(7), aad})
	good := objects[0] // its path has two steps
	pipe, _ := c.stream3(t, KindPipe, sequence(5), aad, fixed32("b"), fixed32("seed"))
	var made []vector
	add := func(what string, keyless bool, from []byte, change func(b []byte) []byte) {
		made = append(made, vector{"what": what, "shows_without_key": keyless, "key": hx(ref3LE(c.f[0])), "certificate": hx(c.cert.Append(nil)), "aad": hx(aad), "object": hx(change(bytes.Clone(from)))})
	}
	flip := func(at int) func([]byte) []byte { return func(b []byte) []byte { b[at] ^= 1; return b } }
	set := func(at int, v byte) func([]byte) []byte { return func(b []byte) []byte { b[at] = v; return b } }
	masked := batchHeaderSize(0, 3) - 32
	add("magic", true, good, flip(0))
	add("suite 1", true, good, set(9, 1))
	add("suite 2", true, good, set(9, 2))
	add("mode 2", true, good, set(10, 2))
	add("kind 3", true, good, set(11, 3))
	add("flags", true, good, set(12, 1))
	add("layers", true, good, set(13, 1))
	add("another keyset", true, good, flip(20))
	add("epoch 0", true, good, set(31, 0))
	add("an epoch that does not exist", true, good, set(31, 2))
	add("source flag 2", true, good, set(64, 2))
	add("flag 0 with a source epoch", true, good, set(66, 1))
	add("index 3 of 3", true, good, set(100, 3))
	add("index 0 of 0", true, good, func(b []byte) []byte { b[101], b[102] = 0, 0; return b })
	add("index 0 of 1,025", true, good, func(b []byte) []byte { b[101], b[102] = 4, 1; return b })
	add("header cut off", true, good, func(b []byte) []byte { return b[:masked+31] })
	add("x_0", false, good, flip(40))
	add("kind 1 instead of 0", false, good, set(11, 1))
	add("index 1 of 3", false, good, set(100, 1))
	add("index 0 of 4", false, good, set(102, 4))
	add("signature", false, good, flip(110))
	add("the identity as signature", false, good, func(b []byte) []byte { clear(b[103:151]); b[103] = 0xc0; return b })
	add("path", false, good, flip(160))
	add("steps of the path swapped", false, good, func(b []byte) []byte {
		copy(b[151:183], good[183:215])
		copy(b[183:215], good[151:183])
		return b
	})
	add("signature of another request", false, good, func(b []byte) []byte { copy(b[103:151], pipe[103:151]); return b })
	add("masked value that is no element", false, good, set(masked+31, 0xff))
	add("masked value of another object", false, good, func(b []byte) []byte { copy(b[masked:masked+32], objects[1][masked:masked+32]); return b })
	add("body", false, good, flip(len(good)-1))
	add("body cut off", false, good, func(b []byte) []byte { return b[:len(b)-1] })
	add("body extended", false, good, func(b []byte) []byte { return append(b, 0) })
	add("body shorter than 64 bytes", false, good, func(b []byte) []byte { return b[:masked+32+63] })
	add("pipe with another key commitment", false, pipe, flip(183))
	add("pipe cut off", false, pipe, func(b []byte) []byte { return b[:len(b)-1] })
	for _, v := range checkVectors3(t, "reject", made) {
		object := v.bytes(t, "object")
		h, body, err := ParseHeader(object)
		if err == nil {
			err = CheckObject(c.cert, h)
		}
		if keyless := v["shows_without_key"].(bool); keyless != (err != nil) {
			t.Errorf("%s: without a key: %v", v["what"], err)
			continue
		} else if keyless {
			continue
		}
		served, err := c.cert.verifyProofs([]item3{{h.ID(), h.Index, h.Count, h.Proof}})
		if err != nil {
			t.Fatal(err)
		}
		if !served[0] {
			continue
		}
		o, ok := openedWith(h, c.y(h.Source.X0[:]))
		if !ok {
			continue
		}
		if h.Kind == KindMessage {
			_, _, err = o.Message(body, v.bytes(t, "aad"))
		} else {
			var r *BodyReader
			if r, err = o.Stream(bytes.NewReader(body), v.bytes(t, "aad")); err == nil {
				_, err = new(bytes.Buffer).ReadFrom(r)
			}
		}
		if err == nil {
			t.Errorf("%s: accepted", v["what"])
		}
	}
}
