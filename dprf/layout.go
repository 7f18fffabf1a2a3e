package dprf

import (
	"errors"
	"fmt"
	"math/bits"
)

// A Set is a set of node indices 1..64; bit i-1 stands for node i.
type Set uint64

// SetOf returns the set of the given nodes.
func SetOf(nodes ...int) (s Set) {
	for _, i := range nodes {
		s |= 1 << (i - 1)
	}
	return s
}

// Has reports whether node is in s.
func (s Set) Has(node int) bool { return s>>(node-1)&1 == 1 }

// Size is the number of nodes in s.
func (s Set) Size() int { return bits.OnesCount64(uint64(s)) }

// Nodes lists the members of s in ascending order.
func (s Set) Nodes() []int {
	nodes := make([]int, 0, s.Size())
	for ; s != 0; s &= s - 1 {
		nodes = append(nodes, bits.TrailingZeros64(uint64(s))+1)
	}
	return nodes
}

func (s Set) String() string { return fmt.Sprint(s.Nodes()) }

// A Layout is the public structure of the keys for given parameters: which set D
// of n-t+1 nodes holds which key. Keys are numbered from 0 in the
// lexicographic order of their sorted members (docs/spec.md section 4). It is
// immutable and safe for concurrent use.
type Layout struct {
	Params
	sets []Set
	held [][]int // per node, the numbers of its keys, ascending
}

// NewLayout computes the layout of valid parameters.
func NewLayout(p Params) (*Layout, error) {
	if err := p.Validate(true); err != nil {
		return nil, err
	}
	l := &Layout{Params: p, sets: make([]Set, 0, p.Keys()), held: make([][]int, p.N+1)}
	combination := make([]int, p.N-p.T+1)
	l.enumerate(combination, 0, 1)
	return l, nil
}

func (l *Layout) enumerate(c []int, depth, from int) {
	if depth == len(c) {
		key := len(l.sets)
		l.sets = append(l.sets, SetOf(c...))
		for _, node := range c {
			l.held[node] = append(l.held[node], key)
		}
		return
	}
	for node := from; node <= l.N-(len(c)-depth-1); node++ {
		c[depth] = node
		l.enumerate(c, depth+1, node+1)
	}
}

// Set returns the nodes that hold the key.
func (l *Layout) Set(key int) Set { return l.sets[key] }

// HeldBy lists the numbers of the keys that node holds, ascending. The caller
// must not change it.
func (l *Layout) HeldBy(node int) []int { return l.held[node] }

// ErrQuorum reports a set of nodes that cannot answer.
var ErrQuorum = errors.New("dprf: not a quorum")

// CheckQuorum checks that q has at least t nodes, all between 1 and n.
func (p Params) CheckQuorum(q Set) error {
	if q>>(p.N-1)>>1 != 0 {
		return fmt.Errorf("%w: %v names a node above n = %d", ErrQuorum, q, p.N)
	}
	if q.Size() < p.T {
		return fmt.Errorf("%w: %v has %d nodes, %d are needed", ErrQuorum, q, q.Size(), p.T)
	}
	return nil
}

// An Assignment says which member of a quorum answers for which key: owner[key]
// is a node index.
type Assignment []uint8

// Assign gives every key to one member of the quorum that holds it. Keys are
// taken in the order of how many members of the quorum hold them, fewest first,
// then by number; each goes to the holder with the fewest keys so far, the
// lowest index among equals (docs/spec.md section 4).
func (l *Layout) Assign(q Set) (Assignment, error) {
	if err := l.CheckQuorum(q); err != nil {
		return nil, err
	}
	owner := make(Assignment, len(l.sets))
	var load [MaxNodes + 1]int
	for holders := 1; holders <= l.N-l.T+1; holders++ {
		for key, d := range l.sets {
			in := d & q
			if in.Size() != holders {
				continue
			}
			best := 0
			for ; in != 0; in &= in - 1 {
				node := bits.TrailingZeros64(uint64(in)) + 1
				if best == 0 || load[node] < load[best] {
					best = node
				}
			}
			owner[key] = uint8(best)
			load[best]++
		}
	}
	return owner, nil
}

// Keys lists the numbers of the keys assigned to node, ascending.
func (a Assignment) Keys(node int) []int {
	var keys []int
	for key, o := range a {
		if int(o) == node {
			keys = append(keys, key)
		}
	}
	return keys
}
