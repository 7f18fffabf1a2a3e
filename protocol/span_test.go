package protocol

import (
	"bytes"
	"fmt"
	"math/big"
	mrand "math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-a893640b/tae/dprf"
)

// The span check is a model of everything that nodes answer: every value of a PRF
// under a key is a formal variable over GF(2), and an answer is a list of sums of
// variables. TestSpanModelIsServer evaluates the model with real keys and compares it
// with Server byte by byte; TestGameSpan collects all that an attacker can ask for and
// shows by elimination that nothing forbidden is in the span of it.

// A spanVar is one PRF value: 16 bytes of what one key gives for one identity. Slot,
// rot and ring values become further labels.
type spanVar struct {
	epoch uint16
	key   int
	label string // "dec0" and "dec1" are the halves of a mask; "tag1" is the tag of mode 1
	id    string
}

// A spanSum is a sum of variables, each at most once.
type spanSum []spanVar

// spanRules are rules of the handlers that controls switch off.
type spanRules struct {
	assignedOnly bool // verifies only assigned tags
	noTags       bool // verifies no tags
	noDetailTags bool // verifies no tags of a detail request
	oneLabel     bool // the tag is the first half of the mask: labels do not separate
	oneMode      bool // the first block of a tag does not hold the mode
	noEpoch      bool // all epochs have the same keys
	wideSets     bool // a key is held by one node more than n-t+1
	oneRight     bool // decrypt is served to whoever may encrypt
	freeID       bool // an encrypt request may name any identity
	noOpenings   bool // R is not in the identity: whoever knows w, and j's key, repeats a session
	openCheck    bool // s_k is not checked: the same
}

// A spanModel is the public structure that the handlers work on.
type spanModel struct {
	layout *dprf.Layout
	off    spanRules
}

func newSpanModel(t testing.TB, n, th int, off spanRules) *spanModel {
	t.Helper()
	if off.wideSets {
		th--
	}
	l, err := dprf.NewLayout(dprf.Params{N: n, T: th})
	if err != nil {
		t.Fatal(err)
	}
	return &spanModel{l, off}
}

func (m *spanModel) v(epoch uint16, key int, label, id string) spanVar {
	if m.off.oneLabel && label == "tag1" {
		label = "dec0"
	}
	if m.off.oneMode && label == "tag2" {
		label = "tag1"
	}
	if m.off.noEpoch {
		epoch = 0
	}
	return spanVar{epoch, key, label, id}
}

// mask is the whole mask of an identity, half by half.
func (m *spanModel) mask(epoch uint16, id string) (halves []spanSum) {
	for _, label := range []string{"dec0", "dec1"} {
		var s spanSum
		for k := range m.layout.Keys() {
			s = append(s, m.v(epoch, k, label, id))
		}
		halves = append(halves, s)
	}
	return halves
}

// keys lists what a node answers for.
func (m *spanModel) keys(node int, q dprf.Set, detail bool) []int {
	if detail {
		return m.layout.HeldBy(node)
	}
	owner, err := m.layout.Assign(q)
	if err != nil {
		return nil
	}
	return owner.Keys(node)
}

func (m *spanModel) masks(epoch uint16, id string, keys []int, detail bool) (out []spanSum) {
	var sum [2]spanSum
	for _, k := range keys {
		for i, label := range []string{"dec0", "dec1"} {
			v := m.v(epoch, k, label, id)
			sum[i] = append(sum[i], v)
			if detail {
				out = append(out, spanSum{v})
			}
		}
	}
	if !detail {
		return sum[:]
	}
	return out
}

// encrypt is the answer of a node to one item of an encrypt request.
func (m *spanModel) encrypt(node int, epoch uint16, q dprf.Set, detail bool, id string) []spanSum {
	keys := m.keys(node, q, detail)
	out := m.masks(epoch, id, keys, detail)
	for _, k := range keys {
		out = append(out, spanSum{m.v(epoch, k, "tag1", id)})
	}
	return out
}

// mustVerify lists the tags that a node checks before it answers a decrypt request.
func (m *spanModel) mustVerify(node int, q dprf.Set, detail bool) []int {
	switch {
	case m.off.noTags, m.off.noDetailTags && detail:
		return nil
	case m.off.assignedOnly:
		return m.keys(node, q, false)
	}
	return m.layout.HeldBy(node)
}

// decrypt is the answer of a node to one item whose tags verify.
func (m *spanModel) decrypt(node int, epoch uint16, q dprf.Set, detail bool, id string) []spanSum {
	return m.masks(epoch, id, m.keys(node, q, detail), detail)
}

// evaluate computes sums with real keys; ids are raw identities.
func evaluate(keys [][]byte, sums []spanSum) (out []byte) {
	for _, s := range sums {
		value := make([]byte, 16)
		for _, v := range s {
			var x []byte
			switch v.label {
			case "dec0":
				x = refMask(keys[v.key], []byte(v.id))[:16]
			case "dec1":
				x = refMask(keys[v.key], []byte(v.id))[16:]
			case "tag1":
				x = refTag(keys[v.key], 1, []byte(v.id))
			}
			value = refXOR(value, x)
		}
		out = append(out, value...)
	}
	return out
}

// answer is the whole answer of the model to a request, or nil for a refusal: the
// conditions of section 8.4 as far as the policy lets everything through.
func (m *spanModel) answer(c *testCluster, node int, caller ClientKey, req []byte) []byte {
	t, rest, err := readTarget(req)
	if err != nil || t.op != OpEncrypt && t.op != OpDecrypt || t.keyset != c.cert.Keyset || t.suite != SuiteTAE1 || t.epoch != c.cert.Epoch || t.attempt != c.cert.Attempt || t.generation != 0 ||
		t.mode != ModeSealed || !t.quorum.Has(node) || m.layout.CheckQuorum(t.quorum) != nil {
		return nil
	}
	keys := c.rawKeys()
	if t.op == OpEncrypt {
		r, err := readEncrypt(rest, c.cert.N)
		if err != nil || r.items > int(c.cert.Limits.MaxBatch) || !r.checkOpening(node) {
			return nil
		}
		hash := openingsHash(r.commitments)
		ctx := (&refSession{t.keyset[:], 1, caller[:], hash[:]}).context()
		var out []byte
		for i := range r.items {
			out = append(out, evaluate(keys, m.encrypt(node, t.epoch, t.quorum, t.detail, string(refX(ctx, r.w[32*i:][:32]))))...)
		}
		return out
	}
	items, count, size, err := readDecrypt(rest, len(keys))
	if err != nil || count > int(c.cert.Limits.MaxBatch) {
		return nil
	}
	codes := make([]byte, count)
	var out []byte
	for i := range count {
		id, tags := string(items[i*size:][:32]), items[i*size+32:][:size-32]
		value := evaluate(keys, m.decrypt(node, t.epoch, t.quorum, t.detail, id))
		for _, k := range m.mustVerify(node, t.quorum, t.detail) {
			if !bytes.Equal(tags[16*k:][:16], evaluate(keys, []spanSum{{m.v(t.epoch, k, "tag1", id)}})) {
				codes[i] = byte(CodeBadProof)
			}
		}
		if codes[i] != 0 {
			clear(value)
		}
		out = append(out, value...)
	}
	return append(codes, out...)
}

// The model agrees with the real handlers byte for byte, on requests that are served
// and on such as are refused.
func TestSpanModelIsServer(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 100
	}
	r := mrand.New(mrand.NewPCG(1, 2))
	served, refused := 0, 0
	for _, p := range []dprf.Params{{N: 3, T: 2}, {N: 4, T: 2}, {N: 4, T: 3}, {N: 5, T: 3}, {N: 6, T: 4}} {
		c := newTestCluster(t, p.N, p.T)
		m := newSpanModel(t, p.N, p.T, spanRules{})
		for range rounds {
			node := 1 + r.IntN(p.N)
			req := c.randomRequest(r, node)
			real, model := c.servers[node].Handle(c.caller(), req), m.answer(c, node, c.author.Key, req)
			if real[1] != 0 {
				refused++
				if model != nil {
					t.Fatalf("n=%d t=%d: refused with code %d, the model answers", p.N, p.T, real[1])
				}
				continue
			}
			served++
			if !bytes.Equal(real[2:], model) {
				t.Fatalf("n=%d t=%d: the model answers otherwise: %x", p.N, p.T, req[:40])
			}
		}
	}
	if served < rounds || refused < rounds/2 {
		t.Errorf("%d served, %d refused: the requests do not cover both", served, refused)
	}
}

// randomRequest is a request to a node that is right, or wrong in a random place.
func (c *testCluster) randomRequest(r *mrand.Rand, node int) []byte {
	q := dprf.SetOf(node)
	for q.Size() < c.cert.T || r.IntN(3) == 0 && q != c.all() {
		q |= dprf.SetOf(1 + r.IntN(c.cert.N))
	}
	detail := r.IntN(2) == 0
	s, commitments, _ := refOpenings(random(32), c.cert.N)
	var req []byte
	if r.IntN(2) == 0 {
		var w [][]byte
		for range 1 + r.IntN(3) {
			w = append(w, random(32))
		}
		req = c.encryptRequest(q, commitments, s[node-1], w...)
	} else {
		id := random(32)
		tags := refTags(c.rawKeys(), 1, id)
		if r.IntN(2) == 0 {
			tags[r.IntN(len(tags))] ^= 1
		}
		req = c.decryptRequest(q, detail, id, tags)
	}
	req[4] = 0
	if detail {
		req[4] = 1
	}
	if r.IntN(3) == 0 {
		req[r.IntN(len(req))] ^= byte(1 << r.IntN(8))
	}
	if r.IntN(20) == 0 {
		req[3] = byte(r.IntN(6))
	}
	return req
}

// A span is a set of known sums, in echelon form.
type span struct {
	index map[spanVar]int
	rows  map[int]*big.Int // by highest bit
}

func newSpan() *span { return &span{map[spanVar]int{}, map[int]*big.Int{}} }

func (s *span) row(sum spanSum) *big.Int {
	row := new(big.Int)
	for _, v := range sum {
		i, ok := s.index[v]
		if !ok {
			i = len(s.index)
			s.index[v] = i
		}
		row.SetBit(row, i, row.Bit(i)^1)
	}
	return s.reduce(row)
}

func (s *span) reduce(row *big.Int) *big.Int {
	for i := row.BitLen() - 1; i >= 0; i-- {
		if known := s.rows[i]; row.Bit(i) == 1 && known != nil {
			row.Xor(row, known)
		}
	}
	return row
}

// add reports whether the sum was new.
func (s *span) add(sum spanSum) bool {
	row := s.row(sum)
	if row.BitLen() == 0 {
		return false
	}
	s.rows[row.BitLen()-1] = row
	return true
}

func (s *span) has(sum spanSum) bool { return s.row(sum).BitLen() == 0 }

// spanRights are what the attacker's client may do at honest nodes.
type spanRights struct{ encrypt, decrypt bool }

// A spanGame is one attacker: corrupt nodes and rights, and what it knows.
type spanGame struct {
	*spanModel
	corrupt dprf.Set
	rights  spanRights
	span    *span
}

// The identities of the game: the victim's object, of epoch 2; one that the attacker
// made in a session of its own; one that it invents, from no session. Epoch 1 is an
// older one whose keys are all stolen.
const (
	spanVictim   = "victim"
	spanOwn      = "own"
	spanInvented = "invented"
	spanEpoch    = 2
	spanStolen   = 1
)

var spanIDs = []string{spanVictim, spanOwn, spanInvented}

// encryptable are the identities that an encrypt request of the attacker can reach.
func (g *spanGame) encryptable() []string {
	switch {
	case g.off.freeID:
		return spanIDs
	case g.off.noOpenings, g.off.openCheck:
		return []string{spanOwn, spanVictim} // with w, which t-1 nodes saw, and the client's stolen key
	}
	return []string{spanOwn}
}

// collect asks for everything, until nothing new comes.
func (g *spanGame) collect() {
	for _, id := range spanIDs {
		for _, label := range []string{"dec0", "dec1", "tag1", "tag2"} {
			for k := range g.layout.Keys() {
				g.span.add(spanSum{g.v(spanStolen, k, label, id)})
				if g.layout.Set(k)&g.corrupt != 0 {
					g.span.add(spanSum{g.v(spanEpoch, k, label, id)})
				}
			}
		}
	}
	for k := range g.layout.Keys() { // the object itself
		g.span.add(spanSum{g.v(spanEpoch, k, "tag1", spanVictim)})
		g.span.add(spanSum{g.v(spanEpoch, k, "tag2", spanInvented)}) // tags that a session in another mode gave
	}
	for changed := true; changed; {
		changed = false
		for q := dprf.Set(1); q < 1<<g.layout.N; q++ {
			if g.layout.CheckQuorum(q) != nil {
				continue
			}
			for _, node := range (q &^ g.corrupt).Nodes() {
				for _, detail := range []bool{false, true} {
					for _, sum := range g.ask(node, q, detail) {
						changed = g.span.add(sum) || changed
					}
				}
			}
		}
	}
}

// ask is all that an honest node answers to the attacker in one quorum.
func (g *spanGame) ask(node int, q dprf.Set, detail bool) (sums []spanSum) {
	if g.rights.encrypt {
		for _, id := range g.encryptable() {
			sums = append(sums, g.encrypt(node, spanEpoch, q, detail, id)...)
		}
	}
	if !g.rights.decrypt && !(g.off.oneRight && g.rights.encrypt) {
		return sums
	}
	for _, id := range spanIDs {
		shown := !slices.ContainsFunc(g.mustVerify(node, q, detail), func(k int) bool {
			return !g.span.has(spanSum{g.v(spanEpoch, k, "tag1", id)})
		})
		if shown {
			sums = append(sums, g.decrypt(node, spanEpoch, q, detail, id)...)
		}
	}
	return sums
}

// forbidden lists what the attacker must not know, by name.
func (g *spanGame) forbidden() map[string][]spanSum {
	out := map[string][]spanSum{"the mask of an invented identity": g.mask(spanEpoch, spanInvented)}
	if !g.rights.decrypt {
		out["the victim's mask"] = g.mask(spanEpoch, spanVictim)
	}
	for k := range g.layout.Keys() {
		if g.layout.Set(k)&g.corrupt == 0 {
			out[fmt.Sprint("a tag of an invented identity, key ", k)] = []spanSum{{g.v(spanEpoch, k, "tag1", spanInvented)}}
		}
	}
	return out
}

// spanAttack plays one attacker against a model and names what it got.
func spanAttack(m *spanModel, corrupt dprf.Set, rights spanRights) (won []string) {
	g := &spanGame{m, corrupt, rights, newSpan()}
	g.collect()
	for name, sums := range g.forbidden() {
		for _, sum := range sums {
			if g.span.has(sum) {
				won = append(won, name)
				break
			}
		}
	}
	return won
}

var spanSizes = []dprf.Params{{N: 3, T: 2}, {N: 4, T: 2}, {N: 4, T: 3}, {N: 5, T: 3}}

// forAttackers calls f with every corrupt set of at most t-1 nodes and all rights.
func forAttackers(p dprf.Params, f func(corrupt dprf.Set, rights spanRights)) {
	for size := range p.T {
		quorums(p.N, size, func(corrupt dprf.Set) {
			for _, rights := range []spanRights{{}, {encrypt: true}, {decrypt: true}, {true, true}} {
				f(corrupt, rights)
			}
		})
	}
}

// Nothing that up to t-1 nodes and clients with any rights can ask for gives a
// forbidden mask or tag.
func TestGameSpan(t *testing.T) {
	for _, p := range spanSizes {
		if testing.Short() && p.N == 5 {
			continue
		}
		m := newSpanModel(t, p.N, p.T, spanRules{})
		forAttackers(p, func(corrupt dprf.Set, rights spanRights) {
			if won := spanAttack(m, corrupt, rights); won != nil {
				t.Errorf("n=%d t=%d, corrupt %v, rights %+v: %v", p.N, p.T, corrupt, rights, won)
			}
		})
		// t corrupt nodes know everything, and whoever may decrypt opens the victim's
		// object: the check can find what is there.
		g := &spanGame{m, dprf.Set(1<<p.T - 1), spanRights{}, newSpan()}
		g.collect()
		h := &spanGame{m, 0, spanRights{decrypt: true}, newSpan()}
		h.collect()
		for _, half := range m.mask(spanEpoch, spanVictim) {
			if !g.span.has(half) || !h.span.has(half) {
				t.Errorf("n=%d t=%d: the right to decrypt, or t nodes, give nothing", p.N, p.T)
			}
		}
	}
}

// Each rule that the model expresses, switched off, puts something forbidden into
// some attacker's span.
func TestGameSpanControls(t *testing.T) {
	for name, off := range map[string]spanRules{
		"only assigned tags verified":             {assignedOnly: true},
		"no tags verified":                        {noTags: true},
		"no tags verified in detail":              {noDetailTags: true},
		"one label for tags and masks":            {oneLabel: true},
		"the mode not in the tag":                 {oneMode: true},
		"the same keys in all epochs":             {noEpoch: true},
		"keys held by one node more":              {wideSets: true},
		"one right for encrypt and decrypt":       {oneRight: true},
		"an identity taken from encrypt requests": {freeID: true},
		"R left out of the identity":              {noOpenings: true},
		"s_k not checked":                         {openCheck: true},
	} {
		for _, p := range []dprf.Params{{N: 3, T: 2}, {N: 4, T: 3}} {
			if off.wideSets && p.T == 2 {
				continue // t = 1 has one node hold everything anyway
			}
			m := newSpanModel(t, p.N, p.T, off)
			won := map[string]bool{}
			forAttackers(p, func(corrupt dprf.Set, rights spanRights) {
				for _, w := range spanAttack(m, corrupt, rights) {
					won[w] = true
				}
			})
			if len(won) == 0 {
				t.Errorf("%s, n=%d t=%d: no attack", name, p.N, p.T)
			}
		}
	}
}
