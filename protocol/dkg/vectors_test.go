package dkg

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"go.dedis.ch/kyber/v3"

	"github.com/seed-a893640b/tae/internal/secret"
)

var update = flag.Bool("update", false, "write testdata again")

const vectorFile = "testdata/run.json"

// A vector is one key generation. The payloads are what the members of this
// implementation say with these seeds; another implementation reads them and comes to
// the same shares, from the secrets of the ceremony.
type vector struct {
	N, T         int
	Session      string
	Seeds        []string
	GroupSecrets [][2]string         // of both groups, by member
	Payloads     map[string][]string // by phase, member
	Public       string
	Shares       [][2]string
}

func makeVector(t *testing.T) *vector {
	t.Helper()
	const n, th = 3, 2
	v := &vector{N: n, T: th, Session: hex.EncodeToString(bytes.Repeat([]byte{7}, 32)), Payloads: map[string][]string{}}
	c := &cluster{t: t, runs: make([]*Run, n+1)}
	for i := 1; i <= n; i++ {
		seed := bytes.Repeat([]byte{byte(i)}, 32)
		v.Seeds = append(v.Seeds, hex.EncodeToString(seed))
		var err error
		if c.runs[i], err = New(Params{n, th, i, [32]byte(bytes.Repeat([]byte{7}, 32))}, secret.New(seed)); err != nil {
			t.Fatal(err)
		}
	}
	c.runPhases(nil)
	for i, r := range c.done(n, th) {
		if r == nil {
			continue
		}
		for phase := PhaseKeys; phase <= PhaseResponses; phase++ {
			v.Payloads[phase.String()] = append(v.Payloads[phase.String()], hex.EncodeToString(c.runs[i].Say(phase)))
		}
		v.Public = hex.EncodeToString(r.Public.Append(nil))
		v.Shares = append(v.Shares, [2]string{hex.EncodeToString(r.Share.Expose()), hex.EncodeToString(r.BLSShare.Expose())})
		v.GroupSecrets = append(v.GroupSecrets, [2]string{hex.EncodeToString(encode(c.runs[i].halves[0].long)), hex.EncodeToString(encode(c.runs[i].halves[1].long))})
	}
	return v
}

// A change of the file is a change of format.
func TestVectors(t *testing.T) {
	b, err := json.MarshalIndent(makeVector(t), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	if *update {
		if err := os.WriteFile(vectorFile, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, want) {
		t.Error("payloads are other than in", vectorFile)
	}
}

// The layout of kyber's deal, as the package documents it.
func TestDealLayout(t *testing.T) {
	for g := range groups {
		for _, receiver := range []int{1, 2, 64} {
			for _, th := range []int{2, 64} {
				sid := bytes.Repeat([]byte{0xaa}, 32)
				v := groups[g].Scalar().Pick(groups[g].RandomStream())
				var commits []kyber.Point
				for range th {
					commits = append(commits, groups[g].Point().Base())
				}
				want := append(append([]byte{0x0a, 0x20}, sid...), 0x12, 0x24, 0x08, byte(2*(receiver-1)), 0x12, 0x20)
				want = append(append(want, encode(v)...), 0x18, byte(th))
				for _, c := range commits {
					want = append(append(want, 0x22, byte(groups[g].PointLen())), encode(c)...)
				}
				got, err := encodeDeal(plain(sid, receiver, v, commits))
				if lens, _ := cipherLens(th); err != nil || !bytes.Equal(got, want) || len(got)+gcmTag != lens[g] {
					t.Fatalf("%s, receiver %d, t = %d: another layout", groups[g].name, receiver, th)
				}
			}
		}
	}
}
