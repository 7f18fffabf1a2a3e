package dprf

import (
	"errors"
	"fmt"
)

// Bounds of a replicated (TAE1) keyset, docs/spec.md section 4.
const (
	MaxNodes = 64     // a set of nodes is one 64-bit word
	MaxKeys  = 20_000 // C(n, t-1); above it every object carries too many tags
)

// Errors of Params.Validate; errors.Is finds them.
var (
	ErrThreshold   = errors.New("dprf: bad threshold")
	ErrTooManyKeys = errors.New("dprf: too many keys")
)

// Params are the number of nodes and the threshold: any T of N nodes evaluate
// the function, T-1 know nothing of it.
type Params struct{ N, T int }

// Validate checks the threshold and that there are at most MaxKeys keys of the
// replicated function.
func (p Params) Validate(allowOne bool) error {
	if err := p.ValidateThreshold(allowOne); err != nil {
		return err
	}
	if k, ok := binomial(p.N, p.T-1); !ok || k > MaxKeys {
		return fmt.Errorf("%w: n = %d, t = %d needs C(%d, %d) keys, more than %d; use a public-key (tae3) keyset",
			ErrTooManyKeys, p.N, p.T, p.N, p.T-1, MaxKeys)
	}
	return nil
}

// ValidateThreshold checks 2 <= T <= N <= MaxNodes. allowOne admits T = 1, where
// every single node can evaluate the function.
func (p Params) ValidateThreshold(allowOne bool) error {
	low := 2
	if allowOne {
		low = 1
	}
	switch {
	case p.N < 1 || p.N > MaxNodes:
		return fmt.Errorf("%w: n = %d, allowed are 1 to %d nodes", ErrThreshold, p.N, MaxNodes)
	case p.T > p.N:
		return fmt.Errorf("%w: t = %d of n = %d nodes; t counts the nodes needed and cannot exceed n", ErrThreshold, p.T, p.N)
	case p.T == 1 && !allowOne:
		return fmt.Errorf("%w: t = 1 lets every single node decrypt; use t >= 2, or --insecure-threshold-one if that is what you want", ErrThreshold)
	case p.T < low:
		return fmt.Errorf("%w: t = %d, must be at least %d", ErrThreshold, p.T, low)
	}
	return nil
}

// Keys is C(n, t-1), the number of keys and of tags of an object. It is
// meaningful only for valid parameters.
func (p Params) Keys() int {
	k, _ := binomial(p.N, p.T-1)
	return k
}

// Held is C(n-1, t-1), the number of keys that one node holds.
func (p Params) Held() int {
	k, _ := binomial(p.N-1, p.T-1)
	return k
}

// binomial reports false when the value leaves the range that matters here.
func binomial(n, k int) (int, bool) {
	if k < 0 || k > n {
		return 0, true
	}
	k = min(k, n-k)
	c := 1
	for i := 1; i <= k; i++ {
		c = c * (n - k + i) / i
		if c > 1<<40 {
			return 0, false
		}
	}
	return c, true
}
