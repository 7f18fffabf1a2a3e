package dprf

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-a893640b/tae/internal/secret"
)

// The stored proofs are what prove makes from the same randomness.
func TestProofVectors(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "testdata", "tae3", "proof.json"))
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Vectors []struct {
			N, T, Operation, Epoch, Generation, Node, Count int
			Keyset, Share, System, Seed, Proof              string
			Positions                                       []uint16
			IDs, Values                                     []string
		}
	}
	if err := json.Unmarshal(b, &f); err != nil || len(f.Vectors) == 0 {
		t.Fatalf("%d vectors, %v", len(f.Vectors), err)
	}
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for i, v := range f.Vectors {
		s, err := NewDDHShare(Params{v.N, v.T}, v.Node, secret.New(unhex(v.Share)))
		if err != nil {
			t.Fatal(err)
		}
		ids := make([][IDSize]byte, v.Count)
		for k := range ids {
			ids[k] = sha256.Sum256(fmt.Appendf(nil, "tae test vector id %d", k))
			if k < len(v.IDs) && hex.EncodeToString(ids[k][:]) != v.IDs[k] {
				t.Fatalf("vector %d: identity %d", i, k)
			}
		}
		in := NewInputs(ids)
		st := &Statement{Operation: uint8(v.Operation), Keyset: [16]byte(unhex(v.Keyset)), Suite: 3, Epoch: uint16(v.Epoch), Generation: uint32(v.Generation),
			Node: uint8(v.Node), Public: s.PublicShare(), Positions: v.Positions, Inputs: in, Values: s.Evaluate(in)}
		for k := range v.Values {
			if hex.EncodeToString(st.Values[k][:]) != v.Values[k] {
				t.Errorf("vector %d: value %d", i, k)
			}
		}
		seed, proof := st.seed(), s.prove(st, (*[32]byte)(unhex(v.System)))
		if hex.EncodeToString(seed[:]) != v.Seed || hex.EncodeToString(proof[:]) != v.Proof {
			t.Errorf("vector %d: another seed or proof", i)
		}
		if _, ok := st.Verify(proof[:]); !ok {
			t.Errorf("vector %d: refused", i)
		}
	}
}
