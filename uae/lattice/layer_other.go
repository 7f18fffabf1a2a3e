//go:build !amd64 || purego

package lattice

func haveAVX2() bool { return false }

func layerAVX2([]uint64, []twist, int, uint64, int, bool) { panic("internal error: no AVX2") }
