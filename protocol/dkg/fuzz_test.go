package dkg

import (
	"bytes"
	"testing"

	"github.com/seed-a893640b/tae/internal/labelhash"
	"github.com/seed-a893640b/tae/internal/secret"
)

// The eight decoders: four payloads, the public polynomials, three of a repair. None
// may panic, and what one accepts must be the one encoding of what it read.

// seedOf makes the runs of all fuzz workers the same.
func seedOf(name string, i int) secret.Bytes {
	h := labelhash.New("test").Var([]byte(name)).Byte(byte(i)).Sum()
	return secret.New(h[:])
}

func fixed(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{t: t, runs: make([]*Run, 4)}
	for i := 1; i <= 3; i++ {
		var err error
		if c.runs[i], err = New(Params{3, 2, i, [32]byte{7}}, seedOf("run", i)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// again encodes a parsed payload.
func (r *Run) again(phase Phase, from int, p *payload) []byte {
	b := append([]byte{version, byte(phase)}, r.params.Session[:]...)
	b = appendDigests(append(b, byte(from)), p.seen)
	if phase == PhaseDeals {
		for _, d := range p.halves {
			b = append(b, byte(len(d.commits)))
			for _, c := range d.commits {
				b = append(b, encode(c)...)
			}
			for _, to := range r.receivers(from) {
				s := d.sealed[to]
				b = append(append(append(append(b, encode(s.ephemeral)...), s.keySig...), s.cipher...), s.sig...)
			}
		}
	}
	if phase == PhaseResponses {
		for _, d := range r.dealersOf(from) {
			for _, ok := range p.approvals[d] {
				if ok {
					b = append(b, 1)
				} else {
					b = append(b, 0)
				}
			}
		}
	}
	if phase == PhaseJustifications {
		b = append(b, byte(len(p.justified)>>8), byte(len(p.justified)))
		for _, j := range p.justified {
			b = append(append(b, groups[j.group].id, byte(j.receiver)), encode(j.ephemeral)...)
		}
	}
	return b
}

func fuzzPhase(f *testing.F, phase Phase) {
	c := fixed(f)
	var lie func(*Run, Phase, []byte) []byte
	if phase == PhaseJustifications {
		lie = badShare(0, wrongShare, honestly)
	}
	c.runPhases(lie)
	seed := c.runs[liar].Say(phase)
	f.Add(seed)
	if phase == PhaseResponses {
		f.Add(complain(1)(c.runs[liar], phase, nil))
	}
	r := c.runs[1]
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := r.parse(phase, liar, b)
		if err != nil {
			return
		}
		if phase == PhaseKeys { // its signatures are not kept: compare the rest
			again := append(r.header(phase)[:headerSize-1], liar)
			for g := range groups {
				if again = append(again, encode(p.keys[g])...); !bytes.HasPrefix(b, again) {
					t.Fatal("not canonical")
				}
				again = append(again, b[len(again):len(again)+groups[g].signatureLen()]...)
			}
			if !bytes.Equal(append(again, p.commitment[:]...), b) {
				t.Fatal("not canonical")
			}
			return
		}
		if !bytes.Equal(r.again(phase, liar, p), b) {
			t.Fatal("not canonical")
		}
	})
}

func FuzzKeys(f *testing.F)           { fuzzPhase(f, PhaseKeys) }
func FuzzDeals(f *testing.F)          { fuzzPhase(f, PhaseDeals) }
func FuzzResponses(f *testing.F)      { fuzzPhase(f, PhaseResponses) }
func FuzzJustifications(f *testing.F) { fuzzPhase(f, PhaseJustifications) }

func FuzzPublic(f *testing.F) {
	_, commits := morePolys(2, groups[0].Scalar().One(), groups[1].Scalar().One())
	f.Add(publicOf(commits).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := ParsePublic(b); err == nil && !bytes.Equal(p.Append(nil), b) {
			t.Fatal("not canonical")
		}
	})
}

func fixedRepair() *Repair {
	_, commits := morePolys(3, groups[0].Scalar().One(), groups[1].Scalar().One())
	return &Repair{publicOf(commits), 1, []int{2, 4, 7}, [32]byte{7}}
}

func FuzzRepairBlind(f *testing.F) {
	r := fixedRepair()
	b, _, _ := r.Blind(4, seedOf("repair", 4))
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		points, err := r.parseBlind(4, b)
		if err != nil {
			return
		}
		again := r.header(repairBlind, 4)
		for _, to := range r.others(4) {
			again = append(append(again, encode(points[to][0])...), encode(points[to][1])...)
		}
		if !bytes.Equal(again, b) {
			t.Fatal("not canonical")
		}
	})
}

func FuzzRepairPrivate(f *testing.F) {
	r := fixedRepair()
	_, private, _ := r.Blind(4, seedOf("repair", 4))
	f.Add(private[7].Expose())
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := r.parsePrivate(4, 7, b); err == nil &&
			!bytes.Equal(append(append(r.header(repairPrivate, 4, 7), encode(m[0])...), encode(m[1])...), b) {
			t.Fatal("not canonical")
		}
	})
}

func FuzzRepairSum(f *testing.F) {
	r := fixedRepair()
	f.Add(append(append(r.header(repairSum, 4), make([]byte, 3*32)...), make([]byte, 64)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if seen, m, err := r.parseSum(4, b); err == nil &&
			!bytes.Equal(append(append(appendDigests(r.header(repairSum, 4), seen), encode(m[0])...), encode(m[1])...), b) {
			t.Fatal("not canonical")
		}
	})
}
