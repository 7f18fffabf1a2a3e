//go:build amd64 && !purego

package lattice

import "golang.org/x/sys/cpu"

func haveAVX2() bool { return cpu.X86.HasAVX2 }

// layerAVX2 runs one layer of the transform: for every factor w, a block of step
// values x and step values y, a multiple of 4, becomes x+y, (x-y)w. It leaves out
// the lowest partial product of the quotient, so (x-y)w is only below 4q. Without
// reduce, values must be below 4q and x+y comes to 8q; with reduce, values must
// be below 8q and x+y is reduced to little more than q. q is 2^shift - 2^14 + 1.
func layerAVX2(v []uint64, factors []twist, step int, q uint64, shift int, reduce bool) {
	c := 4 * q
	if reduce {
		c = 8 * q
	}
	if len(factors) == 0 || len(v) < 2*step*len(factors) || step%4 != 0 {
		panic("internal error: layer does not fit")
	}
	layer(&v[0], &factors[0], len(factors), 8*step, c, shift, reduce)
}

// layer is in layer_amd64.s; step is in bytes.
//
//go:noescape
func layer(v *uint64, factors *twist, blocks, step int, c uint64, shift int, reduce bool)
