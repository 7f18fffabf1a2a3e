package protocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/seed-a893640b/tae/dprf"
)

// FuzzEvidence parses any bytes as evidence; what is not stored as a lie convicts nobody.
func FuzzEvidence(f *testing.F) {
	seedWith3(f, "evidence", "evidence")
	lies := map[string]bool{}
	for _, v := range loadVectors3(f, "evidence") {
		lies[string(v.bytes(f, "evidence"))] = v["convicts"].(bool)
	}
	members := fixedCluster3(f, 3, 2, "vectors").cert.Members
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEvidence(b)
		if err != nil {
			if e != nil {
				t.Error("evidence with an error")
			}
			return
		}
		if !bytes.Equal(e.Append(nil), b) {
			t.Error("not canonical")
		}
		if _, err := e.Verify(members); err == nil && !lies[string(b)] {
			t.Errorf("convicts node %d", e.Node())
		}
		_, _ = e.Verify(e.Certificate().Members)
	})
}

// FuzzDecrypt3Request parses any bytes as the items of a decrypt request.
func FuzzDecrypt3Request(f *testing.F) {
	for _, v := range loadVectors3(f, "request") {
		if req := v.bytes(f, "request"); len(req) > 33 && Op(req[1]) == OpDecrypt {
			f.Add(req[33:])
		}
	}
	c := fixedCluster3(f, 3, 2, "vectors")
	f.Fuzz(func(t *testing.T, b []byte) {
		items, err := readDecrypt3(b, 16)
		if err != nil {
			if items != nil {
				t.Error("items with an error")
			}
			return
		}
		out := binary.BigEndian.AppendUint16(nil, uint16(len(items)))
		for _, it := range items {
			out = append(append(append(append(out, it.id[:]...), refU16(int(it.index))...), refU16(int(it.count))...), it.proof...)
		}
		if !bytes.Equal(out, b) || len(items) == 0 || len(items) > 16 {
			t.Error("not canonical")
		}
		good, err := c.cert.verifyProofs(items)
		if err != nil || len(good) != len(items) {
			t.Errorf("%d results, %v", len(good), err)
		}
		if alone := items[:1]; good[0] {
			if again, err := c.cert.verifyProofs(alone); err != nil || !again[0] {
				t.Error("the other items matter")
			}
		}
	})
}

// FuzzHandle3 gives any bytes to TAE3 servers.
func FuzzHandle3(f *testing.F) {
	seedWith3(f, "request", "request")
	seedWith(f, "request", "request")
	c := fixedCluster3(f, 3, 2, "vectors")
	denied := c.server3(f, 1, func(Caller, string, Op, int) *Refusal { return refuse(CodeDenied, "no") })
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := OpenAnswer(c.servers[1].Handle(c.caller(), b)); err != nil {
			var refusal *Refusal
			if !errors.As(err, &refusal) {
				t.Errorf("an answer that cannot be read: %v", err)
			}
		}
		if answer := denied.Handle(c.caller(), b); answer[1] == 0 && RequestOp(b) != opKeysets {
			t.Error("answered without a right")
		}
	})
}

// FuzzVerifiedEncryptAnswer is any answer of node 1, which is taken only when it is
// right: then objects are made that open, and else node 1 is named.
func FuzzVerifiedEncryptAnswer(f *testing.F) {
	seedWith3(f, "request", "answer")
	c := fixedCluster3(f, 3, 2, "vectors")
	e := encryptMessages(c.cert, c.author, []Message{{Plaintext: sequence(3)}, {sequence(40), []byte("x")}}, fixed32("b req"), fixed32("seed req"))
	r, _ := e.VerifiedRound(0)
	others := [][]byte{2: c.servers[2].Handle(c.caller(), r.Request(2)), 3: c.servers[3].Handle(c.caller(), r.Request(3))}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := e.VerifiedRound(dprf.SetOf(1, 2, 3))
		if err != nil {
			t.Fatal(err)
		}
		first := r.Add(1, b)
		var n *NodeError
		if first != nil && (!errors.As(first, &n) || n.Node != 1 || r.got != 0) {
			t.Errorf("got %v", first)
		}
		for node := 2; node <= 3; node++ {
			if err := r.Add(node, others[node]); err != nil {
				t.Errorf("an honest node is blamed: %v", err)
			}
		}
		if !r.Done() || (first == nil) != (len(r.Lies()) == 0) && first == nil && r.Lies()[1] == nil {
			t.Fatal("not done")
		}
		var lie *LieError
		if errors.As(errors.Join(first, r.Lies()[1]), &lie) && lie.Evidence != nil {
			if _, err := lie.Evidence.Verify(c.cert.Members); err != nil {
				t.Errorf("evidence does not convict: %v", err)
			}
		}
		h, body, err := ParseHeader(e.Objects()[0])
		if err != nil {
			t.Fatal(err)
		}
		if o, ok := openedWith(h, c.y(h.Source.X0[:])); !ok {
			t.Error("a malformed object")
		} else if m, _, err := o.Message(body, nil); err != nil || !bytes.Equal(m, sequence(3)) {
			t.Error("an object that does not open")
		}
	})
}

// FuzzVerifiedDecryptAnswer is any answer of node 1: it can make a decryption fail
// without proofs, with them it is found, and nothing wrong is ever opened.
func FuzzVerifiedDecryptAnswer(f *testing.F) {
	seedWith3(f, "request", "answer")
	c := fixedCluster3(f, 3, 2, "vectors")
	_, objects := c.make3(f, fixed32("b req"), fixed32("seed req"), Message{Plaintext: sequence(3)}, Message{Plaintext: sequence(40)})
	var headers []*Header
	var bodies [][]byte
	for _, object := range objects {
		h, body, err := ParseHeader(object)
		if err != nil {
			f.Fatal(err)
		}
		headers, bodies = append(headers, h), append(bodies, body)
	}
	d, err := NewDecryption(c.cert, headers)
	if err != nil {
		f.Fatal(err)
	}
	var others [2][4][]byte
	for k, proofs := range []bool{false, true} {
		r, _ := d.VerifiedRound(0, proofs)
		for node := 1; node <= 3; node++ {
			others[k][node] = c.servers[node].Handle(c.caller(), r.Request())
		}
		f.Add(others[k][1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for k, proofs := range []bool{false, true} {
			r, err := d.VerifiedRound(dprf.SetOf(1, 2, 3), proofs)
			if err != nil {
				t.Fatal(err)
			}
			var n *NodeError
			if err := r.Add(1, b); err != nil && (!errors.As(err, &n) || n.Node != 1 || r.got != 0) {
				t.Errorf("got %v", err)
			}
			for node := 2; node <= 3; node++ {
				if err := r.Add(node, others[k][node]); err != nil {
					t.Errorf("an honest node is blamed: %v", err)
				}
			}
			for i := range headers {
				o, err := r.Unmask(i)
				if err != nil {
					t.Errorf("two honest nodes are not enough: %v", err)
					continue
				}
				m, _, err := o.Message(bodies[i], nil)
				if err == nil && !bytes.Equal(m, sequence([]int{3, 40}[i])) {
					t.Error("a wrong plaintext")
				}
				if err != nil && proofs {
					t.Errorf("proven values do not open: %v", err)
				}
			}
		}
	})
}
