package protocol

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	mrand "math/rand/v2"
	"slices"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/gtank/ristretto255"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/sig"
	"github.com/seed-a893640b/tae/sig/bls"
)

// statement3 is a right statement of node 1 about some identities.
func (c *cluster3) statement3(op int, ids ...[]byte) *ref3Statement {
	s := &ref3Statement{op: op, keyset: c.cert.Keyset[:], suite: 3, epoch: 1, generation: int(c.cert.Generation), node: 1,
		public: ref3Base(c.own(1)).Encode(nil)}
	for i, id := range ids {
		s.ids, s.positions = append(s.ids, id), append(s.positions, i)
		s.values = append(s.values, c.value(1, id).Encode(nil))
	}
	return s
}

// accepted is the real verifier's word on it.
func (s *ref3Statement) accepted(proof []byte) bool {
	st := &dprf.Statement{Operation: uint8(s.op), Keyset: [16]byte(s.keyset), Suite: uint8(s.suite), Epoch: uint16(s.epoch),
		Generation: uint32(s.generation), Node: uint8(s.node), Public: [32]byte(s.public)}
	var ids [][32]byte
	for i := range s.ids {
		ids = append(ids, [32]byte(s.ids[i]))
		st.Values = append(st.Values, [32]byte(s.values[i]))
		st.Positions = append(st.Positions, uint16(s.positions[i]))
	}
	st.Inputs = dprf.NewInputs(ids)
	_, ok := st.Verify(proof)
	return ok
}

// A broken generator repeats its randomness. Nonces that hash share and statement still
// differ; with nonces of the randomness alone two answers give the share away.
func TestGame3NonceReuse(t *testing.T) {
	c := fixedCluster3(t, 3, 2, "nonce")
	system := make([]byte, 32)
	a, b := c.statement3(1, fixed("x")), c.statement3(1, fixed("x2"))
	share := func(p, q []byte) *big.Int {
		num := new(big.Int).Sub(ref3Int(q[32:]), ref3Int(p[32:]))
		den := new(big.Int).Sub(ref3Int(p[:32]), ref3Int(q[:32]))
		num.Mul(num, den.ModInverse(den.Mod(den, ref3Q), ref3Q))
		return num.Mod(num, ref3Q)
	}
	p, q := a.prove(ref3Rules{}, c.own(1), system), b.prove(ref3Rules{}, c.own(1), system)
	if !a.accepted(p) || !b.accepted(q) {
		t.Fatal("proofs of the second implementation are refused")
	}
	if share(p, q).Cmp(c.own(1)) == 0 {
		t.Error("two answers give the share")
	}
	if !bytes.Equal(p, a.prove(ref3Rules{}, c.own(1), system)) {
		t.Error("the nonce has other inputs than share, randomness and statement")
	}
	off := ref3Rules{plainNonce: true}
	if share(a.prove(off, c.own(1), system), b.prove(off, c.own(1), system)).Cmp(c.own(1)) != 0 {
		t.Error("control")
	}
	// A node's own proofs of one statement differ: its randomness is in them.
	st := &dprf.Statement{Inputs: dprf.NewInputs([][32]byte{{1}}), Positions: []uint16{0}}
	s := c.epoch(1).TAE3.Share
	st.Values, st.Public = s.Evaluate(st.Inputs), s.PublicShare()
	if one, two := s.Prove(st), s.Prove(st); one == two {
		t.Error("the system's randomness is not in the nonce")
	}
}

// A proof belongs to one statement, of one item too.
func TestGame3OneProof(t *testing.T) {
	c := fixedCluster3(t, 3, 2, "one proof")
	for _, ids := range [][][]byte{{fixed("x")}, {fixed("x"), fixed("y")}} {
		s := c.statement3(1, ids...)
		proof := s.prove(ref3Rules{}, c.own(1), fixed("system"))
		weak := s.prove(ref3Rules{noSeed: true}, c.own(1), fixed("system"))
		if !s.accepted(proof) {
			t.Fatal("a right proof is refused")
		}
		for what, change := range map[string]func(s *ref3Statement){
			"operation":  func(s *ref3Statement) { s.op = 2 },
			"keyset":     func(s *ref3Statement) { s.keyset = fixed("other")[:16] },
			"suite":      func(s *ref3Statement) { s.suite = 4 },
			"epoch":      func(s *ref3Statement) { s.epoch = 2 },
			"generation": func(s *ref3Statement) { s.generation = 2 },
			"node":       func(s *ref3Statement) { s.node = 2 },
			"position":   func(s *ref3Statement) { s.positions = append([]int{7}, s.positions[1:]...) },
		} {
			o := *s
			change(&o)
			if o.accepted(proof) {
				t.Errorf("%d items: the proof serves another %s", len(ids), what)
			}
			if len(ids) == 1 && !o.verify(ref3Rules{noSeed: true}, weak) {
				t.Errorf("control: without the seed in the challenge another %s is told", what)
			}
		}
		for i := range proof {
			bad := bytes.Clone(proof)
			bad[i] ^= 1
			if s.accepted(bad) {
				t.Errorf("byte %d of the proof", i)
			}
		}
	}
}

// Two wrong values that cancel are found; with equal weights they are not.
func TestGame3Cancelling(t *testing.T) {
	c := fixedCluster3(t, 3, 2, "cancel")
	s := c.statement3(1, fixed("x"), fixed("y"))
	e := ref3Base(big.NewInt(99))
	minus := ristretto255.NewElement().Negate(e)
	s.values[0] = ref3Sum(ref3Point(s.values[0]), e).Encode(nil)
	s.values[1] = ref3Sum(ref3Point(s.values[1]), minus).Encode(nil)
	if s.accepted(s.prove(ref3Rules{}, c.own(1), fixed("system"))) {
		t.Error("wrong values cancel")
	}
	off := ref3Rules{equal: true}
	if !s.verify(off, s.prove(off, c.own(1), fixed("system"))) {
		t.Error("control")
	}
}

// A toy group of order 2^40-87 in which elements are their logarithms; attacks use only
// multiples that the liar itself chose.
const toyQ = 1<<40 - 87

func toyMul(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a%toyQ, b%toyQ)
	_, r := bits.Div64(hi, lo, toyQ)
	return r
}

// toyPerItem is the coefficient of an item as RFC 9497 has it: of number, input and
// value of the item, and of the node's key, which is fixed.
func toyPerItem(item int, value uint64) uint64 {
	h := refH("toy", refU64(uint64(item)), refU64(value))
	return binary.BigEndian.Uint64(h[:]) % toyQ
}

// toySeeded has all values hashed before any coefficient.
func toySeeded(values []uint64) []uint64 {
	var all []byte
	for _, v := range values {
		all = append(all, refU64(v)...)
	}
	seed := refH("toy seed", all)
	out := []uint64{1}
	for i := 1; i < len(values); i++ {
		h := refH("toy weight", seed[:], refU32(i))
		out = append(out, binary.BigEndian.Uint64(h[:])%toyQ)
	}
	return out
}

// toyPasses verifies composites: the sum of coefficients times errors is zero.
func toyPasses(coefficients, errs []uint64) bool {
	var sum uint64
	for i := range errs {
		sum = (sum + toyMul(coefficients[i], errs[i])) % toyQ
	}
	return sum == 0
}

// A liar looks for a batch of four wrong values whose errors cancel, by Wagner's
// algorithm: lists of errors per item, merged so that sums are short, then a collision.
func TestGame3BatchForgery(t *testing.T) {
	right := []uint64{11, 22, 33, 44} // the right values; an error is added to each
	values := func(errs []uint64) (v []uint64) {
		for i, e := range errs {
			v = append(v, (right[i]+e)%toyQ)
		}
		return v
	}
	type entry struct{ sum, a, b uint64 }
	const size, short = 1 << 14, toyQ >> 13
	// pairs are the errors of two items whose sum, times coefficients, is short. Those of
	// the second half are subtracted.
	pairs := func(i, j int, minus bool) (out []entry) {
		list := func(item int) (l []entry) {
			for e := uint64(1); e <= size; e++ {
				v := right[item] + e
				if minus {
					v = right[item] + toyQ - e
				}
				l = append(l, entry{toyMul(toyPerItem(item, v%toyQ), e), e, 0})
			}
			return l
		}
		byBucket := map[uint64][]entry{}
		for _, y := range list(j) {
			byBucket[y.sum/short] = append(byBucket[y.sum/short], y)
		}
		for _, x := range list(i) {
			want := (toyQ - x.sum) % toyQ
			for _, bucket := range []uint64{want / short, want/short + 1} {
				for _, y := range byBucket[bucket] {
					if s := (x.sum + y.sum) % toyQ; s < short {
						out = append(out, entry{s, x.a, y.a})
					}
				}
			}
		}
		return out
	}
	second := map[uint64]entry{}
	for _, y := range pairs(2, 3, true) {
		second[y.sum] = y
	}
	var errs []uint64
	for _, x := range pairs(0, 1, false) {
		if y, ok := second[x.sum]; ok {
			errs = []uint64{x.a, x.b, toyQ - y.a, toyQ - y.b}
			break
		}
	}
	if errs == nil {
		t.Fatal("control: no forgery found")
	}
	var per []uint64
	for i, v := range values(errs) {
		per = append(per, toyPerItem(i, v))
	}
	if !toyPasses(per, errs) {
		t.Error("control: the forgery does not pass with coefficients per item")
	}
	if toyPasses(toySeeded(values(errs)), errs) {
		t.Error("the forgery passes with seeded coefficients")
	}
	// With seeded coefficients as many tries as the search took find nothing.
	r := mrand.New(mrand.NewPCG(1, 2))
	for range 1 << 16 {
		errs := []uint64{1 + r.Uint64N(toyQ-1), 1 + r.Uint64N(toyQ-1), 1 + r.Uint64N(toyQ-1), 1 + r.Uint64N(toyQ-1)}
		if toyPasses(toySeeded(values(errs)), errs) {
			t.Fatal("a forgery by chance")
		}
	}
}

// Equal items are refused, and answers are for one generation.
func TestGame3Duplicates(t *testing.T) {
	c := fixedCluster3(t, 3, 2, "duplicates")
	for _, at := range [][2]int{{0, 1}, {0, 2}, {1, 2}} {
		e := encryptMessages(c.cert, c.author, []Message{{}, {}, {}}, fixed32("b"), fixed32("seed"))
		e.items[at[1]] = e.items[at[0]]
		r, _ := e.VerifiedRound(0)
		for node := 1; node <= 3; node++ {
			if code := codeOf(c.servers[node].Handle(c.caller(), r.Request(node))); code != CodeMalformed {
				t.Errorf("items %v are the same: %v", at, code)
			}
		}
	}
	// Control: with weights known in advance a liar chooses errors that add up to nothing.
	s := c.statement3(1, fixed("x"), fixed("x"))
	w := big.NewInt(5) // of the second item; the first has 1
	s.values[0] = ref3Sum(ref3Point(s.values[0]), ref3Base(new(big.Int).Neg(w))).Encode(nil)
	s.values[1] = ref3Sum(ref3Point(s.values[1]), ref3Base(big.NewInt(1))).Encode(nil)
	if ref3Sum(ref3Point(s.values[0]), ref3Mul(w, ref3Point(s.values[1]))).Equal(ref3Mul(big.NewInt(6), c.value(1, fixed("x")))) != 1 {
		t.Error("control")
	}
	if s.accepted(s.prove(ref3Rules{}, c.own(1), fixed("system"))) {
		t.Error("errors chosen for weights 1 and 5 pass")
	}
	// Another generation of the same keys: nodes refuse its requests, a client its answers.
	next := c.twin3(t, func(cert *Certificate) { cert.Generation = 2 })
	e := encryptMessages(c.cert, c.author, []Message{{}}, fixed32("b"), fixed32("seed"))
	r, _ := e.VerifiedRound(dprf.SetOf(1))
	if code := codeOf(next.servers[1].Handle(c.caller(), r.Request(1))); code != CodeGeneration {
		t.Errorf("got %v", code)
	}
	e2 := encryptMessages(next.cert, c.author, []Message{{}}, fixed32("b"), fixed32("seed"))
	r2, _ := e2.VerifiedRound(dprf.SetOf(1))
	if err := r.Add(1, next.servers[1].Handle(c.caller(), r2.Request(1))); !errors.Is(err, ErrProof) {
		t.Errorf("an answer of another generation: %v", err)
	}
}

// answerBytes writes an answer as its node would, signed by key.
func (a *answer3) answerBytes(key ed25519.PrivateKey) []byte {
	s := sig.Sign(key, labelAnswer, a.digest())
	out := []byte{wireVersion, byte(CodeOK)}
	for i := range a.values {
		out = append(out, a.values[i][:]...)
	}
	return append(append(append(out, a.proof[:]...), a.partial[:]...), s[:]...)
}

// lies3 are the lies of a node in an encrypt answer; signed ones carry its signature.
func (c *cluster3) lies3() map[string]func(a *answer3) {
	e := ref3Base(big.NewInt(7))
	return map[string]func(a *answer3){
		"wrong value": func(a *answer3) {
			a.values[0] = [32]byte(ref3Sum(ref3Point(a.values[0][:]), e).Encode(nil))
		},
		"identity element": func(a *answer3) { a.values[0] = [32]byte{} },
		"no element":       func(a *answer3) { a.values[0] = [32]byte(bytes.Repeat([]byte{0xff}, 32)) },
		"values swapped":   func(a *answer3) { a.values[0], a.values[1] = a.values[1], a.values[0] },
		"cancelling": func(a *answer3) {
			a.values[0] = [32]byte(ref3Sum(ref3Point(a.values[0][:]), e).Encode(nil))
			a.values[1] = [32]byte(ref3Sum(ref3Point(a.values[1][:]), ristretto255.NewElement().Negate(e)).Encode(nil))
		},
		"another node's share": func(a *answer3) {
			a.values[0] = [32]byte(c.value(a.node%c.cert.N+1, a.ids[0][:]).Encode(nil))
		},
		"zero proof":       func(a *answer3) { a.proof = [64]byte{} },
		"scalar too large": func(a *answer3) { a.proof = [64]byte(bytes.Repeat([]byte{0xff}, 64)) },
		"zero partial":     func(a *answer3) { a.partial = [48]byte{} },
		"identity partial": func(a *answer3) { a.partial = [48]byte{0xc0} },
		"another node's partial": func(a *answer3) {
			m := batchMessage(c.cert.Keyset, SuiteTAE3, 1, len(a.ids), &a.root)
			a.partial = [48]byte(ref3Sign(c.sigShare(a.node%c.cert.N+1), m))
		},
		"partial on another message": func(a *answer3) { a.partial = [48]byte(ref3Sign(c.sigShare(a.node), []byte("m"))) },
		"partial outside the subgroup": func(a *answer3) {
			p := outside()
			a.partial = [48]byte(p.Bytes())
		},
	}
}

// outside is a point of the curve of G1 that is not in the subgroup.
func outside() (p bls12381.G1Affine) {
	for x := uint64(1); ; x++ {
		p.X.SetUint64(x)
		var y2, four fp.Element
		four.SetUint64(4)
		y2.Square(&p.X).Mul(&y2, &p.X).Add(&y2, &four)
		if p.Y.Sqrt(&y2) != nil && !p.IsInSubGroup() {
			return p
		}
	}
}

// t-1 nodes lie at once, each in another way and first to answer. The operation
// succeeds, exactly the liars are named, and signed lies convict. Control: without
// proofs a decryption only fails.
func TestGame3Liars(t *testing.T) {
	c := fixedCluster3(t, 5, 3, "liars")
	names := []string{}
	lies := c.lies3()
	for name := range lies {
		names = append(names, name)
	}
	slices.Sort(names)
	for k, name := range names {
		kinds := map[int]string{1 + k%5: name, 1 + (k+2)%5: names[(k+3)%len(names)]}
		e := encryptMessages(c.cert, c.author, []Message{{Plaintext: []byte("a")}, {Plaintext: []byte("b")}}, fixed32("b %d", k), fixed32("seed %d", k))
		r, _ := e.VerifiedRound(0)
		named := map[int]error{}
		var order []int
		for node := range kinds {
			order = append(order, node)
		}
		for node := 1; node <= 5; node++ {
			if kinds[node] == "" {
				order = append(order, node)
			}
		}
		for _, node := range order {
			if r.Done() {
				break
			}
			r.Extend(dprf.SetOf(node))
			req := r.Request(node)
			answer := c.servers[node].Handle(c.caller(), req)
			if kinds[node] != "" {
				a := &answer3{cert: c.cert, op: OpEncrypt, node: node, request: requestHash(req), root: r.root}
				for i := range e.items {
					a.positions, a.ids = append(a.positions, uint16(i)), append(a.ids, e.items[i].x)
					a.values = append(a.values, [32]byte(answer[2+32*i:]))
				}
				a.proof, a.partial = [64]byte(answer[66:]), [48]byte(answer[130:])
				lies[kinds[node]](a)
				answer = a.answerBytes(c.private[node-1])
			}
			if err := r.Add(node, answer); err != nil {
				named[node] = err
			}
			for node, err := range r.Lies() {
				named[node] = err
			}
		}
		if !r.Done() || len(named) != len(kinds) {
			t.Errorf("%v: done %v, named %v", kinds, r.Done(), named)
			continue
		}
		for node, kind := range kinds {
			var l *LieError
			if !errors.As(named[node], &l) || l.Evidence == nil || l.Evidence.Node() != node {
				t.Errorf("%s of node %d: %v", kind, node, named[node])
			} else if _, err := l.Evidence.Verify(c.cert.Members); err != nil {
				t.Errorf("%s of node %d: %v", kind, node, err)
			}
		}
		for i, object := range e.Objects() {
			if m, _, err := ref3Open(refRules{}, c.cert.SigPoly[0][:], c.y(e.items[i].x[:]), object, nil); err != nil || m[0] != "ab"[i] {
				t.Errorf("%v: object %d: %v", kinds, i, err)
			}
		}
	}
	// Decrypting.
	_, objects := c.make3(t, fixed32("b d"), fixed32("seed d"), Message{Plaintext: []byte("m")})
	decryptLies := map[string]func(body []byte){
		"wrong value":  func(b []byte) { copy(b[3:], ref3Base(big.NewInt(3)).Encode(nil)) },
		"identity":     func(b []byte) { clear(b[3:35]) },
		"no element":   func(b []byte) { b[34] = 0xff },
		"refuses":      func(b []byte) { b[2] = byte(CodeBadProof); clear(b[3:35]) },
		"unknown code": func(b []byte) { b[2] = 9 },
	}
	for what, lie := range decryptLies {
		l := func(node int, _ Op, answer []byte) []byte {
			if node == 4 || node == 2 {
				answer = bytes.Clone(answer)
				lie(answer)
			}
			return answer
		}
		m, named, err := c.decrypt3(t, []int{4, 2, 1, 3, 5}, true, l, objects[0], nil)
		if err != nil || string(m) != "m" || named[1] != nil || named[3] != nil || named[5] != nil {
			t.Errorf("%s: %v %v", what, named, err)
		}
		if (named[4] == nil || named[2] == nil) && what != "refuses" {
			t.Errorf("%s: %v", what, named)
		}
		if what == "wrong value" { // control
			if _, named, err := c.decrypt3(t, []int{4, 2, 1, 3, 5}, false, l, objects[0], nil); err == nil || len(named) > 0 {
				t.Error("control: without proofs a liar is named")
			}
		}
	}
}

// A client collects what an honest node signs, for every request it can think of, and
// puts the parts together as evidence. None convicts. Control: a node that signed
// identities or positions as the client names them.
func TestGame3LyingClient(t *testing.T) {
	c := fixedCluster3(t, 3, 2, "client")
	e, objects := c.make3(t, fixed32("b c"), fixed32("seed c"), Message{}, Message{}, Message{})
	var signed []answer3
	r, _ := e.VerifiedRound(dprf.SetOf(1))
	a, _, err := r.open(1, c.servers[1].Handle(c.caller(), r.Request(1)))
	if err != nil {
		t.Fatal(err)
	}
	signed = append(signed, *a)
	alone := encryptMessages(c.cert, c.author, []Message{{}}, fixed32("b alone"), fixed32("seed alone"))
	ra, _ := alone.VerifiedRound(dprf.SetOf(1))
	if a, _, err = ra.open(1, c.servers[1].Handle(c.caller(), ra.Request(1))); err != nil {
		t.Fatal(err)
	}
	signed = append(signed, *a)
	var headers []*Header
	for _, object := range objects {
		h, _, _ := ParseHeader(object)
		headers = append(headers, h)
	}
	bad := *headers[1]
	bad.Proof = bytes.Clone(bad.Proof)
	bad.Proof[60] ^= 1
	for _, list := range [][]*Header{{headers[0]}, {headers[0], headers[0]}, {headers[2], headers[0]}, {headers[0], &bad, headers[2]}, {&bad}} {
		d, _ := NewDecryption(c.cert, list)
		rd, _ := d.VerifiedRound(dprf.SetOf(1), true)
		answer := c.servers[1].Handle(c.caller(), rd.Request())
		if _, err := rd.open(1, answer); err != nil {
			t.Fatalf("an honest answer is refused: %v", err)
		}
		o := answer3{cert: c.cert, op: OpDecrypt, node: 1, request: requestHash(rd.Request())}
		body := answer[2:]
		for i, code := range body[:len(list)] {
			if code == 0 {
				o.positions, o.ids = append(o.positions, uint16(i)), append(o.ids, list[i].ID())
				o.values = append(o.values, [32]byte(body[len(list)+32*i:]))
			}
		}
		o.proof, o.signature = [64]byte(body[33*len(list):]), [64]byte(body[33*len(list)+64:])
		signed = append(signed, o)
	}
	judge := func(what string, a answer3) {
		bundle := (&Evidence{a}).Append(nil)
		if p, err := ParseEvidence(bundle); err == nil {
			if lie, err := p.Verify(c.cert.Members); err == nil {
				t.Errorf("%s convicts the honest node %d: %s", what, p.Node(), lie)
			}
		}
	}
	otherEpoch := c.twin3(t, func(cert *Certificate) { cert.Epoch = 2 })
	otherGeneration := c.twin3(t, func(cert *Certificate) { cert.Generation = 2 })
	for i := range signed {
		judge("its answer", signed[i])
		for j := range signed {
			if testing.Short() && j != (i+1)%len(signed) {
				continue
			}
			for what, change := range map[string]func(a, o *answer3){
				"signature":  func(a, o *answer3) { a.signature = o.signature },
				"proof":      func(a, o *answer3) { a.proof = o.proof },
				"partial":    func(a, o *answer3) { a.partial = o.partial },
				"root":       func(a, o *answer3) { a.root = o.root },
				"request":    func(a, o *answer3) { a.request = o.request },
				"items":      func(a, o *answer3) { a.ids, a.values, a.positions = o.ids, o.values, o.positions },
				"identities": func(a, o *answer3) { a.ids = slices.Clone(a.ids); copy(a.ids, o.ids) },
				"values":     func(a, o *answer3) { a.values = slices.Clone(a.values); copy(a.values, o.values) },
				"positions":  func(a, o *answer3) { a.positions = slices.Clone(a.positions); slices.Reverse(a.positions) },
				"operation":  func(a, o *answer3) { a.op = 3 - a.op },
				"node":       func(a, o *answer3) { a.node = 2 },
				"one item": func(a, o *answer3) {
					k := len(a.ids) / 2
					a.ids, a.values, a.positions = a.ids[:k], a.values[:k], a.positions[:k]
				},
				"epoch":      func(a, o *answer3) { a.cert = otherEpoch.cert },
				"generation": func(a, o *answer3) { a.cert = otherGeneration.cert },
			} {
				m := signed[i]
				change(&m, &signed[j])
				judge("another "+what, m)
			}
		}
	}
	// Control: the node signs what the client says of the request.
	weak := signed[0]
	weak.positions = []uint16{2, 1, 0}
	weak.signature = sig.Sign(c.private[0], labelAnswer, weak.digest())
	if _, err := (&Evidence{weak}).Verify(c.cert.Members); err != nil {
		t.Error("control: positions of the client:", err)
	}
	weak = signed[0]
	weak.ids = slices.Clone(weak.ids)
	weak.ids[0] = [32]byte(random(32))
	weak.signature = sig.Sign(c.private[0], labelAnswer, weak.digest())
	if _, err := (&Evidence{weak}).Verify(c.cert.Members); err != nil {
		t.Error("control: identities of the client:", err)
	}
}

// A member withholds its signature until all members have abandoned an attempt, and then
// completes that attempt's certificate for itself: the same keyset, epoch and members,
// other keys. What honest nodes sign under the next attempt does not verify under it.
func TestGame3AbandonedAttempt(t *testing.T) {
	c := fixedCluster3(t, 3, 2, "attempts").twin3(t, func(cert *Certificate) { cert.Attempt = 2 })
	abandoned := fixedCluster3(t, 3, 2, "other keys")
	first := func(attempt uint16) *Certificate {
		return abandoned.twin3(t, func(cert *Certificate) { cert.Keyset, cert.Attempt = c.cert.Keyset, attempt }).cert
	}
	e := encryptMessages(c.cert, c.author, []Message{{}}, fixed32("b"), fixed32("seed"))
	r, _ := e.VerifiedRound(dprf.SetOf(1))
	a, _, err := r.open(1, c.servers[1].Handle(c.caller(), r.Request(1)))
	if err != nil {
		t.Fatal(err)
	}
	framed := *a
	framed.cert = first(1)
	if lie, err := (&Evidence{framed}).Verify(c.cert.Members); err == nil {
		t.Errorf("the certificate of an abandoned attempt convicts: %s", lie)
	}
	framed.cert = first(2) // control: as if the attempt were not signed
	if _, err := (&Evidence{framed}).Verify(c.cert.Members); err != nil {
		t.Error("control:", err)
	}
}

// signedLie is evidence of a lie of one kind by a node.
func (c *cluster3) signedLie(t testing.TB, node int, name string) (*Evidence, *Encryption) {
	t.Helper()
	e := encryptMessages(c.cert, c.author, []Message{{Plaintext: []byte("a")}, {Plaintext: []byte("b")}}, fixed32("b lie"), fixed32("seed lie"))
	r, _ := e.VerifiedRound(dprf.SetOf(node))
	req := r.Request(node)
	answer := c.servers[node].Handle(c.caller(), req)
	a := &answer3{cert: c.cert, op: OpEncrypt, node: node, request: requestHash(req), root: r.root}
	for i := range e.items {
		a.positions, a.ids = append(a.positions, uint16(i)), append(a.ids, e.items[i].x)
		a.values = append(a.values, [32]byte(answer[2+32*i:]))
	}
	s := c.statement3(1, e.items[0].x[:], e.items[1].x[:])
	s.node, s.public = node, ref3Base(c.own(node)).Encode(nil)
	s.values = [][]byte{a.values[0][:], a.values[1][:]}
	a.proof = [64]byte(s.prove(ref3Rules{}, c.own(node), fixed("system")))
	a.partial = [48]byte(ref3Sign(c.sigShare(node), batchMessage(c.cert.Keyset, SuiteTAE3, 1, 2, &a.root)))
	c.lies3()[name](a)
	a.signature = sig.Sign(c.private[node-1], labelAnswer, a.digest())
	return &Evidence{*a}, e
}

// Every byte of evidence counts, and it convicts under the reader's own configuration
// only.
func TestGame3Evidence(t *testing.T) {
	c := fixedCluster3(t, 3, 2, "evidence")
	for k, name := range []string{"wrong value", "zero proof", "partial on another message"} {
		ev, _ := c.signedLie(t, 2, name)
		b := ev.Append(nil)
		p, err := ParseEvidence(b)
		if err != nil || !bytes.Equal(p.Append(nil), b) {
			t.Fatal(name, err)
		}
		if _, err := p.Verify(c.cert.Members); err != nil || p.Node() != 2 {
			t.Fatalf("%s: %v", name, err)
		}
		step := 1
		if k > 0 || testing.Short() {
			step = 7
		}
		for i := 0; i < len(b); i += step {
			bad := bytes.Clone(b)
			bad[i] ^= 1 << (i % 8)
			if p, err := ParseEvidence(bad); err == nil {
				if _, err := p.Verify(c.cert.Members); err == nil {
					t.Errorf("%s: byte %d altered, and convicts node %d", name, i, p.Node())
				}
			}
		}
		for _, cut := range [][]byte{b[:len(b)-1], append(bytes.Clone(b), 0), b[1:], nil} {
			if _, err := ParseEvidence(cut); err == nil {
				t.Error("evidence of another length")
			}
		}
		others := slices.Clone(c.cert.Members)
		others[0] = [32]byte(ed25519.NewKeyFromSeed(fixed("mallory")).Public().(ed25519.PublicKey))
		if _, err := p.Verify(others); err == nil {
			t.Error("evidence of another cluster convicts")
		}
	}
	// Somebody makes a whole cluster with its own keys and has node 2 lie there.
	forged := *c
	forged.private = nil
	cert := *c.cert
	cert.Members = nil
	for i := range 3 {
		forged.private = append(forged.private, ed25519.NewKeyFromSeed(fixed("mallory %d", i)))
		cert.Members = append(cert.Members, [32]byte(forged.private[i].Public().(ed25519.PublicKey)))
	}
	ev, _ := forged.serve(t, &cert).signedLie(t, 2, "wrong value")
	if _, err := ev.Verify(c.cert.Members); err == nil {
		t.Error("forged evidence convicts")
	}
	if _, err := ev.Verify(ev.Certificate().Members); err != nil { // control: keys from the certificate
		t.Error("control:", err)
	}
}

// Evidence against t-1 liars that give right values with wrong proofs holds t-1 values
// of an identity, and nothing that was secret in the request.
func TestGame3Bundles(t *testing.T) {
	c := fixedCluster3(t, 5, 3, "bundles")
	_, objects := c.make3(t, fixed32("b lie"), fixed32("seed lie"), Message{Plaintext: []byte("a")}, Message{Plaintext: []byte("b")})
	var values []*ristretto255.Element
	var nodes []int
	for _, node := range []int{2, 4} {
		ev, e := c.signedLie(t, node, "zero proof")
		b := ev.Append(nil)
		for i := range e.open.secrets {
			if bytes.Contains(b, e.open.secrets[i][:]) || bytes.Contains(b, e.open.commitments[i][:]) {
				t.Error("evidence holds openings")
			}
		}
		for i := range e.items {
			m := e.points[i].Encode(nil)
			if bytes.Contains(b, e.items[i].w[:]) || bytes.Contains(b, m) || bytes.Contains(b, e.rhos[i][:]) || bytes.Contains(b, c.y(e.items[i].x[:]).Encode(nil)) {
				t.Error("evidence holds secrets of the item")
			}
		}
		for other := 1; other <= 5; other++ {
			if other != node && bytes.Contains(b, c.value(other, e.items[0].x[:]).Encode(nil)) {
				t.Error("evidence holds another node's value")
			}
		}
		a := ev.answer
		nodes, values = append(nodes, node), append(values, ref3Point(a.values[0][:]))
	}
	if opens(objects[0], ref3Combine(5, nodes, values)) {
		t.Error("bundles decrypt")
	}
	h, _, _ := ParseHeader(objects[0])
	all := append(values, c.value(1, h.Source.X0[:]))
	if !opens(objects[0], ref3Combine(5, append(nodes, 1), all)) {
		t.Error("control: t values decrypt")
	}
}

// Points that are no keys or signatures, and certificates of them.
func TestGame3Points(t *testing.T) {
	identity := append([]byte{0xc0}, make([]byte, 47)...)
	out := outside()
	outsideBytes := out.Bytes()
	for what, b := range map[string][]byte{"identity": identity, "outside the subgroup": outsideBytes[:], "not compressed": append([]byte{0x40}, make([]byte, 47)...)} {
		if _, err := bls.ParseSignature(b); err == nil {
			t.Errorf("%s is a signature", what)
		}
	}
	// Control: under the identity as key the identity signs everything, and unchecked the
	// pairing accepts it.
	h, _ := bls12381.HashToG1([]byte("anything"), []byte(bls.DST))
	_, _, _, g := bls12381.Generators()
	var o1 bls12381.G1Affine
	var o2 bls12381.G2Affine
	if ok, err := bls12381.PairingCheck([]bls12381.G1Affine{o1, h}, []bls12381.G2Affine{g, o2}); err != nil || !ok {
		t.Error("control")
	}
	c := fixedCluster3(t, 3, 3, "points")
	identity2 := [96]byte{0xc0}
	for what, change := range map[string]func(cert *Certificate){
		"key identity":                  func(cert *Certificate) { cert.KeyPoly[0] = [32]byte{} },
		"signature key identity":        func(cert *Certificate) { cert.SigPoly[0] = identity2 },
		"highest coefficient":           func(cert *Certificate) { cert.KeyPoly[2] = [32]byte{} },
		"highest signature coefficient": func(cert *Certificate) { cert.SigPoly[2] = identity2 },
		"not canonical":                 func(cert *Certificate) { cert.KeyPoly[1][31] |= 0x80 },
		"no point":                      func(cert *Certificate) { cert.SigPoly[1][5] ^= 1 },
		"not compressed":                func(cert *Certificate) { cert.SigPoly[1][0] &^= 0x80 },
		"another length":                func(cert *Certificate) { cert.KeyPoly = cert.KeyPoly[:2] },
		"longer":                        func(cert *Certificate) { cert.SigPoly = append(cert.SigPoly, cert.SigPoly[0]) },
	} {
		cert := *c.cert
		cert.KeyPoly, cert.SigPoly, cert.public = slices.Clone(cert.KeyPoly), slices.Clone(cert.SigPoly), nil
		change(&cert)
		if cert.Prepare() == nil {
			t.Errorf("a certificate with %s is used", what)
		}
		if what == "another length" || what == "longer" {
			if _, err := ParseCertificate(cert.Append(nil)); err == nil {
				t.Errorf("a certificate with %s is parsed", what)
			}
		}
	}
	// A middle coefficient may be anything in the group, the identity too.
	cert := *c.cert
	cert.KeyPoly, cert.SigPoly, cert.public = slices.Clone(cert.KeyPoly), slices.Clone(cert.SigPoly), nil
	cert.KeyPoly[1], cert.SigPoly[1] = [32]byte{}, identity2
	if err := cert.Prepare(); err != nil {
		t.Error(err)
	}
	for node := 1; node <= 3; node++ {
		if _, err := cert.partialKey(node); err != nil {
			t.Error(err)
		}
	}
	// A rogue partial signature, chosen last so that the sum is what its maker likes.
	m := []byte("message")
	one, two := ref3Sign(c.sigShare(1), m), ref3Sign(c.sigShare(2), m)
	target := ref3Sign(big.NewInt(12345), m)
	var p1, p2, rogue bls12381.G1Affine
	_, err1 := p1.SetBytes(one)
	_, err2 := p2.SetBytes(two)
	_, err3 := rogue.SetBytes(target)
	if errors.Join(err1, err2, err3) != nil {
		t.Fatal("points")
	}
	order := bls12381.ID.ScalarField()
	l := func(i int) *big.Int { return ref3Lagrange([]int{1, 2, 3}, i, order) }
	p1.ScalarMultiplication(&p1, l(1))
	p2.ScalarMultiplication(&p2, l(2))
	rogue.Sub(&rogue, &p1)
	rogue.Sub(&rogue, &p2)
	rogue.ScalarMultiplication(&rogue, new(big.Int).ModInverse(l(3), order))
	b := rogue.Bytes()
	if !bytes.Equal(ref3CombineSignatures([]int{1, 2, 3}, [][]byte{one, two, b[:]}), target) {
		t.Fatal("the rogue partial does not steer the sum")
	}
	if ref3VerifySignature(c.cert.SigPoly[0][:], m, target) {
		t.Error("a steered sum verifies")
	}
	key, err := c.cert.partialKey(3)
	if err != nil {
		t.Fatal(err)
	}
	s, err := bls.ParseSignature(b[:])
	if err != nil || key.Verify(m, s) {
		t.Error("a rogue partial verifies:", err)
	}
	if _, err := bls.Combine([]int{1, 1}, []*bls.Signature{s, s}); err == nil {
		t.Error("a node twice")
	}
}

// Nothing that holds secrets prints them, under any verb.
func TestNothingSecretIsPrinted(t *testing.T) {
	c := fixedCluster3(t, 3, 2, "print")
	e, objects := c.make3(t, fixed32("b print"), fixed32("seed print"), Message{Plaintext: []byte("plaintext")})
	r, _ := e.VerifiedRound(dprf.SetOf(1, 2))
	answer := c.servers[1].Handle(c.caller(), r.Request(1))
	if err := r.Add(1, answer); err != nil {
		t.Fatal(err)
	}
	h, body, _ := ParseHeader(objects[0])
	d, _ := NewDecryption(c.cert, []*Header{h})
	rd, _ := d.VerifiedRound(dprf.SetOf(1, 2), false)
	if err := rd.Add(1, c.servers[1].Handle(c.caller(), rd.Request())); err != nil {
		t.Fatal(err)
	}
	o, _ := openedWith(h, c.y(h.Source.X0[:]))
	_, s := c.stream3(t, KindPipe, sequence(10), nil, fixed32("b s"), fixed32("seed s"))
	_, f := c.stream3(t, KindFile, sequence(10), nil, fixed32("b f"), fixed32("seed f"))
	ev, _ := c.signedLie(t, 2, "wrong value")
	one := newTestCluster(t, 3, 2)
	e1, _ := EncryptMessages(one.cert, one.author, []Message{{Plaintext: []byte("plaintext")}})
	r1, _ := e1.Round(one.all(), false)
	h1, _, _ := ParseHeader(one.encrypt(t, one.all(), false, Message{})[0])
	d1, _ := NewDecryption(one.cert, []*Header{h1})
	rd1, _ := d1.Round(one.all(), false)
	share := one.servers[1].keysets[one.cert.Keyset].Active.Share
	reader, _ := func() (*BodyReader, error) {
		object, _ := c.stream3(t, KindFile, sequence(10), nil, fixed32("b f"), fixed32("seed f"))
		h, body, _ := ParseHeader(object)
		o, _ := openedWith(h, c.y(h.Source.X0[:]))
		return o.Stream(bytes.NewReader(body), nil)
	}()
	ep := c.epoch(1)
	held := []any{e, *e, r, *r, d, rd, *rd, o, &o, s, *s, s.BodyWriter, *s.BodyWriter, f, reader, *reader, ev, e1, *e1, r1, *r1, d1, *d1, rd1, *rd1, share, *share,
		ep.TAE3.Share, *ep.TAE3.Share, ep.TAE3.SigKey, ep.TAE3, *ep.TAE3, e.rhos[0], e.rhos, c.author, *c.author}
	for _, v := range held {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%X", "%q", "%d"} {
			out := fmt.Sprintf(verb, v)
			if len(out) > 100 || !bytes.Contains([]byte(out), []byte("redacted")) {
				t.Errorf("%T under %s: %.200s", v, verb, out)
			}
		}
	}
	_ = body
}
