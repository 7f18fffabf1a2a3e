package protocol

import (
	"errors"
	"math/big"
	"testing"

	"github.com/seed-a893640b/tae/dprf"
)

// In TAE3 a node's value of an identity is a linear form in the coefficients of the
// secret polynomial, times the hash of the identity. A form3 has a factor for every
// coefficient, per epoch and identity.
type form3 map[string]*big.Int

func form(epoch, id string, node, th int) form3 {
	f := form3{}
	for k := range th {
		f[epoch+"/"+id+"/"+string(rune('0'+k))] = new(big.Int).Exp(big.NewInt(int64(node)), big.NewInt(int64(k)), ref3Q)
	}
	return f
}

// inSpan3 reports whether want is a linear combination of known, modulo q.
func inSpan3(known []form3, want form3) bool {
	pivots := map[string]form3{}
	var order []string
	reduce := func(f form3) form3 {
		out := form3{}
		for v, x := range f {
			out[v] = new(big.Int).Set(x)
		}
		for _, v := range order {
			x := out[v]
			if x == nil || x.Sign() == 0 {
				continue
			}
			factor := new(big.Int).Set(x)
			for w, y := range pivots[v] {
				if out[w] == nil {
					out[w] = new(big.Int)
				}
				out[w].Sub(out[w], new(big.Int).Mul(factor, y))
				out[w].Mod(out[w], ref3Q)
			}
		}
		return out
	}
	for _, f := range known {
		f = reduce(f)
		for v, x := range f {
			if x.Sign() == 0 {
				continue
			}
			inverse := new(big.Int).ModInverse(x, ref3Q)
			for w := range f {
				f[w] = new(big.Int).Mod(new(big.Int).Mul(f[w], inverse), ref3Q)
			}
			pivots[v] = f
			order = append(order, v)
			break
		}
	}
	for _, x := range reduce(want) {
		if x.Sign() != 0 {
			return false
		}
	}
	return true
}

// What t-1 nodes hold, with all that honest nodes answer to encrypt requests for other
// identities and with all keys of an older epoch, does not give a victim's value. Each
// rule switched off does: the right to decrypt, openings, the identity as a hash that
// the node computes, keys per epoch, and the signature on an identity.
func TestGame3Span(t *testing.T) {
	for n := 2; n <= 6; n++ {
		for th := 2; th <= n; th++ {
			want := form("2", "victim", 0, th) // the polynomial at zero
			quorums(n, th-1, func(corrupt dprf.Set) {
				collect := func(off string) (known []form3) {
					for node := 1; node <= n; node++ {
						ids := []string{"own session 1", "own session 2"}
						serves := map[string]bool{"one right": true, "no openings": true, "free identity": true, "invented": true}[off]
						if corrupt.Has(node) || serves {
							ids = append(ids, "victim")
						}
						for _, id := range ids {
							known = append(known, form("2", id, node, th))
						}
						old := "1"
						if off == "one key for all epochs" {
							old = "2"
						}
						for _, id := range append(ids, "victim") { // all shares of the old epoch are stolen
							known = append(known, form(old, id, node, th))
						}
					}
					return known
				}
				if inSpan3(collect(""), want) {
					t.Errorf("n=%d t=%d: %v reach the victim's value", n, th, corrupt)
				}
				for _, off := range []string{"one right", "no openings", "free identity", "invented", "one key for all epochs"} {
					if !inSpan3(collect(off), want) {
						t.Errorf("n=%d t=%d: control %q", n, th, off)
					}
				}
			})
		}
	}
	// The model is the server: its forms, evaluated, are what the servers answer.
	c := fixedCluster3(t, 5, 3, "span")
	id := *fixed32("x")
	for node := 1; node <= 5; node++ {
		sum := new(big.Int)
		for k, f := range c.f {
			sum.Add(sum, new(big.Int).Mul(f, form("", "", node, 3)["//"+string(rune('0'+k))]))
		}
		got := c.epoch(node).TAE3.Share.Evaluate(dprf.NewInputs([][32]byte{id}))[0]
		if [32]byte(ref3Mul(ref3Own(sum, 5), ref3Hash(id[:])).Encode(nil)) != got {
			t.Errorf("node %d answers otherwise", node)
		}
	}
}

// Rounds take answers in any order, of nodes that were not asked, twice, too late or
// too few, without panicking.
func TestTAE3RoundsInAnyOrder(t *testing.T) {
	c := fixedCluster3(t, 3, 2, "rounds")
	e := encryptMessages(c.cert, c.author, []Message{{Plaintext: []byte("m")}}, fixed32("b"), fixed32("seed"))
	r, _ := e.VerifiedRound(dprf.SetOf(1))
	answers := make([][]byte, 4)
	for node := 1; node <= 3; node++ {
		answers[node] = c.servers[node].Handle(c.caller(), r.Request(node))
	}
	for _, node := range []int{-1, 0, 2, 4, 64, 65, 1 << 20} {
		if err := r.Add(node, answers[2]); !errors.Is(err, ErrAnswer) {
			t.Errorf("node %d was not asked: %v", node, err)
		}
	}
	if err := r.Add(1, answers[1]); err != nil {
		t.Fatal(err)
	}
	if err := r.Add(1, answers[1]); !errors.Is(err, ErrAnswer) {
		t.Errorf("twice: %v", err)
	}
	r.Extend(dprf.SetOf(2, 3))
	if err := r.Add(2, answers[2]); err != nil || !r.Done() {
		t.Fatal(err)
	}
	e.Wipe()
	if err := r.Add(3, answers[3]); err != nil { // an honest node must not be blamed for being late
		t.Errorf("late: %v", err)
	}
	h, _, _ := ParseHeader(e.Objects()[0])
	d, _ := NewDecryption(c.cert, []*Header{h})
	for _, proofs := range []bool{false, true} {
		r, _ := d.VerifiedRound(dprf.SetOf(1, 2, 3), proofs)
		if _, err := r.Unmask(0); err == nil || r.Done() {
			t.Error("unmasked with no answer")
		}
		if err := r.Add(3, c.servers[3].Handle(c.caller(), r.Request())); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Unmask(0); err == nil || r.Done() {
			t.Error("unmasked with one answer")
		}
	}
}
