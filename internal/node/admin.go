package node

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sort"

	"go.uber.org/zap"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/protocol"
	"github.com/seed-a893640b/tae/protocol/keygen"
)

func zapKeyset(id keygen.ID) zap.Field { return zap.String("keyset", id.Keyset.String()) }
func zapText(k, v string) zap.Field    { return zap.String(k, v) }

// A NewKeyset is what an operator asks for.
type NewKeyset struct {
	Name      string         `json:"name"`
	Suite     protocol.Suite `json:"suite"`
	Threshold int            `json:"threshold"`
	Modes     []string       `json:"modes"`
	Layers    int            `json:"layers"`
	MaxBatch  int            `json:"max_batch"` // 0: the largest
	AllowOne  bool           `json:"allow_one"` // admit t = 1; the other members must too
}

// A KeysetInfo is what this node knows of one keyset, for people and scripts.
type KeysetInfo struct {
	Name     string            `json:"name"`
	ID       string            `json:"id"`
	Suite    string            `json:"suite"`
	N        int               `json:"n"`
	T        int               `json:"t"`
	Modes    []string          `json:"modes"`
	Epoch    uint16            `json:"epoch"`
	Attempt  uint16            `json:"attempt"`
	State    string            `json:"state"`
	Serving  bool              `json:"serving"`
	Missing  []string          `json:"missing,omitempty"`  // members waited for
	Problems map[string]string `json:"problems,omitempty"` // per member, the last failed message
	Proposer string            `json:"proposer,omitempty"`

	id    keygen.ID
	suite protocol.Suite
}

// Create proposes a keyset of all members of the cluster and accepts it here. It
// becomes active when every member has accepted it and stored its keys.
func (n *Node) Create(k NewKeyset) (KeysetInfo, error) {
	terms := &protocol.Terms{Name: k.Name, Suite: k.Suite, N: len(n.cfg.Cluster.Members), T: k.Threshold, Version: 1, Epoch: 1, Attempt: 1,
		Members: n.cfg.Cluster.MemberKeys(), Limits: protocol.Limits{MaxBatch: protocol.MaxBatchLimit, ObjectsLog2: protocol.ObjectsLog2}}
	if k.MaxBatch != 0 {
		if k.MaxBatch < 1 || k.MaxBatch > protocol.MaxBatchLimit {
			return KeysetInfo{}, fmt.Errorf("%w: max_batch must be 1 to %d", ErrUsage, protocol.MaxBatchLimit)
		}
		terms.Limits.MaxBatch = uint16(k.MaxBatch)
	}
	if k.Suite == protocol.SuiteTAE3 {
		terms.Generation = 1
	}
	_, _ = rand.Read(terms.Keyset[:])
	for _, name := range k.Modes {
		m, err := protocol.ParseMode(name)
		if err != nil {
			return KeysetInfo{}, fmt.Errorf("%w: unknown mode %q; there are sealed, layered, lattice and recrypt", ErrUsage, name)
		}
		terms.Modes |= protocol.ModesOf(m)
	}
	if terms.Modes.Has(protocol.ModeLayered) {
		if k.Layers < 1 || k.Layers > protocol.MaxLayers {
			return KeysetInfo{}, fmt.Errorf("%w: layers must be 1 to %d", ErrUsage, protocol.MaxLayers)
		}
		terms.Layers = uint8(k.Layers)
	}
	if err := terms.Validate(k.AllowOne || n.cfg.AllowOne); err != nil {
		return KeysetInfo{}, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.propose(terms, k.AllowOne)
}

// propose signs the terms as a proposal and accepts them. Callers hold mu.
func (n *Node) propose(terms *protocol.Terms, allowOne bool) (KeysetInfo, error) {
	if err := n.checkTerms(terms, allowOne || n.cfg.AllowOne); err != nil {
		return KeysetInfo{}, err
	}
	for _, p := range n.pending {
		if p.terms.Name == terms.Name {
			return KeysetInfo{}, fmt.Errorf("%w: %s proposed it and it waits for `tae-node keyset accept %s`", ErrNameTaken, n.name(p.statement.Sender), terms.Name)
		}
	}
	id := keygen.IDOf(terms)
	n.pending[id] = &proposal{keygen.Propose(terms, n.cfg.Self, n.cfg.Key), terms}
	if err := n.accept(id); err != nil {
		delete(n.pending, id)
		return KeysetInfo{}, err
	}
	return n.info(id), nil
}

// Accept accepts the pending proposal of that name.
func (n *Node) Accept(name string) (KeysetInfo, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, p := range n.pending {
		if p.terms.Name != name {
			continue
		}
		if err := n.checkTerms(p.terms, n.cfg.AllowOne); err != nil {
			return KeysetInfo{}, err
		}
		if err := n.accept(id); err != nil {
			return KeysetInfo{}, err
		}
		return n.info(id), nil
	}
	return KeysetInfo{}, fmt.Errorf("%w: no proposal named %s waits here", ErrUnknownKeyset, name)
}

// Abort gives up this node's part in the running attempt of that name, or refuses
// its proposal. The attempt is over when all members have done so.
func (n *Node) Abort(name string) (KeysetInfo, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, p := range n.pending {
		if p.terms.Name == name {
			if err := n.accept(id); err != nil { // to have a state in which abandon is recorded
				return KeysetInfo{}, err
			}
			return n.abandon(id)
		}
	}
	for id, c := range n.attempts {
		if c.attempt.Terms().Name == name && c.running() {
			return n.abandon(id)
		}
	}
	return KeysetInfo{}, fmt.Errorf("%w: nothing named %s is being made", ErrUnknownKeyset, name)
}

func (n *Node) abandon(id keygen.ID) (KeysetInfo, error) {
	if err := n.attempts[id].attempt.Abandon(); err != nil {
		return KeysetInfo{}, err
	}
	if !n.store(id) {
		return KeysetInfo{}, errors.New("cannot store the decision; see the node's log")
	}
	n.advance(id)
	n.poke()
	return n.info(id), nil
}

// Retry proposes the next attempt at a keyset whose last one all members abandoned.
func (n *Node) Retry(name string) (KeysetInfo, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var last *protocol.Terms
	for _, c := range n.attempts {
		if t := c.attempt.Terms(); t.Name == name && (last == nil || t.Attempt > last.Attempt) {
			last = t
		}
	}
	if last == nil {
		return KeysetInfo{}, fmt.Errorf("%w: %s", ErrUnknownKeyset, name)
	}
	next := *last
	next.Attempt++
	return n.propose(&next, next.T == 1)
}

// List describes every keyset that this node knows, by name.
func (n *Node) List() []KeysetInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []KeysetInfo
	for id := range n.attempts {
		list = append(list, n.info(id))
	}
	for id, p := range n.pending {
		k := infoOf(id, p.terms)
		k.State = "proposed"
		k.Proposer = n.name(p.statement.Sender)
		list = append(list, k)
	}
	for id, why := range n.damaged {
		list = append(list, KeysetInfo{Name: n.index[id], ID: id.Keyset.String(), Epoch: id.Epoch, Attempt: id.Attempt, State: "damaged: " + why, id: id})
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := list[i], list[j]
		if a.Name != b.Name {
			return a.Name < b.Name
		}
		return fileOf(a.id) < fileOf(b.id)
	})
	return list
}

func infoOf(id keygen.ID, t *protocol.Terms) KeysetInfo {
	k := KeysetInfo{Name: t.Name, ID: id.Keyset.String(), Suite: t.Suite.String(), N: t.N, T: t.T, Epoch: id.Epoch, Attempt: id.Attempt, id: id, suite: t.Suite}
	for _, m := range t.Modes.List() {
		k.Modes = append(k.Modes, m.String())
	}
	return k
}

// info describes one attempt. Callers hold mu.
func (n *Node) info(id keygen.ID) KeysetInfo {
	c := n.attempts[id]
	k := infoOf(id, c.attempt.Terms())
	k.State = c.attempt.Phase().String()
	if c.attempt.Phase() == keygen.Complete {
		k.State, k.Serving = "active", true
		return k
	}
	if f := c.attempt.Fault(); f != nil {
		k.State += ": " + f.Error()
	}
	k.Missing = n.names(c.attempt.Missing())
	for peer, text := range c.peers {
		if text != "" {
			if k.Problems == nil {
				k.Problems = map[string]string{}
			}
			k.Problems[n.name(peer)] = text
		}
	}
	return k
}

// Warnings says what an operator should know about parameters before proposing
// them.
func Warnings(p dprf.Params) []string {
	w := []string{fmt.Sprintf("any %d of %d nodes acting together can encrypt, decrypt and rotate; up to %d may be down", p.T, p.N, p.N-p.T)}
	if p.T == p.N {
		w = append(w, "warning: with t = n the loss of one node loses the keyset")
	}
	if p.T == 1 {
		w = append(w, "warning: with t = 1 every single node can decrypt")
	}
	return w
}
