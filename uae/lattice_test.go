package uae_test

import "github.com/seed-a893640b/tae/uae/lattice"

func latticeSubjects() []subject {
	r60, r50 := must(lattice.New(lattice.R60)), must(lattice.New(lattice.R50))
	// The lowest 12 bits of a coefficient and what a carry may reach hold
	// noise; a flip there can go unseen.
	low := func(bits int) func(int) bool {
		return func(bit int) bool { return bit%bits < 13 }
	}
	return []subject{
		{"lattice60", r60, r50, 24576, 5, lattice.MaxUpdates, r60.CiphertextSize, low(60)},
		{"lattice50", r50, r60, 9728, 5, lattice.MaxUpdates, r50.CiphertextSize, low(50)},
	}
}
