package keygen

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/protocol"
)

var update = flag.Bool("update", false, "write the test vectors instead of comparing them")

const vectorPath = "../../testdata/tae1/keygen.json"

// A keygenVector is one key generation. Byte strings are hex. Maps are by member
// or, for contributions, by sender and set; statements are whole, with signatures.
type keygenVector struct {
	N             int                 `json:"n"`
	T             int                 `json:"t"`
	NodeSeeds     []string            `json:"node_seeds"`
	Terms         string              `json:"terms"`
	Seeds         []string            `json:"contribution_seeds"`
	Contributions map[string]string   `json:"contributions"`
	Transcript    string              `json:"transcript"`
	Reveals       map[string]string   `json:"reveals"` // "from to"
	Keys          map[string]string   `json:"keys"`    // by set
	Statements    map[string][]string `json:"statements"`
	Certificate   string              `json:"certificate"`
	Abandon       string              `json:"abandon_of_member_1"`
}

type keygenFile struct {
	Format  int            `json:"format"`
	Suite   string         `json:"suite"`
	Vectors []keygenVector `json:"vectors"`
}

func fixed(format string, args ...any) []byte {
	h := sha256.Sum256(fmt.Appendf([]byte("tae test vector "), format, args...))
	return h[:]
}

// fixedGroup is a group that is the same in every run.
func fixedGroup(t testing.TB, n, th int) *group {
	t.Helper()
	g := &group{terms: &protocol.Terms{Keyset: protocol.KeysetID(fixed("keyset")), Name: "vectors", Suite: protocol.SuiteTAE1, N: n, T: th,
		Modes: protocol.ModesOf(protocol.ModeSealed), Limits: protocol.Limits{MaxBatch: 128, ObjectsLog2: 36}, Version: 1, Epoch: 1, Attempt: 1},
		keys: []ed25519.PrivateKey{nil}, attempts: []*Attempt{nil}}
	for i := 1; i <= n; i++ {
		g.keys = append(g.keys, ed25519.NewKeyFromSeed(fixed("node %d", i)))
		g.terms.Members = append(g.terms.Members, [32]byte(g.keys[i].Public().(ed25519.PublicKey)))
	}
	proposal := Propose(g.terms, 1, g.keys[1])
	for i := 1; i <= n; i++ {
		a, err := Start(proposal, i, g.keys[i], secret.New(fixed("contribution seed %d", i)))
		if err != nil {
			t.Fatal(err)
		}
		g.attempts = append(g.attempts, a)
	}
	return g
}

func makeVector(t *testing.T, n, th int) keygenVector {
	g := fixedGroup(t, n, th)
	v := keygenVector{N: n, T: th, Terms: hex.EncodeToString(g.terms.Append(nil)), Contributions: map[string]string{}, Reveals: map[string]string{},
		Keys: map[string]string{}, Statements: map[string][]string{}}
	g.toChecks(t)
	tr, _ := g.attempts[1].Transcript()
	v.Transcript = hex.EncodeToString(tr[:])
	layout := g.terms.Layout()
	for i := 1; i <= n; i++ {
		v.NodeSeeds = append(v.NodeSeeds, hex.EncodeToString(g.keys[i].Seed()))
		v.Seeds = append(v.Seeds, hex.EncodeToString(g.attempts[i].seed.Expose()))
		for k, key := range layout.HeldBy(i) {
			set := layout.Set(key).String()
			v.Contributions[fmt.Sprint(i, " ", set)] = hex.EncodeToString(g.attempts[i].contribution(key).Expose())
			v.Keys[set] = hex.EncodeToString(g.attempts[i].keys[k].Expose())
		}
		for j := 1; j <= n; j++ {
			if i != j {
				r, err := g.attempts[i].Reveal(j, tr)
				if err != nil {
					t.Fatal(err)
				}
				v.Reveals[fmt.Sprint(i, " ", j)] = hex.EncodeToString(r.Expose())
			}
		}
	}
	if err := g.run(3); err != nil {
		t.Fatal(err)
	}
	g.checkComplete(t)
	for _, s := range g.attempts[1].Statements() {
		v.Statements[s.Kind.String()] = append(v.Statements[s.Kind.String()], hex.EncodeToString(s.Append(nil)))
	}
	v.Certificate = hex.EncodeToString(g.attempts[1].Certificate().Append(nil))
	other := fixedGroup(t, n, th)
	if err := other.attempts[1].Abandon(); err != nil {
		t.Fatal(err)
	}
	v.Abandon = hex.EncodeToString(other.attempts[1].statements[Abandon][1].Append(nil))
	return v
}

// refH and what follows are the formulas of docs/spec.md section 10 written again
// from its text.
func refH(label string, fields ...[]byte) []byte {
	h := sha256.Sum256(slices.Concat([]byte{byte(len(label))}, []byte(label), bytes.Join(fields, nil)))
	return h[:]
}

func u64(v uint64) []byte    { return binary.BigEndian.AppendUint64(nil, v) }
func u32(v int) []byte       { return binary.BigEndian.AppendUint32(nil, uint32(v)) }
func refVar(b []byte) []byte { return append(u64(uint64(len(b))), b...) }

func refSign(seed []byte, label string, digest []byte) []byte {
	return ed25519.Sign(ed25519.NewKeyFromSeed(seed), slices.Concat([]byte{byte(len(label))}, []byte(label), digest))
}

// refWords lists the sets D as words, in lexicographic order of their members.
func refWords(n, t int) (words []uint64) {
	var grow func(size int, word uint64, from int)
	grow = func(size int, word uint64, from int) {
		if size == n-t+1 {
			words = append(words, word)
			return
		}
		for i := from; i <= n; i++ {
			grow(size+1, word|1<<(i-1), i+1)
		}
	}
	grow(0, 0, 1)
	return words
}

func TestVectorsKeygen(t *testing.T) {
	made := keygenFile{Format: 1, Suite: "TAE1"}
	for _, p := range [][2]int{{2, 2}, {3, 2}, {4, 3}} {
		made.Vectors = append(made.Vectors, makeVector(t, p[0], p[1]))
	}
	b, err := json.MarshalIndent(made, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	if *update {
		if err := os.WriteFile(vectorPath, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(vectorPath)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, b) {
		t.Error("the code makes other vectors than are stored: the format changed")
	}
	var f keygenFile
	if err := json.Unmarshal(have, &f); err != nil || f.Format != 1 || len(f.Vectors) == 0 {
		t.Fatalf("%d vectors of format %d: %v", len(f.Vectors), f.Format, err)
	}
	for _, v := range f.Vectors {
		checkVector(t, &v)
	}
}

// checkVector recomputes a stored key generation with the second implementation.
func checkVector(t *testing.T, v *keygenVector) {
	t.Helper()
	un := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	terms := un(v.Terms)
	digest := refH("tae/v1/terms", refVar(terms))
	where := slices.Concat(terms[:16], []byte{0, 1, 0, 1}) // keyset, epoch, attempt
	statement := func(kind, sender int, payload []byte) (digestOf, whole []byte) {
		d := refH("tae/v1/keygen/statement", []byte{byte(kind), byte(sender)}, where, digest, refVar(payload))
		return d, slices.Concat([]byte{byte(kind), byte(sender)}, where, digest, u32(len(payload)), payload, refSign(un(v.NodeSeeds[sender-1]), "tae/v1/keygen/statement", d))
	}
	want := map[string][]string{}
	add := func(kind string, whole []byte) { want[kind] = append(want[kind], hex.EncodeToString(whole)) }
	_, proposal := statement(1, 1, terms)
	add("proposal", proposal)
	words := refWords(v.N, v.T)
	contribution := func(i int, d uint64) []byte {
		return refH("tae/v1/keygen/contribution", un(v.Seeds[i-1]), where, u64(d))
	}
	has := func(d uint64, i int) bool { return d>>(i-1)&1 == 1 }
	var transcript [][]byte
	for i := 1; i <= v.N; i++ {
		var payload []byte
		for _, d := range words {
			if has(d, i) {
				payload = append(payload, refH("tae/v1/keygen/commit", where, digest, u64(d), []byte{byte(i)}, contribution(i, d))...)
			}
		}
		dg, whole := statement(2, i, payload)
		transcript = append(transcript, dg)
		add("commit", whole)
	}
	tr := refH("tae/v1/keygen/transcript", transcript...)
	if v.Transcript != hex.EncodeToString(tr) {
		t.Error("transcript")
	}
	var checks []byte
	check := map[uint64][]byte{}
	for _, d := range words {
		var parts []byte
		var members []int
		for i := 1; i <= v.N; i++ {
			if has(d, i) {
				parts, members = append(parts, contribution(i, d)...), append(members, i)
			}
		}
		key := refH("tae/v1/keygen/key", where, digest, u64(d), parts)
		check[d] = refH("tae/v1/keygen/key-check", where, digest, u64(d), key)
		checks = append(checks, check[d]...)
		if v.Keys[fmt.Sprint(members)] != hex.EncodeToString(key) {
			t.Errorf("key of %v", members)
		}
	}
	cd := refH("tae/v1/epoch-certificate", refVar(terms), u32(len(words)), checks)
	cert := slices.Concat([]byte("TAEC\x01"), terms, checks)
	for i := 1; i <= v.N; i++ {
		payload := tr
		for _, d := range words {
			if has(d, i) {
				payload = append(bytes.Clone(payload), check[d]...)
			}
		}
		_, whole := statement(3, i, payload)
		add("check", whole)
		s := refSign(un(v.NodeSeeds[i-1]), "tae/v1/epoch-certificate", cd)
		cert = append(cert, s...)
		_, whole = statement(4, i, s)
		add("certify", whole)
		for j := 1; j <= v.N; j++ {
			var body []byte
			for _, d := range words {
				if i != j && has(d, i) && has(d, j) {
					body = slices.Concat(body, u64(d), contribution(i, d))
				}
			}
			d := refH("tae/v1/keygen/reveal", []byte{byte(i), byte(j)}, where, digest, refVar(body))
			reveal := append(body, refSign(un(v.NodeSeeds[i-1]), "tae/v1/keygen/reveal", d)...)
			if i != j && v.Reveals[fmt.Sprint(i, " ", j)] != hex.EncodeToString(reveal) {
				t.Errorf("reveal of %d to %d", i, j)
			}
		}
	}
	_, abandon := statement(5, 1, nil)
	if v.Abandon != hex.EncodeToString(abandon) || v.Certificate != hex.EncodeToString(cert) {
		t.Error("certificate or abandon statement")
	}
	for kind, list := range want {
		if !slices.Equal(v.Statements[kind], list) {
			t.Errorf("%s statements", kind)
		}
	}
}
