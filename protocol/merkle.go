package protocol

import (
	"github.com/seed-a893640b/tae/internal/labelhash"
)

const (
	labelLeaf  = "tae/v1/leaf"
	labelNode  = "tae/v1/node"
	labelBatch = "tae/v1/tae3-batch"
)

// The identities of one TAE3 encrypt request form a hash tree of the shape of RFC
// 6962: the left subtree of n leaves has the largest power of two below n. One
// signature on the root then serves all items.

func merkleLeaf(mode Mode, x *Identity) [32]byte {
	return labelhash.New(labelLeaf).Byte(byte(mode)).Fixed(x[:]).Sum()
}

func merkleNode(l, r *[32]byte) [32]byte {
	return labelhash.New(labelNode).Fixed(l[:]).Fixed(r[:]).Sum()
}

// leftLeaves is the largest power of two below n, n being at least 2.
func leftLeaves(n int) int {
	k := 1
	for 2*k < n {
		k *= 2
	}
	return k
}

// merklePathLen is the length of the path of leaf index of n. It is fixed by the two,
// so that a proof has one encoding.
func merklePathLen(index, n int) (length int) {
	for n > 1 {
		k := leftLeaves(n)
		if index < k {
			n = k
		} else {
			index, n = index-k, n-k
		}
		length++
	}
	return length
}

// merkleTree computes the root and every leaf's path, the step next to the leaf first.
func merkleTree(leaves [][32]byte) (root [32]byte, paths [][][32]byte) {
	if len(leaves) == 1 {
		return leaves[0], [][][32]byte{nil}
	}
	k := leftLeaves(len(leaves))
	l, left := merkleTree(leaves[:k])
	r, right := merkleTree(leaves[k:])
	for i := range left {
		left[i] = append(left[i], r)
	}
	for i := range right {
		right[i] = append(right[i], l)
	}
	return merkleNode(&l, &r), append(left, right...)
}

// merkleRoot follows a path of the right length from a leaf to the root.
func merkleRoot(leaf [32]byte, index, n int, path []byte) [32]byte {
	if n == 1 {
		return leaf
	}
	last := [32]byte(path[len(path)-32:])
	rest := path[:len(path)-32]
	k := leftLeaves(n)
	if index < k {
		l := merkleRoot(leaf, index, k, rest)
		return merkleNode(&l, &last)
	}
	r := merkleRoot(leaf, index-k, n-k, rest)
	return merkleNode(&last, &r)
}

// batchMessage is what the nodes sign for a request. The generation of the shares is
// not in it: a refresh must not invalidate what is encrypted.
func batchMessage(keyset KeysetID, suite Suite, epoch uint16, count int, root *[32]byte) []byte {
	m := labelhash.New(labelBatch).Fixed(keyset[:]).Byte(byte(suite)).Uint16(epoch).Uint16(uint16(count)).Fixed(root[:]).Sum()
	return m[:]
}
