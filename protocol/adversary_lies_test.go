package protocol

import (
	"bytes"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"testing"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/secret"
)

// A lie is what a lying node answers in place of the truth.
type lie struct {
	name string
	tell func(g *lieGame, node int, req, truth []byte) []byte
	mask bool // a well-formed answer with wrong values
}

var lies = []lie{
	{"one mask wrong", func(g *lieGame, node int, _, truth []byte) []byte { return g.alter(node, truth, 1, 0) }, true},
	{"all masks wrong", func(g *lieGame, node int, _, truth []byte) []byte { return g.alter(node, truth, 99, 0) }, true},
	{"a tag wrong", func(g *lieGame, node int, _, truth []byte) []byte { return g.alter(node, truth, 0, 1) }, true},
	{"good tags refused", func(g *lieGame, _ int, req, truth []byte) []byte {
		if Op(req[1]) == OpDecrypt {
			b := make([]byte, len(truth))
			b[0], b[2] = 1, byte(CodeBadProof)
			return b
		}
		return refuse(CodeBadOpening, "").Append(nil)
	}, false},
	{"too short", func(_ *lieGame, _ int, _, truth []byte) []byte { return truth[:len(truth)-1] }, false},
	{"too long", func(_ *lieGame, _ int, _, truth []byte) []byte { return append(bytes.Clone(truth), 0) }, false},
	{"empty", func(*lieGame, int, []byte, []byte) []byte { return nil }, false},
	{"garbage", func(_ *lieGame, _ int, _, truth []byte) []byte { return random(len(truth)) }, false},
	{"an unknown item code", func(_ *lieGame, _ int, req, truth []byte) []byte {
		b := bytes.Clone(truth)
		if Op(req[1]) == OpDecrypt {
			b[2] = 77
		} else {
			b[1] = 77
		}
		return b
	}, false},
	{"a refusal", func(*lieGame, int, []byte, []byte) []byte { return refuse(CodeBusy, "\x1b[2J").Append(nil) }, false},
	{"another epoch's answer", func(g *lieGame, node int, req, _ []byte) []byte {
		return g.otherEpoch.servers[node].Handle(g.c.caller(), req)
	}, true},
}

// A lieGame is one set of lying nodes that tell one kind of lie.
type lieGame struct {
	t          *testing.T
	c          *testCluster
	otherEpoch *testCluster // other keys under the same names: what a stale node would say
	liars      dprf.Set
	lie        lie
	r          *mrand.Rand
}

// alter flips a bit in the first masks and tags of a detail answer. Liars that hold
// the same key tell the same lie about it.
func (g *lieGame) alter(node int, truth []byte, masks, tags int) []byte {
	b := bytes.Clone(truth)
	held := g.c.cert.Layout().HeldBy(node)
	at := 2
	if len(b) == 2+1+32*len(held) {
		at, tags = 3, 0
	}
	if len(b) < at+32*len(held) {
		b[at] ^= 1 // not in detail
		return b
	}
	for i := range held {
		if i < masks {
			b[at+32*i] ^= 1
		}
		if i < tags {
			b[at+32*len(held)+16*i] ^= 1
		}
	}
	return b
}

func (g *lieGame) answer(node int, req []byte) []byte {
	truth := g.c.servers[node].Handle(g.c.caller(), req)
	if g.liars.Has(node) {
		return g.lie.tell(g, node, req, truth)
	}
	return truth
}

// blame fails the test when an honest node is accused.
func (g *lieGame) blame(what string, nodes dprf.Set) {
	g.t.Helper()
	if honest := nodes &^ g.liars; honest != 0 {
		g.t.Errorf("n=%d t=%d %s: liars %v (%s): honest nodes %v are blamed", g.c.cert.N, g.c.cert.T, what, g.liars, g.lie.name, honest)
	}
}

// accused are the nodes that an error names.
func accused(err error) (s dprf.Set) {
	var n *NodeError
	var d *DisputeError
	switch {
	case errors.As(err, &n):
		s = dprf.SetOf(n.Node)
	case errors.As(err, &d):
		s = d.Liars()
	}
	return s
}

// encrypt is a cross-checked encryption by 2t-1 nodes, or all where there are fewer.
func (g *lieGame) encrypt(q dprf.Set) {
	g.t.Helper()
	e, err := EncryptMessages(g.c.cert, g.c.author, []Message{{Plaintext: []byte("m")}})
	if err != nil {
		g.t.Fatal(err)
	}
	r, err := e.Round(q, true)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, node := range q.Nodes() {
		if err := r.Add(node, g.answer(node, r.Request(node))); err != nil {
			g.blame("encryption", accused(err))
			return
		}
	}
	err = r.Finish()
	g.blame("encryption", accused(err))
	wrong := g.lie.mask && g.liars&q != 0
	if q.Size() >= 2*g.c.cert.T-1 && wrong && err == nil {
		g.t.Errorf("n=%d t=%d: liars %v (%s) are not noticed by %v", g.c.cert.N, g.c.cert.T, g.liars, g.lie.name, q)
	}
	var d *DisputeError
	if errors.As(err, &d) {
		for _, x := range d.Disputes {
			if (x.Liars != 0) != (x.Holders.Size() >= 2*g.c.cert.T-1) || x.Holders&g.liars == 0 {
				g.t.Errorf("dispute between %v names %v, liars %v", x.Holders, x.Liars, g.liars)
			}
		}
	}
	if object := e.Objects()[0]; err != nil && !bytes.Equal(object[:8], make([]byte, 8)) {
		g.t.Error("an object was made in spite of an error")
	}
}

// decrypt asks all nodes in detail; t honest ones are among them.
func (g *lieGame) decrypt(h *Header, body []byte) {
	g.t.Helper()
	d, err := NewDecryption(g.c.cert, []*Header{h})
	if err != nil {
		g.t.Fatal(err)
	}
	r, err := d.Round(g.c.all(), true)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, node := range g.c.all().Nodes() {
		if err := r.Add(node, g.answer(node, r.Request())); err != nil {
			g.blame("decryption", accused(err))
		}
	}
	report := r.Compare()
	if report != nil {
		g.blame("decryption", report.Liars())
		if possible := g.c.cert.N >= 3*g.c.cert.T-2; possible && report.Liars() == 0 {
			g.t.Errorf("n=%d t=%d: liars %v (%s) are not named: %v", g.c.cert.N, g.c.cert.T, g.liars, g.lie.name, report)
		}
	}
	// Where n >= 2t-1 every key has an honest holder, and no lie about it stays hidden.
	lied := g.lie.mask && g.lie.name != "a tag wrong"
	if reported := report != nil; reported && !lied || !reported && lied && g.c.cert.N >= 2*g.c.cert.T-1 {
		g.t.Errorf("%s: reported %v", g.lie.name, reported)
	}
	opened := r.Recombine(0, func(o Opened) bool {
		m, _, err := o.Message(body, nil)
		if err == nil && string(m) != "the message" {
			g.t.Errorf("a wrong plaintext: %q", m)
		}
		return err == nil
	})
	if honest := g.c.cert.N - g.liars.Size(); !opened && honest >= g.c.cert.T {
		g.t.Errorf("n=%d t=%d: liars %v (%s): t honest nodes do not suffice", g.c.cert.N, g.c.cert.T, g.liars, g.lie.name)
	}
	g.plain(d, body)
}

// plain is a decryption without detail: an error or the truth.
func (g *lieGame) plain(d *Decryption, body []byte) {
	quorums(g.c.cert.N, g.c.cert.T, func(q dprf.Set) {
		if g.r.IntN(4) != 0 {
			return
		}
		r, err := d.Round(q, false)
		if err != nil {
			g.t.Fatal(err)
		}
		for _, node := range q.Nodes() {
			if err := r.Add(node, g.answer(node, r.Request())); err != nil {
				g.blame("decryption", accused(err))
				return
			}
		}
		o, err := r.Unmask(0)
		if err != nil {
			g.blame("decryption", accused(err))
			return
		}
		if m, _, err := o.Message(body, nil); err == nil && string(m) != "the message" {
			g.t.Errorf("a wrong plaintext: %q", m)
		}
	})
}

// Lying nodes, up to t-1 of them, alone or together: an honest node is never blamed, a
// wrong plaintext never released, and decryption succeeds when t honest nodes answer
// in detail. Liars are named where n >= 3t-2.
func TestGameLiars(t *testing.T) {
	for _, p := range []dprf.Params{{N: 4, T: 2}, {N: 3, T: 2}, {N: 5, T: 3}, {N: 7, T: 3}, {N: 4, T: 3}, {N: 4, T: 4}} {
		if testing.Short() && p.N == 7 {
			continue
		}
		c := newTestCluster(t, p.N, p.T)
		stale := c.twin(t, func(*Certificate) {})
		stale.keys = nil
		for range c.keys {
			stale.keys = append(stale.keys, secret.New(random(32)))
		}
		for node := 1; node <= p.N; node++ {
			stale.servers[node] = stale.server(t, node, allowAll)
		}
		object := c.encrypt(t, c.all(), false, Message{Plaintext: []byte("the message")})[0]
		h, body, err := ParseHeader(object)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lies {
			for size := 1; size < p.T; size++ {
				quorums(p.N, size, func(liars dprf.Set) {
					g := &lieGame{t, c, stale, liars, l, mrand.New(mrand.NewPCG(uint64(liars), 1))}
					if l.name == "another epoch's answer" {
						g.decryptStale(h, body)
					} else {
						g.decrypt(h, body)
					}
					g.encrypt(c.all())
					quorums(p.N, min(2*p.T-1, p.N), g.encrypt)
				})
			}
		}
	}
}

// decryptStale: a node with other keys refuses the tags, honestly as far as it knows.
func (g *lieGame) decryptStale(h *Header, body []byte) {
	g.lie.mask = false
	g.decrypt(h, body)
	g.lie.mask = true
}

// Control: naming by majority among fewer than 2t-1 holders blames an honest node.
func TestGameLiarsByMajority(t *testing.T) {
	c := newTestCluster(t, 5, 3) // a key has three holders, two may lie
	object := c.encrypt(t, c.all(), false, Message{Plaintext: []byte("m")})[0]
	h, _, err := ParseHeader(object)
	if err != nil {
		t.Fatal(err)
	}
	g := &lieGame{t: t, c: c, liars: dprf.SetOf(1, 2), lie: lies[1]}
	d, err := NewDecryption(c.cert, []*Header{h})
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Round(c.all(), true)
	if err != nil {
		t.Fatal(err)
	}
	for node := 1; node <= 5; node++ {
		if err := r.Add(node, g.answer(node, r.Request())); err != nil {
			t.Fatal(err)
		}
	}
	report := r.Compare()
	if report == nil || report.Liars() != 0 {
		t.Errorf("with three holders nobody can be named: %v", report)
	}
	var byMajority dprf.Set
	for _, dispute := range report.Disputes {
		votes := map[string]dprf.Set{}
		key := 0
		for c.cert.Layout().Set(key) != dispute.Holders {
			key++
		}
		for _, node := range dispute.Holders.Nodes() {
			votes[fmt.Sprintf("%x", r.detailValue(node, 0, key, false))] |= dprf.SetOf(node)
		}
		for _, s := range votes {
			if 2*s.Size() < dispute.Holders.Size() {
				byMajority |= s
			}
		}
	}
	if byMajority&^g.liars == 0 {
		t.Error("control: a majority of the holders blames no honest node")
	}
}

// In a larger cluster there are more sets of t nodes than a client tries. With t-1
// liars it still finds t honest nodes, since it combines only nodes that agree.
func TestGameManyLiars(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster of 13 nodes")
	}
	c := newTestCluster(t, 13, 6)
	object := c.encrypt(t, c.all(), false, Message{Plaintext: []byte("the message")})[0]
	h, body, err := ParseHeader(object)
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDecryption(c.cert, []*Header{h})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lies[:2] {
		g := &lieGame{t: t, c: c, liars: dprf.SetOf(1, 2, 3, 4, 5), lie: l}
		r, err := d.Round(c.all(), true)
		if err != nil {
			t.Fatal(err)
		}
		for node := 1; node <= 13; node++ {
			if err := r.Add(node, g.answer(node, r.Request())); err != nil {
				t.Fatal(err)
			}
		}
		tries := 0
		opened := func(o Opened) bool {
			tries++
			m, _, err := o.Message(body, nil)
			return err == nil && string(m) == "the message"
		}
		if !r.Recombine(0, opened) {
			t.Errorf("%s: %d combinations tried, and 8 of 13 nodes are honest", l.name, tries)
		}
		// Control: all sets of t nodes in order. When liars lie about all keys, the first
		// 1,000 sets hold one each.
		tries = 0
		found := false
		agreeing(c.all(), 6, make([]dprf.Set, dprf.MaxNodes+1), func(s dprf.Set) bool {
			found = opened(r.unmaskDetail(0, s))
			return !found && tries < maxTries
		})
		if l.name == "all masks wrong" && found {
			t.Error("control: found without leaving out what contradicts")
		}
	}
}
