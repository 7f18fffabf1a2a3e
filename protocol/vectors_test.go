package protocol

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/secret"
)

var update = flag.Bool("update", false, "write the test vectors instead of comparing them")

// A vector is one case of a file in testdata/tae1. Byte strings are hex; one of
// more than 4,500 bytes is given as "sha256:" and its hash.
type vector map[string]any

type vectorFile struct {
	Format  int      `json:"format"` // of objects, requests and these files
	Suite   string   `json:"suite"`
	Vectors []vector `json:"vectors"`
}

func vectorPath(name string) string { return filepath.Join("..", "testdata", "tae1", name+".json") }

// loadVectors reads a file and fails when it holds nothing.
func loadVectors(t testing.TB, name string) []vector {
	t.Helper()
	b, err := os.ReadFile(vectorPath(name))
	if err != nil {
		t.Fatal(err)
	}
	var f vectorFile
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	if f.Format != objectVersion || f.Suite != "TAE1" || len(f.Vectors) == 0 {
		t.Fatalf("%s: format %d, suite %q, %d vectors", name, f.Format, f.Suite, len(f.Vectors))
	}
	return f.Vectors
}

// checkVectors compares the vectors that the code makes now with the file.
func checkVectors(t *testing.T, name string, made []vector) {
	t.Helper()
	b, err := json.MarshalIndent(vectorFile{objectVersion, "TAE1", made}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	if *update {
		if err := os.WriteFile(vectorPath(name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(vectorPath(name))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, b) {
		t.Errorf("the code makes other %s vectors than are stored: the format changed", name)
	}
	loadVectors(t, name)
}

func hx(b []byte) string {
	if len(b) > 4500 {
		h := sha256.Sum256(b)
		return "sha256:" + hex.EncodeToString(h[:])
	}
	return hex.EncodeToString(b)
}

func hxs[T ~[]byte](list []T) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = hx(b)
	}
	return out
}

func (v vector) bytes(t testing.TB, name string) []byte {
	t.Helper()
	s, ok := v[name].(string)
	b, err := hex.DecodeString(s)
	if !ok || err != nil {
		t.Fatalf("field %s of a vector: %v", name, v[name])
	}
	return b
}

func (v vector) list(t testing.TB, name string) (out [][]byte) {
	t.Helper()
	list, ok := v[name].([]any)
	if !ok {
		t.Fatalf("field %s of a vector: %v", name, v[name])
	}
	for _, s := range list {
		b, err := hex.DecodeString(s.(string))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

func (v vector) int(name string) int { return int(v[name].(float64)) }

// fixed is a value that is the same in every run.
func fixed(format string, args ...any) []byte {
	h := sha256.Sum256(fmt.Appendf([]byte("tae test vector "), format, args...))
	return h[:]
}

func fixed32(format string, args ...any) *[32]byte { v := [32]byte(fixed(format, args...)); return &v }

// sequence is the plaintext of vectors: byte i is 7i+1 mod 256.
func sequence(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(7*i + 1)
	}
	return b
}

// fixedCluster is a test cluster that is the same in every run.
func fixedCluster(t testing.TB, n, th int) *testCluster {
	t.Helper()
	private := ed25519.NewKeyFromSeed(fixed("client"))
	c := &testCluster{author: &Author{Key: ClientKey(private.Public().(ed25519.PublicKey))}, private: private}
	c.cert = &Certificate{Terms: Terms{Keyset: KeysetID(fixed("keyset")), Name: "vectors", Suite: SuiteTAE1, N: n, T: th,
		Modes: ModesOf(ModeSealed), Limits: Limits{MaxBatch: 128, ObjectsLog2: 36}, Version: 1, Epoch: 1, Attempt: 1}}
	var members []ed25519.PrivateKey
	for i := 1; i <= n; i++ {
		members = append(members, ed25519.NewKeyFromSeed(fixed("node %d", i)))
		c.cert.Members = append(c.cert.Members, [32]byte(members[i-1].Public().(ed25519.PublicKey)))
	}
	layout := c.cert.Layout()
	session := c.cert.Session()
	for i := range layout.Keys() {
		k := secret.New(fixed("key %d of %d %d", i, n, th))
		c.keys = append(c.keys, k)
		c.cert.Checks = append(c.cert.Checks, session.KeyCheck(layout.Set(i), k))
	}
	for _, m := range members {
		c.cert.Signatures = append(c.cert.Signatures, c.cert.Sign(m))
	}
	c.servers = make([]*Server, n+1)
	for node := 1; node <= n; node++ {
		c.servers[node] = c.server(t, node, allowAll)
	}
	return c
}

// rawKeys are the keys of the epoch as plain bytes.
func (c *testCluster) rawKeys() (keys [][]byte) {
	for _, k := range c.keys {
		keys = append(keys, k.Expose())
	}
	return keys
}

func TestVectorsDPRF(t *testing.T) {
	var made []vector
	for _, p := range []dprf.Params{{N: 2, T: 2}, {N: 3, T: 2}, {N: 4, T: 3}, {N: 5, T: 3}} {
		c := fixedCluster(t, p.N, p.T)
		layout := c.cert.Layout()
		id := *fixed32("identity")
		var sets, masks, tags, maskKeys, tagKeys []string
		var sc dprf.Scratch
		var sum [32]byte
		for key := range layout.Keys() {
			share := c.servers[layout.Set(key).Nodes()[0]].keysets[c.cert.Keyset].Active.Share
			var mask [32]byte
			var tag [16]byte
			share.AddMask(&sc, &mask, &id, key)
			share.AddMask(&sc, &sum, &id, key)
			share.Tag(&sc, &tag, uint8(ModeSealed), &id, key)
			sets = append(sets, layout.Set(key).String())
			masks, tags = append(masks, hx(mask[:])), append(tags, hx(tag[:]))
			maskKeys = append(maskKeys, hx(refDerive(c.keys[key].Expose(), "tae/v1/dprf/mask")))
			tagKeys = append(tagKeys, hx(refDerive(c.keys[key].Expose(), "tae/v1/dprf/tag")))
		}
		assignments := map[string][]int{}
		for size := p.T; size <= p.N; size++ {
			quorums(p.N, size, func(q dprf.Set) {
				a, err := layout.Assign(q)
				if err != nil {
					t.Fatal(err)
				}
				owners := make([]int, len(a))
				for key, o := range a {
					owners[key] = int(o)
				}
				assignments[q.String()] = owners
			})
		}
		made = append(made, vector{"n": p.N, "t": p.T, "sets": sets, "keys": hxs(c.rawKeys()), "mask_keys": maskKeys, "tag_keys": tagKeys,
			"identity": hx(id[:]), "mode": 1, "masks": masks, "tags": tags, "f": hx(sum[:]), "owner_per_key_by_quorum": assignments})
	}
	checkVectors(t, "dprf", made)
	for _, v := range loadVectors(t, "dprf") {
		n, th, keys, id := v.int("n"), v.int("t"), v.list(t, "keys"), v.bytes(t, "identity")
		sets := refSets(n, th)
		if len(sets) != len(keys) {
			t.Fatal("number of keys")
		}
		masks, tags := v.list(t, "masks"), v.list(t, "tags")
		for k := range keys {
			if fmt.Sprint(sets[k]) != v["sets"].([]any)[k].(string) {
				t.Errorf("set of key %d", k)
			}
			if !bytes.Equal(masks[k], refMask(keys[k], id)) || !bytes.Equal(tags[k], refTag(keys[k], v.int("mode"), id)) {
				t.Errorf("mask or tag of key %d", k)
			}
		}
		if !bytes.Equal(v.bytes(t, "f"), refF(keys, id)) {
			t.Error("F")
		}
		for q, owners := range v["owner_per_key_by_quorum"].(map[string]any) {
			var nodes []int
			if err := json.Unmarshal([]byte(strings.ReplaceAll(q, " ", ",")), &nodes); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(refAssign(sets, nodes)); got != fmt.Sprint(owners) {
				t.Errorf("n=%d t=%d quorum %s: %v, want %v", n, th, q, got, owners)
			}
		}
	}
}

func TestVectorsIdentity(t *testing.T) {
	var made []vector
	for i, n := range []int{2, 3, 5} {
		b := fixed32("b %d", i)
		o := newOpenings(b, n)
		p := Params{Suite: SuiteTAE1, Mode: ModeSealed, Kind: Kind(i), Keyset: KeysetID(fixed("keyset"))}
		rho, j, aad := Rho(fixed("rho %d", i)[:RhoSize]), ClientKey(fixed("j")), fixed("aad")[:11*i]
		hb := *fixed32("body hash")
		ad := aadHash(&p, aad)
		w := freshCommitment(&rho, 1, &hb, &ad)
		ctx := sessionContext(p.Keyset, p.Suite, j, &o.r)
		x := freshIdentity(&ctx, &w)
		moved := movedIdentity(p.Keyset, p.Suite, &Source{X0: x, Moved: true, EpochSrc: 1, IDSrc: x})
		var s, c []string
		for k := range n {
			s, c = append(s, hx(o.secrets[k][:])), append(c, hx(o.commitments[k][:]))
		}
		made = append(made, vector{"n": n, "b": hx(b[:]), "open_secrets": s, "open_commitments": c, "r": hx(o.r[:]), "params": hx(p.Append(nil)),
			"rho": hx(rho[:]), "born": 1, "body_hash": hx(hb[:]), "aad": hx(aad), "aad_hash": hx(ad[:]), "w": hx(w[:]), "client": hx(j[:]),
			"context": hx(ctx[:]), "x": hx(x[:]), "moved_source_epoch": 1, "moved_source_id": hx(x[:]), "moved_id": hx(moved[:])})
	}
	checkVectors(t, "identity", made)
	for i, v := range loadVectors(t, "identity") {
		n := v.int("n")
		s, c, r := refOpenings(v.bytes(t, "b"), n)
		params := v.bytes(t, "params")
		ad := refAD(params, v.bytes(t, "aad"))
		w := refW(v.bytes(t, "rho"), v.int("born"), v.bytes(t, "body_hash"), ad)
		ctx := (&refSession{params[14:], int(params[9]), v.bytes(t, "client"), r}).context()
		x := refX(ctx, w)
		moved := refH("tae/v1/moved", params[14:], params[9:10], x, refU16(v.int("moved_source_epoch")), v.bytes(t, "moved_source_id"))
		for name, want := range map[string][]byte{"r": r, "aad_hash": ad, "w": w, "context": ctx, "x": x, "moved_id": moved[:],
			"open_secrets": bytes.Join(s, nil), "open_commitments": bytes.Join(c, nil)} {
			got, ok := v[name].(string)
			if !ok {
				got = hx(bytes.Join(v.list(t, name), nil))
			}
			if got != hx(want) {
				t.Errorf("vector %d: %s", i, name)
			}
		}
	}
}

// objectVector describes an object with everything on the way to its plaintext.
func (c *testCluster) objectVector(t testing.TB, e *Encryption, b, seed *[32]byte, object, m, aad []byte) vector {
	t.Helper()
	h, body, err := ParseHeader(object)
	if err != nil {
		t.Fatal(err)
	}
	x, rho := e.items[0].x, e.rhos[0][:]
	hb := refH("tae/v1/body", body)
	v := vector{"n": c.cert.N, "t": c.cert.T, "keys": hxs(c.rawKeys()), "certificate": hx(c.cert.Append(nil)), "client": hx(c.author.Key[:]),
		"b": hx(b[:]), "seed": hx(seed[:]), "r": hx(e.open.r[:]), "rho": hx(rho), "born": 1, "aad": hx(aad), "w": hx(e.items[0].w[:]), "x": hx(x[:]),
		"tags": hx(h.Proof), "mask": hx(refF(c.rawKeys(), x[:])), "masked": hx(h.Masked[:]), "plaintext_length": len(m), "plaintext": hx(m),
		"header": hx(object[:len(object)-len(body)]), "body": hx(body), "object": hx(object)}
	switch h.Kind {
	case KindMessage:
		v["keystream"] = hx(refKeystream(rho, len(body)))
	default:
		commitment, key := refH("tae/v1/commit", rho), refH("tae/v1/stream-key", rho)
		v["key_commitment"], v["stream_key"] = hx(commitment[:]), hx(key[:])
		if h.Kind == KindPipe {
			hb = refH("tae/v1/pipe", commitment[:])
			v["client_seed"] = hx(c.private.Seed())
		}
	}
	v["body_hash"] = hx(hb[:])
	return v
}

func TestVectorsMessage(t *testing.T) {
	var made []vector
	for i, size := range []int{0, 1, 32, 64, 65, 300, MaxMessage} { // 64: the last length under the SHA-256 keystream
		c := fixedCluster(t, 3+i%2, 2+i%2)
		b, seed, m, aad := fixed32("b m %d", i), fixed32("seed m %d", i), sequence(size), fixed("aad")[:i]
		e := encryptMessages(c.cert, c.author, []Message{{m, aad}}, b, seed)
		if err := c.runEncrypt(e, c.all(), false); err != nil {
			t.Fatal(err)
		}
		made = append(made, c.objectVector(t, e, b, seed, e.Objects()[0], m, aad))
	}
	checkVectors(t, "message", made)
	checkObjectVectors(t, "message", made)
}

func TestVectorsFile(t *testing.T) { testStreamVectors(t, KindFile) }

func TestVectorsPipe(t *testing.T) { testStreamVectors(t, KindPipe) }

func testStreamVectors(t *testing.T, kind Kind) {
	var made []vector
	for i, size := range []int{0, 1, 1000, ChunkSize - 65, ChunkSize - 64, ChunkSize - 63, 2*ChunkSize - 64, 3*ChunkSize + 5} {
		c := fixedCluster(t, 3, 2)
		b, seed, m, aad := fixed32("b %v %d", kind, i), fixed32("seed %v %d", kind, i), sequence(size), fixed("aad")[:i]
		object, s := c.fixedStream(t, kind, m, aad, b, seed)
		made = append(made, c.objectVector(t, s.Encryption, b, seed, object, m, aad))
	}
	checkVectors(t, kind.String(), made)
	checkObjectVectors(t, kind.String(), made)
}

// fixedStream makes a file or pipe from given secrets.
func (c *testCluster) fixedStream(t testing.TB, kind Kind, m, aad []byte, b, seed *[32]byte) ([]byte, *Stream) {
	t.Helper()
	var body bytes.Buffer
	var s *Stream
	var err error
	if kind == KindFile {
		s, err = newFile(c.cert, c.author, aad, &body, b, seed)
	} else {
		s = newPipe(c.cert, c.author, aad, b, seed)
		err = errors.Join(c.runEncrypt(s.Encryption, c.all(), false), s.StartBody(&body))
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Write(m)
	if kind == KindFile {
		err = errors.Join(err, s.FinishBody(), c.runEncrypt(s.Encryption, c.all(), false))
	} else {
		err = errors.Join(err, s.EndPipe(c.private))
	}
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.Clone(s.Header()), body.Bytes()...), s
}

// checkObjectVectors checks the stored vectors against the second implementation:
// from b and seed to rho, R, w and x, and from keys and object to the plaintext.
func checkObjectVectors(t *testing.T, name string, made []vector) {
	t.Helper()
	for i, v := range loadVectors(t, name) {
		keys := v.list(t, "keys")
		rho := refCTR(v.bytes(t, "seed"), 30)
		_, _, r := refOpenings(v.bytes(t, "b"), v.int("n"))
		header := v.bytes(t, "header")
		w := refW(rho, v.int("born"), v.bytes(t, "body_hash"), refAD(header[:30], v.bytes(t, "aad")))
		x := refX((&refSession{header[14:30], 1, v.bytes(t, "client"), r}).context(), w)
		for field, want := range map[string][]byte{"rho": rho, "r": r, "w": w, "x": x, "tags": refTags(keys, 1, x), "mask": refF(keys, x),
			"masked": refXOR(refF(keys, x), append(bytes.Clone(rho), 0, 1))} {
			if v[field] != hx(want) {
				t.Errorf("%s %d: %s", name, i, field)
			}
		}
		object := made[i]["object"].(string)
		if strings.HasPrefix(object, "sha256:") {
			continue // its hash agreed, and TestObjectsAgreeWithSecondImplementation opens such ones
		}
		m, j, err := refOpen(keys, v.bytes(t, "object"), v.bytes(t, "aad"))
		if err != nil || hx(m) != v["plaintext"] || hx(j) != v["client"] {
			t.Errorf("%s %d: %v", name, i, err)
		}
		if !bytes.Equal(append(header, v.bytes(t, "body")...), v.bytes(t, "object")) {
			t.Errorf("%s %d: header and body are not the object", name, i)
		}
	}
}

// Objects of every kind and length open with the implementation that was written
// from the specification alone, and altered ones do not.
func TestObjectsAgreeWithSecondImplementation(t *testing.T) {
	c := newTestCluster(t, 4, 3)
	for _, kind := range []Kind{KindMessage, KindFile, KindPipe} {
		for _, size := range []int{0, 1, 63, 64, 65, 1000, ChunkSize - 65, ChunkSize - 64, ChunkSize - 63, ChunkSize, 2*ChunkSize - 64, 2*ChunkSize + 9} {
			m, aad := sequence(size), []byte("data")
			var object []byte
			switch {
			case kind != KindMessage:
				object, _ = c.fixedStream(t, kind, m, aad, fixed32("b"), fixed32("seed"))
			case size > MaxMessage:
				continue
			default:
				object = c.encrypt(t, dprf.SetOf(1, 3, 4), false, Message{m, aad})[0]
			}
			got, j, err := refOpen(c.rawKeys(), object, aad)
			if err != nil || !bytes.Equal(got, m) || !bytes.Equal(j, c.author.Key[:]) {
				t.Fatalf("%v of %d bytes: %v", kind, size, err)
			}
			if _, _, err := refOpen(c.rawKeys(), object, []byte("date")); err == nil {
				t.Errorf("%v of %d bytes opens with other associated data", kind, size)
			}
		}
	}
}

func TestVectorsRequest(t *testing.T) {
	c := fixedCluster(t, 3, 2)
	var made []vector
	add := func(what string, node int, req, answer []byte) {
		made = append(made, vector{"what": what, "node": node, "n": 3, "t": 2, "keys": hxs(c.rawKeys()), "certificate": hx(c.cert.Append(nil)),
			"client": hx(c.author.Key[:]), "request": hx(req), "answer": hx(answer)})
	}
	messages := []Message{{sequence(3), nil}, {sequence(40), []byte("x")}}
	e := encryptMessages(c.cert, c.author, messages, fixed32("b req"), fixed32("seed req"))
	ask := func(what string, node int, req []byte) []byte {
		answer := c.servers[node].Handle(c.caller(), req)
		add(what, node, req, answer)
		return answer
	}
	for _, detail := range []bool{true, false} {
		q, what := dprf.SetOf(1, 2), "encrypt"
		if detail {
			q, what = c.all(), "encrypt in detail"
		}
		r, err := e.Round(q, detail)
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range q.Nodes() {
			if err := r.Add(node, ask(what, node, r.Request(node))); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Finish(); err != nil {
			t.Fatal(err)
		}
	}
	var headers []*Header
	for i, object := range e.Objects() {
		h, _, err := ParseHeader(object)
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			h.Proof[3] ^= 1
		}
		headers = append(headers, h)
	}
	d, err := NewDecryption(c.cert, headers)
	if err != nil {
		t.Fatal(err)
	}
	for _, detail := range []bool{false, true} {
		r, err := d.Round(dprf.SetOf(2, 3), detail)
		if err != nil {
			t.Fatal(err)
		}
		what := map[bool]string{false: "decrypt, the second item with a bad tag of key 0", true: "decrypt in detail, the second item with a bad tag of key 0"}[detail]
		for _, node := range []int{2, 3} {
			if err := r.Add(node, ask(what, node, r.Request())); err != nil {
				t.Fatal(err)
			}
		}
	}
	ask("keysets", 1, KeysetsRequest(""))
	ask("keysets by name", 1, KeysetsRequest("vectors"))
	status := NodeStatus{Node: "n1", Software: "test", ClusterHash: *fixed32("cluster"),
		Keysets: []KeysetStatus{{ID: c.cert.Keyset, Name: "vectors", Suite: SuiteTAE1, N: 3, T: 2, Epoch: 1, Attempt: 1, State: "active"}}}
	add("status", 1, StatusRequest(), status.Append(nil))
	for _, r := range c.refusals(t) {
		add("refused: "+r.what, 1, r.req, r.server.Handle(c.caller(), r.req))
	}
	checkVectors(t, "request", made)
	for _, v := range loadVectors(t, "request") {
		checkRequestVector(t, v)
	}
}

// checkRequestVector recomputes answers with the second implementation.
func checkRequestVector(t *testing.T, v vector) {
	t.Helper()
	what, _ := v["what"].(string)
	req, answer, node, keys := v.bytes(t, "request"), v.bytes(t, "answer"), v.int("node"), v.list(t, "keys")
	sets := refSets(3, 2)
	if !strings.HasPrefix(what, "encrypt") && !strings.HasPrefix(what, "decrypt") {
		if (answer[1] != 0) != strings.HasPrefix(what, "refused") {
			t.Errorf("%s: code %d", what, answer[1])
		}
		return
	}
	var q []int
	for _, i := range req[30:][:req[29]] {
		q = append(q, int(i))
	}
	owner := refAssign(sets, q)
	detail := req[4] == 1
	mine := func(k int) bool {
		if detail {
			return slices.Contains(sets[k], node)
		}
		return owner[k] == node
	}
	masks := func(id []byte) (out []byte) {
		sum := make([]byte, 32)
		for k := range keys {
			if mine(k) {
				sum = refXOR(sum, refMask(keys[k], id))
				out = append(out, refMask(keys[k], id)...)
			}
		}
		if !detail {
			return sum
		}
		return out
	}
	rest := req[30+len(q):]
	want := []byte{1, 0}
	if req[1] == 1 {
		ch := rest[1:97]
		r := refH("tae/v1/openings", []byte{3}, ch)
		ctx := (&refSession{req[5:21], 1, v.bytes(t, "client"), r[:]}).context()
		for w := rest[131:]; len(w) > 0; w = w[32:] {
			x := refX(ctx, w[:32])
			want = append(want, masks(x)...)
			for k := range keys {
				if mine(k) {
					want = append(want, refTag(keys[k], 1, x)...)
				}
			}
		}
	} else {
		// The tag of key 0, of nodes 1 and 2, is bad in the second item.
		item := rest[2:]
		want = append(want, 0)
		first := masks(item[:32])
		second := masks(item[80:112])
		if node == 3 {
			want = append(append(append(want, 0), first...), second...)
		} else {
			want = append(append(append(want, 12), first...), make([]byte, len(second))...)
		}
	}
	if !bytes.Equal(answer, want) {
		t.Errorf("%s, node %d: another answer", what, node)
	}
}

type refusedRequest struct {
	what   string
	code   Code
	server *Server
	req    []byte
}

// refusals has a request to node 1 for every code that Server gives.
func (c *testCluster) refusals(t testing.TB) (list []refusedRequest) {
	t.Helper()
	e := encryptMessages(c.cert, c.author, []Message{{Plaintext: sequence(3)}}, fixed32("b"), fixed32("seed"))
	r, err := e.Round(dprf.SetOf(1, 2), false)
	if err != nil {
		t.Fatal(err)
	}
	good := r.Request(1)
	served := c.servers[1]
	add := func(what string, code Code, s *Server, change func(b []byte) []byte) {
		list = append(list, refusedRequest{what, code, s, change(bytes.Clone(good))})
	}
	set := func(at int, v byte) func([]byte) []byte { return func(b []byte) []byte { b[at] = v; return b } }
	gate := func(refusal *Refusal, real bool) *Server {
		return c.server(t, 1, func(_ Caller, _ string, _ Op, items int) *Refusal {
			if real && items == 0 {
				return nil
			}
			return refusal
		})
	}
	add("empty", CodeMalformed, served, func([]byte) []byte { return nil })
	add("unknown operation", CodeMalformed, served, set(1, 9))
	add("unknown flag", CodeMalformed, served, set(4, 2))
	add("quorum not ascending", CodeMalformed, served, func(b []byte) []byte { b[30], b[31] = 2, 1; return b })
	add("another suite", CodeMalformed, served, set(2, 3))
	add("one byte too many", CodeMalformed, served, func(b []byte) []byte { return append(b, 0) })
	add("another version", CodeVersion, served, set(0, 2))
	add("denied", CodeDenied, gate(refuse(CodeDenied, "no"), false), set(0, 1))
	add("another keyset", CodeUnknownKeyset, served, set(5, good[5]^1))
	add("another epoch", CodeUnknownEpoch, served, set(22, 2))
	add("another attempt", CodeUnknownEpoch, served, set(24, 2))
	retired := c.server(t, 1, allowAll)
	retired.keysets[c.cert.Keyset].Epochs[1].State = EpochRetired
	add("encrypt under a retired epoch", CodeEpochRetired, retired, set(0, 1))
	add("another generation", CodeGeneration, served, set(28, 1))
	add("a mode that is not offered", CodeMode, served, set(3, byte(ModeLayered)))
	add("busy", CodeBusy, gate(&Refusal{Code: CodeBusy, RetryAfter: 250}, true), set(0, 1))
	add("too many items", CodeTooLarge, served, func(b []byte) []byte {
		b = append(b, make([]byte, 32*128)...)
		b[30+2+1+32*4+1] = 129
		return b
	})
	add("a secret that does not open", CodeBadOpening, served, set(30+2+1+32*3, 0))
	add("a quorum without this node", CodeBadQuorum, served, func(b []byte) []byte { b[30], b[31] = 2, 3; return b })
	add("a quorum that is too small", CodeBadQuorum, served, func(b []byte) []byte { b[29] = 1; return append(b[:31], b[32:]...) })
	damaged := NewServer(1, allowAll, map[KeysetID]*ServedKeyset{c.cert.Keyset: {Damaged: "damaged file"}})
	add("damaged", CodeNotServing, damaged, set(0, 1))
	return list
}

func TestEveryCodeIsGiven(t *testing.T) {
	c := fixedCluster(t, 3, 2)
	seen := map[Code]bool{}
	for _, r := range c.refusals(t) {
		seen[r.code] = true
		_, err := OpenAnswer(r.server.Handle(c.caller(), r.req))
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Code != r.code {
			t.Errorf("%s: %v, want code %d", r.what, err, r.code)
		}
		withCert := r.code == CodeUnknownEpoch || r.code == CodeGeneration || r.code == CodeEpochRetired
		if refusal != nil && (len(refusal.Certificate) > 0) != withCert {
			t.Errorf("%s: certificate of %d bytes", r.what, len(refusal.Certificate))
		}
	}
	for code := CodeMalformed; code < CodeInternal; code++ {
		if !seen[code] && code != CodeBadProof {
			t.Errorf("code %d is not tested", code)
		}
	}
}

func TestVectorsCertificate(t *testing.T) {
	var made []vector
	for _, p := range []dprf.Params{{N: 2, T: 2}, {N: 3, T: 2}, {N: 5, T: 3}} {
		c := fixedCluster(t, p.N, p.T).cert
		var seeds, signatures []string
		for i := range c.Signatures {
			seeds, signatures = append(seeds, hx(fixed("node %d", i+1))), append(signatures, hx(c.Signatures[i][:]))
		}
		termsDigest, digest := c.Terms.Digest(), c.Digest()
		made = append(made, vector{"node_seeds": seeds, "terms": hx(c.Terms.Append(nil)), "terms_digest": hx(termsDigest[:]),
			"digest": hx(digest[:]), "signatures": signatures, "certificate": hx(c.Append(nil))})
	}
	checkVectors(t, "certificate", made)
	for i, v := range loadVectors(t, "certificate") {
		terms, cert := v.bytes(t, "terms"), v.bytes(t, "certificate")
		seeds := v.list(t, "node_seeds")
		checks := cert[5+len(terms) : len(cert)-64*len(seeds)]
		td := refH("tae/v1/terms", refVar(terms))
		d := refH("tae/v1/epoch-certificate", refVar(terms), refU32(len(checks)/32), checks)
		want := bytes.Join([][]byte{[]byte("TAEC\x01"), terms, checks}, nil)
		for _, seed := range seeds {
			want = append(want, ed25519.Sign(ed25519.NewKeyFromSeed(seed), append([]byte("\x18tae/v1/epoch-certificate"), d[:]...))...)
		}
		if v["terms_digest"] != hx(td[:]) || v["digest"] != hx(d[:]) || !bytes.Equal(cert, want) {
			t.Errorf("certificate %d", i)
		}
		c, err := ParseCertificate(cert)
		if err != nil || c.Verify(c.Members) != nil {
			t.Errorf("certificate %d: %v", i, err)
		}
	}
}

func TestVectorsReject(t *testing.T) {
	c := fixedCluster(t, 3, 2)
	aad := []byte("aad")
	e := encryptMessages(c.cert, c.author, []Message{{sequence(5), aad}}, fixed32("b"), fixed32("seed"))
	if err := c.runEncrypt(e, c.all(), false); err != nil {
		t.Fatal(err)
	}
	good := e.Objects()[0]
	pipe, _ := c.fixedStream(t, KindPipe, sequence(5), aad, fixed32("b"), fixed32("seed"))
	var made []vector
	add := func(what string, keyless bool, from []byte, change func(b []byte) []byte) {
		made = append(made, vector{"what": what, "shows_without_key": keyless, "keys": hxs(c.rawKeys()), "certificate": hx(c.cert.Append(nil)),
			"aad": hx(aad), "object": hx(change(bytes.Clone(from)))})
	}
	flip := func(at int) func([]byte) []byte { return func(b []byte) []byte { b[at] ^= 1; return b } }
	set := func(at int, v byte) func([]byte) []byte { return func(b []byte) []byte { b[at] = v; return b } }
	masked := SealedHeaderSize(dprf.Params{N: 3, T: 2}) - 32
	add("magic", true, good, flip(0))
	add("line ends converted", true, good, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")) })
	add("version 2", true, good, set(8, 2))
	add("suite 3", true, good, set(9, 3))
	add("mode 2", true, good, set(10, 2))
	add("kind 3", true, good, set(11, 3))
	add("flags", true, good, set(12, 1))
	add("63 layers", true, good, set(13, 63))
	add("layers other than the keyset's", true, good, set(13, 1))
	add("another keyset", true, good, flip(20))
	add("epoch 0", true, good, set(31, 0))
	add("an epoch that does not exist", true, good, set(31, 2))
	add("source flag 2", true, good, set(64, 2))
	add("flag 0 with a source epoch", true, good, set(66, 1))
	add("flag 0 with a source identity", true, good, set(70, 1))
	add("flag 1 from epoch 0", true, good, set(64, 1))
	add("flag 1 from the object's own epoch", true, good, func(b []byte) []byte { b[64], b[66] = 1, 1; return b })
	add("no tags", true, good, func(b []byte) []byte { return append(append(b[:99:99], 0, 0), b[101+48:]...) })
	add("a tag less", true, good, func(b []byte) []byte { return append(append(b[:99:99], 0, 2), b[101+16:]...) })
	add("20,001 tags", true, good, func(b []byte) []byte { b[99], b[100] = 0x4e, 0x21; return b })
	add("header cut off", true, good, func(b []byte) []byte { return b[:masked+31] })
	add("x_0", false, good, flip(40))
	add("kind 1 instead of 0", false, good, set(11, 1))
	add("tag of key 0", false, good, flip(101))
	add("two tags swapped", false, good, func(b []byte) []byte { copy(b[101:], good[117:133]); copy(b[117:], good[101:117]); return b })
	add("masked secret", false, good, flip(masked))
	add("masked birth epoch", false, good, flip(masked+31))
	add("body", false, good, flip(len(good)-1))
	add("body cut off", false, good, func(b []byte) []byte { return b[:len(b)-1] })
	add("body extended", false, good, func(b []byte) []byte { return append(b, 0) })
	add("body shorter than 64 bytes", false, good, func(b []byte) []byte { return b[:masked+32+63] })
	add("pipe with another key commitment", false, pipe, flip(masked+32))
	add("pipe cut off", false, pipe, func(b []byte) []byte { return b[:len(b)-1] })
	add("pipe of somebody who may decrypt", false, pipe, func(b []byte) []byte { return c.rewritePipe(t, b, aad) })
	checkVectors(t, "reject", made)
	for _, v := range loadVectors(t, "reject") {
		object := v.bytes(t, "object")
		h, _, err := ParseHeader(object)
		if err == nil {
			err = CheckObject(c.cert, h)
		}
		if keyless := v["shows_without_key"].(bool); keyless != (err != nil) {
			t.Errorf("%s: without a key: %v", v["what"], err)
			continue
		} else if keyless {
			continue
		}
		if h.Kind == KindMessage {
			_, err = c.decrypt(object, v.bytes(t, "aad"), c.all())
		} else {
			_, _, err = c.readStream(object, v.bytes(t, "aad"))
		}
		if err == nil {
			t.Errorf("%s: accepted", v["what"])
		}
	}
}
