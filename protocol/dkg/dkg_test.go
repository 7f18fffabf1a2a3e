package dkg

import (
	"crypto/rand"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.dedis.ch/kyber/v3"
	"go.dedis.ch/kyber/v3/share"

	"github.com/seed-a893640b/tae/internal/secret"
)

func random32() (b [32]byte) {
	_, _ = rand.Read(b[:])
	return b
}

func randomSeed() secret.Bytes { b := random32(); return secret.New(b[:]) }

// A cluster is all members of a run. say, where set, changes what a member says to
// another.
type cluster struct {
	t    testing.TB
	runs []*Run // by member, 0 unused
	say  func(phase Phase, from, to int, b []byte) []byte
}

func fresh(t testing.TB, n, th int) *cluster {
	t.Helper()
	c := &cluster{t: t, runs: make([]*Run, n+1)}
	session := random32()
	for i := 1; i <= n; i++ {
		var err error
		if c.runs[i], err = New(Params{n, th, i, session}, randomSeed()); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// run delivers everything in an order that pick chooses, until nothing is left.
func (c *cluster) run(pick func(n int) int) {
	type message struct {
		phase    Phase
		from, to int
	}
	var queue []message
	queued := map[message]bool{}
	for {
		for from := range c.runs {
			for phase := PhaseKeys; phase < PhaseDone && from > 0; phase++ {
				for to := 1; to < len(c.runs); to++ {
					m := message{phase, from, to}
					if to != from && !queued[m] && c.runs[from].Say(phase) != nil {
						queued[m] = true
						queue = append(queue, m)
					}
				}
			}
		}
		if len(queue) == 0 {
			return
		}
		k := pick(len(queue))
		m := queue[k]
		queue = append(queue[:k], queue[k+1:]...)
		b := c.runs[m.from].Say(m.phase)
		if c.say != nil {
			b = c.say(m.phase, m.from, m.to, b)
		}
		if b != nil {
			_ = c.runs[m.to].Add(m.phase, m.from, b) // a fault is kept
		}
	}
}

func inOrder(int) int { return 0 }

// runParallel delivers phase by phase, to all members at once.
func (c *cluster) runParallel() {
	for phase := PhaseKeys; phase < PhaseDone; phase++ {
		var payloads [][]byte // before anybody goes on
		for _, r := range c.runs[1:] {
			payloads = append(payloads, r.Say(phase))
		}
		var wg sync.WaitGroup
		for to, r := range c.runs[1:] {
			wg.Go(func() {
				for from, b := range payloads {
					if from != to && b != nil {
						_ = r.Add(phase, from+1, b)
					}
				}
			})
		}
		wg.Wait()
	}
}

// done checks the outcome of an honest run: same polynomials, good shares, and every
// quorum that is tried reconstructs the public keys.
func (c *cluster) done(n, th int) (results []*Result) {
	c.t.Helper()
	results = make([]*Result, len(c.runs))
	for i := 1; i < len(c.runs); i++ {
		r, err := c.runs[i].Result()
		if err != nil {
			c.t.Fatalf("member %d: %v (waits for %v of %v)", i, err, c.runs[i].Phase(), c.runs[i].Missing(c.runs[i].Phase()))
		}
		if string(r.Public.Append(nil)) != string(first(results, r).Public.Append(nil)) {
			c.t.Fatalf("member %d has other public polynomials", i)
		}
		if i <= n {
			if err := r.Public.CheckShare(i, r.Share, r.BLSShare); err != nil {
				c.t.Fatal(err)
			}
		} else if r.Share.Len() != 0 || r.BLSShare.Len() != 0 {
			c.t.Fatalf("member %d leaves and has a share", i)
		}
		results[i] = r
	}
	if results[1].Public.T() != th {
		c.t.Fatalf("threshold %d, want %d", results[1].Public.T(), th)
	}
	for range 3 {
		q := mrand.Perm(n)[:th]
		for g := range groups {
			if !reconstructs(g, results, q) {
				c.t.Fatalf("%s: quorum %v does not reconstruct", groups[g].name, q)
			}
			if reconstructs(g, results, q[1:]) {
				c.t.Fatalf("%s: %d shares reconstruct", groups[g].name, th-1)
			}
		}
	}
	return results
}

func first(results []*Result, r *Result) *Result {
	if results[1] != nil {
		return results[1]
	}
	return r
}

func (r *Result) scalar(g int) kyber.Scalar {
	v, ok := groups[g].decodeScalar([2]secret.Bytes{r.Share, r.BLSShare}[g].Expose())
	if !ok {
		panic("bad share")
	}
	return v
}

func (p *Public) key(g int) kyber.Point {
	polys, err := p.decode()
	if err != nil {
		panic(err)
	}
	return polys[g][0]
}

// reconstructs reports whether the shares of the members q (from 0) interpolate to the
// secret of the public key.
func reconstructs(g int, results []*Result, q []int) bool {
	var list []*share.PriShare
	for _, i := range q {
		list = append(list, &share.PriShare{I: i, V: results[i+1].scalar(g)})
	}
	v, err := share.RecoverSecret(groups[g], list, len(q), len(q))
	if err != nil {
		panic(err)
	}
	return groups[g].Point().Mul(v, nil).Equal(results[1].Public.key(g))
}

func TestKeyGeneration(t *testing.T) {
	for _, c := range [][2]int{{2, 2}, {3, 2}, {5, 3}, {6, 4}, {10, 6}, {24, 12}} {
		n, th := c[0], c[1]
		t.Run(fmt.Sprintf("n=%d,t=%d", n, th), func(t *testing.T) {
			if testing.Short() && n > 5 {
				t.Skip("slow")
			}
			start := time.Now()
			c := fresh(t, n, th)
			if n > 10 {
				c.runParallel()
			} else {
				c.run(mrand.IntN)
			}
			c.done(n, th)
			t.Logf("all %d members: %v", n, time.Since(start).Round(time.Millisecond))
		})
	}
}

// With two members and with three, every order in which the messages can arrive.
func TestEveryOrder(t *testing.T) {
	t.Parallel()
	orders := 0
	var walk func(prefix []int)
	walk = func(prefix []int) {
		var widths []int
		c := fresh(t, 2, 2)
		step := 0
		c.run(func(n int) int {
			k := 0
			if step < len(prefix) {
				k = prefix[step]
			}
			widths = append(widths, n)
			step++
			return k
		})
		c.done(2, 2)
		orders++
		for i := len(prefix); i < len(widths); i++ {
			for k := 1; k < widths[i]; k++ {
				walk(append(append(append([]int(nil), prefix...), make([]int, i-len(prefix))...), k))
			}
		}
	}
	walk(nil)
	t.Logf("%d orders of two members", orders)
	random := 4
	if testing.Short() {
		random = 2
	}
	for range random {
		c := fresh(t, 3, 2)
		c.run(mrand.IntN)
		c.done(3, 2)
	}
}

// A member that restarts with its seed says the same again.
func TestRestart(t *testing.T) {
	t.Parallel()
	c := fresh(t, 3, 2)
	c.run(inOrder)
	c.done(3, 2)
	r := c.runs[2]
	again, err := New(r.params, r.seed)
	if err != nil {
		t.Fatal(err)
	}
	for phase := PhaseKeys; phase < PhaseDone; phase++ {
		for from := 1; from <= 3; from++ { // its own too
			if b := c.runs[from].Say(phase); b != nil {
				if err := again.Add(phase, from, b); err != nil {
					t.Fatal(err)
				}
			}
		}
		if string(again.Say(phase)) != string(r.Say(phase)) {
			t.Errorf("other %v after a restart", phase)
		}
	}
	a, err := again.Result()
	if err != nil {
		t.Fatal(err)
	}
	b, _ := r.Result()
	if !a.Share.Equal(b.Share) || !a.BLSShare.Equal(b.BLSShare) {
		t.Error("other shares after a restart")
	}
}

func TestMissing(t *testing.T) {
	c := fresh(t, 3, 2)
	if _, err := c.runs[1].Result(); !errors.Is(err, errNotDone) {
		t.Error(err)
	}
	c.say = func(phase Phase, from, to int, b []byte) []byte {
		if from == 3 && phase == PhaseDeals {
			return nil
		}
		return b
	}
	c.run(inOrder)
	if m := fmt.Sprint(c.runs[1].Missing(PhaseDeals)); m != "[3]" || c.runs[1].Phase() != PhaseDeals {
		t.Errorf("waits for %v of %s", c.runs[1].Phase(), m)
	}
	if m := fmt.Sprint(c.runs[1].Missing(PhaseResponses)); m != "[1 2]" { // member 3 has its own deals
		t.Errorf("responses missing of %s", m)
	}
}

func TestErase(t *testing.T) {
	c := fresh(t, 2, 2)
	c.run(inOrder)
	results := c.done(2, 2)
	r := c.runs[1]
	r.Erase()
	if _, err := r.Result(); err == nil || r.Add(PhaseDeals, 2, c.runs[2].Say(PhaseDeals)) == nil {
		t.Error("an erased run goes on")
	}
	zero := groups[0].Scalar().Zero()
	if !r.halves[0].long.Equal(zero) || !r.halves[0].poly.Secret().Equal(zero) || string(r.seed.Expose()) != string(make([]byte, 32)) {
		t.Error("secrets are left")
	}
	if err := results[1].Public.CheckShare(1, results[1].Share, results[1].BLSShare); err != nil {
		t.Error("the result is gone:", err)
	}
}

// Payloads of the largest keysets fit a statement of 1 MiB.
func TestPayloadSizes(t *testing.T) {
	for _, c := range [][2]int{{3, 2}, {10, 6}, {24, 12}, {64, 33}, {64, 64}} {
		n, th := c[0], c[1]
		lens, err := cipherLens(th)
		if err != nil {
			t.Fatal(err)
		}
		size := headerSize + 32*n
		for g := range groups {
			size += 1 + th*groups[g].PointLen() + (n-1)*(groups[g].PointLen()+2*groups[g].signatureLen()+lens[g])
		}
		t.Logf("(%d,%d): %d bytes of deals", n, th, size)
		if size > 1<<20 {
			t.Errorf("(%d,%d): deals of %d bytes", n, th, size)
		}
	}
	c := fresh(t, 3, 2)
	c.run(inOrder)
	lens, _ := cipherLens(2)
	if got, want := len(c.runs[1].Say(PhaseDeals)), headerSize+96+2+2*(32+96)+2*(32+2*64+lens[0]+96+2*128+lens[1]); got != want {
		t.Errorf("deals of %d bytes, formula %d", got, want)
	}
}
