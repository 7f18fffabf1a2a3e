package protocol

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/seed-a893640b/tae/dprf"
)

// round is what encrypt and decrypt rounds share: one quorum, one answer per node.
type round struct {
	quorum  dprf.Set
	detail  bool
	layout  *dprf.Layout
	items   int
	owner   dprf.Assignment // who answers for which key; nil in detail
	keys    [][]int         // per node, the keys it answers for
	answers [][]byte        // per node, without the leading bytes
	got     dprf.Set
}

func (r *round) assign() error {
	if err := r.layout.CheckQuorum(r.quorum); err != nil {
		return err
	}
	r.keys = make([][]int, r.layout.N+1)
	r.answers = make([][]byte, r.layout.N+1)
	if r.detail {
		return nil
	}
	var err error
	if r.owner, err = r.layout.Assign(r.quorum); err != nil {
		return err
	}
	for _, node := range r.quorum.Nodes() {
		r.keys[node] = r.owner.Keys(node)
	}
	return nil
}

// keysOf lists the keys that node answers for in this round.
func (r *round) keysOf(node int) []int {
	if r.detail {
		return r.layout.HeldBy(node)
	}
	return r.keys[node]
}

// Quorum is the set of nodes that the round asks.
func (r *round) Quorum() dprf.Set { return r.quorum }

// Done reports whether all nodes of the quorum have answered.
func (r *round) Done() bool { return r.got == r.quorum }

func (r *round) put(node int, body []byte, err error) error {
	switch {
	case err != nil:
		return &NodeError{Node: node, Err: err}
	case !r.quorum.Has(node):
		return &NodeError{Node: node, Err: fmt.Errorf("%w: not asked", ErrAnswer)}
	case r.got.Has(node):
		return &NodeError{Node: node, Err: fmt.Errorf("%w: answered twice", ErrAnswer)}
	}
	r.answers[node] = body
	r.got |= dprf.SetOf(node)
	return nil
}

// A Dispute is one key for which its holders answered differently.
type Dispute struct {
	Item    int
	Holders dprf.Set // that answered
	// Liars are the nodes that answered wrongly. It is empty unless at least 2t-1
	// holders answered, since with fewer the liars may be as many as the honest.
	Liars dprf.Set
}

// A DisputeError reports lies found by comparing detail answers. It never blames
// an honest node while at most t-1 nodes lie.
type DisputeError struct{ Disputes []Dispute }

// Liars are the nodes that are proven wrong.
func (e *DisputeError) Liars() (s dprf.Set) {
	for _, d := range e.Disputes {
		s |= d.Liars
	}
	return s
}

func (e *DisputeError) Error() string {
	if liars := e.Liars(); liars != 0 {
		return fmt.Sprintf("nodes %v gave wrong values", liars)
	}
	seen := map[dprf.Set]bool{}
	var parts []string
	for _, d := range e.Disputes {
		if !seen[d.Holders] {
			seen[d.Holders] = true
			parts = append(parts, d.Holders.String())
		}
	}
	return "dispute between nodes " + strings.Join(parts, ", ") + ": too few answered to tell who is wrong"
}

// compare looks at every key of every item across its holders; nil means that all
// agree. Only nodes whose answer to the item is usable are compared.
func (r *round) compare(tags bool) *DisputeError {
	var report DisputeError
	for i := range r.items {
		for key := range r.layout.Keys() {
			if d, differ := r.compareKey(i, key, tags); differ {
				report.Disputes = append(report.Disputes, d)
			}
		}
	}
	if report.Disputes == nil {
		return nil
	}
	return &report
}

func (r *round) compareKey(item, key int, tags bool) (Dispute, bool) {
	d := Dispute{Item: item}
	var nodes []int
	var values [][]byte
	votes := map[string]int{}
	for _, node := range (r.layout.Set(key) & r.got).Nodes() {
		v := r.detailValue(node, item, key, tags)
		if v == nil {
			continue
		}
		d.Holders |= dprf.SetOf(node)
		nodes, values = append(nodes, node), append(values, v)
		votes[string(v)]++
	}
	if len(votes) < 2 {
		return d, false
	}
	if len(nodes) < 2*r.layout.T-1 {
		return d, true
	}
	// At most t-1 nodes lie, so what t or more say is right.
	for k, node := range nodes {
		if votes[string(values[k])] >= r.layout.T {
			continue
		}
		d.Liars |= dprf.SetOf(node)
	}
	if d.Liars == d.Holders {
		d.Liars = 0
	}
	return d, true
}

// detailValue is what node said of one key: its mask and, where tags is set, its
// tag. It is nil where the node did not serve the item.
func (r *round) detailValue(node, item, key int, tags bool) []byte {
	held := r.layout.HeldBy(node)
	pos := position(held, key)
	if !tags {
		status, masks := r.answers[node][:r.items], r.answers[node][r.items:]
		if Code(status[item]) != CodeOK {
			return nil
		}
		return masks[(item*len(held)+pos)*dprf.MaskSize:][:dprf.MaskSize]
	}
	b := r.answers[node][item*encryptItemSize(len(held), true):]
	mask := b[pos*dprf.MaskSize:][:dprf.MaskSize]
	tag := b[len(held)*dprf.MaskSize+pos*dprf.TagSize:][:dprf.TagSize]
	return bytes.Join([][]byte{mask, tag}, nil)
}

// position finds key in the ascending list.
func position(keys []int, key int) int {
	lo, hi := 0, len(keys)
	for lo < hi {
		mid := (lo + hi) / 2
		if keys[mid] < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
