package bls

import "testing"

// A request with n bad signatures forces 5n/4 checks at most, one bad one a few.
// Control: bisected to the end n bad ones take 2n-1.
func TestFewPairings(t *testing.T) {
	toTheEnd := func(n int) (checks int) {
		var split func(n int)
		split = func(n int) {
			checks++
			if n > 1 {
				split(n / 2)
				split(n - n/2)
			}
		}
		split(n)
		return checks
	}
	for _, n := range []int{1, 2, 7, 8, 9, 100, 1024} {
		for _, bad := range []func(i int) bool{
			func(int) bool { return true }, func(int) bool { return false }, func(i int) bool { return i == n/3 },
			func(i int) bool { return i%2 == 0 }, func(i int) bool { return i%8 == 0 }, func(i int) bool { return i%16 == 3 },
		} {
			checks, count := 0, 0
			good := make([]bool, n)
			err := bisect(good, 0, func(from, to int) (bool, error) {
				checks++
				for i := from; i < to; i++ {
					if bad(i) {
						return false, nil
					}
				}
				return true, nil
			})
			for i := range good {
				if good[i] == bad(i) {
					t.Fatalf("n=%d: signature %d", n, i)
				}
				if bad(i) {
					count++
				}
			}
			if err != nil || checks > n+2*max(1, n/4) || count == 0 && checks != 1 {
				t.Errorf("n=%d: %d checks for %d bad ones, %v", n, checks, count, err)
			}
			if n == 1024 && (checks > n+n/4 || count == 1 && checks > 2*7+1+oneByOne) {
				t.Errorf("%d checks for %d bad ones", checks, count)
			}
		}
	}
	if toTheEnd(1024) != 2047 {
		t.Error("control")
	}
}
