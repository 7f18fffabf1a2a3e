package uae_test

import (
	"math"
	"math/bits"
	"testing"

	"github.com/seed-a893640b/tae/uae"
	"github.com/seed-a893640b/tae/uae/nested"
)

// A snapshot of the storage shows no ages: a classifier that is trained on fresh
// and on updated ciphertexts of the same message does no better than chance. The
// control leaves the pad of the nested scheme empty, and the same classifier
// finds out.
func TestSnapshotHidesAge(t *testing.T) {
	each(t, func(t *testing.T, c subject) {
		k, m := c.s.KeyGen(), message(200)
		accuracy := classify(samples(), func(old bool) []byte {
			n := 0
			if old {
				n = min(3, c.updates)
			}
			return aged(c.s, k, m, nil, n)
		})
		// One half of the samples is judged: 4.5 standard deviations.
		if limit := 0.5 + 4.5*0.5/math.Sqrt(float64(samples())); accuracy > limit {
			t.Errorf("ages told apart with accuracy %.2f", accuracy)
		}
	})
	t.Run("control", func(t *testing.T) {
		s := must(nested.New(20))
		k := s.KeyGen()
		accuracy := classify(samples(), func(old bool) []byte {
			n := 0
			if old {
				n = 3
			}
			ct := aged(s, k, message(200), nil, n)
			clear(ct[len(ct)-nested.PerUpdate*(20-n):])
			return ct
		})
		if accuracy < 0.95 {
			t.Errorf("the control hides ages: accuracy %.2f", accuracy)
		}
	})
}

func samples() int {
	if testing.Short() {
		return 60
	}
	return 300
}

// features are what anyone can count in a ciphertext: its length, the visible
// header, bits set overall, per eighth and per position in a byte, and repeated
// neighbours.
func features(ct []byte) []float64 {
	f := []float64{float64(len(ct))}
	for _, b := range ct[:16] {
		f = append(f, float64(b))
	}
	for i := range 8 {
		part := ct[len(ct)*i/8 : len(ct)*(i+1)/8]
		ones, place, same := 0, 0, 0
		for j, b := range part {
			ones += bits.OnesCount8(b)
			if j > 0 && part[j-1] == b {
				same++
			}
		}
		for _, b := range ct {
			place += int(b >> i & 1)
		}
		f = append(f, float64(ones), float64(place), float64(same))
	}
	return f
}

// classify trains a linear classifier on n samples of either kind and returns
// the share of n further ones that it gets right.
func classify(n int, sample func(old bool) []byte) float64 {
	var mean, square [2][]float64
	for i := range 2 * n {
		f := features(sample(i%2 == 1))
		if i < 2 {
			mean[i], square[i] = make([]float64, len(f)), make([]float64, len(f))
		}
		for j, x := range f {
			mean[i%2][j] += x / float64(n)
			square[i%2][j] += x * x / float64(n)
		}
	}
	right := 0
	for i := range n {
		var score float64
		for j, x := range features(sample(i%2 == 1)) {
			a, b := mean[0][j], mean[1][j]
			variance := (square[0][j] - a*a + square[1][j] - b*b) / 2
			score += (x - (a+b)/2) * (b - a) / (variance + 1e-9)
		}
		if (score > 0) == (i%2 == 1) {
			right++
		}
	}
	return float64(right) / float64(n)
}

var _ uae.Scheme = (*nested.Scheme)(nil)
