// Package node is the daemon: what one node stores, allows, answers, and does with
// the other members (docs/spec.md sections 10 and 11). Its core, Node, knows
// neither libp2p nor the operating system: transport and disk are arguments, so
// that tests run whole clusters on simulated ones. Run wires the real ones.
package node

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/config"
	"github.com/seed-a893640b/tae/protocol"
	"github.com/seed-a893640b/tae/protocol/keygen"
)

// A Transport sends a request to another member.
type Transport interface {
	Call(ctx context.Context, to int, req []byte) ([]byte, error)
}

// A Config describes a node. It must not be modified after New.
type Config struct {
	Cluster    *config.Cluster
	Policy     *config.Policy
	Self       int // member index
	Key        ed25519.PrivateKey
	Sealer     *Sealer
	AutoAccept bool
	AllowOne   bool // admit t = 1
	Software   string
	Logger     *zap.Logger // nil: no log
}

// A Node is one member of the cluster. Safe for concurrent use.
type Node struct {
	cfg    Config
	log    *zap.Logger
	server atomic.Pointer[protocol.Server] // what clients are answered from

	mu       sync.Mutex
	attempts map[keygen.ID]*ceremony
	pending  map[keygen.ID]*proposal // not accepted here
	damaged  map[keygen.ID]string    // why a stored file is not used
	index    index
	wake     chan struct{}

	lastError map[keygen.ID]string // see logOnce
}

// proposal is a valid proposal that waits for this node's operator.
type proposal struct {
	statement *keygen.Statement
	terms     *protocol.Terms
}

// New loads a node from its directory. Keysets whose files are damaged are
// reported in the log and not served; the others are.
func New(cfg Config) (*Node, error) {
	if cfg.Self < 1 || cfg.Self > len(cfg.Cluster.Members) {
		return nil, fmt.Errorf("node: no member %d in the cluster", cfg.Self)
	}
	me := cfg.Cluster.Members[cfg.Self-1]
	if me.Key != config.PublicKey(cfg.Key.Public().(ed25519.PublicKey)) {
		return nil, fmt.Errorf("node: the cluster file gives %s the key %v, but this directory holds the key %v; "+
			"correct the cluster file or start with the right directory", me.Name, me.Key, config.PublicKey(cfg.Key.Public().(ed25519.PublicKey)))
	}
	n := &Node{cfg: cfg, log: cfg.Logger, attempts: map[keygen.ID]*ceremony{}, pending: map[keygen.ID]*proposal{},
		damaged: map[keygen.ID]string{}, wake: make(chan struct{}, 1)}
	if n.log == nil {
		n.log = zap.NewNop()
	}
	all, err := loadKeysets(cfg.Sealer, cfg.Self, cfg.Key)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.err != nil {
			n.damaged[s.id] = s.err.Error()
			n.log.Error("keyset not served", zap.String("keyset", s.id.Keyset.String()), zap.Error(s.err))
			continue
		}
		n.attempts[s.id] = newCeremony(s.attempt)
	}
	if err := n.reconcile(all); err != nil {
		return nil, err
	}
	n.rebuild()
	return n, nil
}

// rebuild makes the server that clients are answered from. Callers hold mu, or are
// New.
func (n *Node) rebuild() {
	keysets := map[protocol.KeysetID]*protocol.ServedKeyset{}
	for id, c := range n.attempts {
		cert := c.attempt.Certificate()
		if c.attempt.Phase() != keygen.Complete {
			continue
		}
		e := &protocol.Epoch{Certificate: cert, Encoded: cert.Append(nil), State: protocol.EpochActive}
		if err := n.loadShares(e, c.attempt); err != nil {
			n.log.Error("keyset not served", zap.String("keyset", cert.Name), zap.Error(err))
			continue
		}
		keysets[id.Keyset] = &protocol.ServedKeyset{Active: e, Epochs: map[uint16]*protocol.Epoch{id.Epoch: e}}
	}
	for id, why := range n.damaged {
		if keysets[id.Keyset] == nil {
			keysets[id.Keyset] = &protocol.ServedKeyset{Damaged: why}
		}
	}
	n.server.Store(protocol.NewServer(n.cfg.Self, newGate(n.cfg.Cluster, n.cfg.Policy), keysets))
}

// loadShares makes the attempt's keys ready for use.
func (n *Node) loadShares(e *protocol.Epoch, a *keygen.Attempt) (err error) {
	if e.Certificate.Suite == protocol.SuiteTAE1 {
		e.Share, err = dprf.NewShare(a.Terms().Layout(), n.cfg.Self, a.Keys())
		return err
	}
	e.TAE3 = &protocol.TAE3Epoch{NodeKey: n.cfg.Key}
	if e.TAE3.Share, e.TAE3.SigKey, err = a.Shares(); err != nil {
		return err
	}
	return e.Certificate.Prepare()
}

// Handle answers one request of a client or a member. It is total.
func (n *Node) Handle(_ context.Context, from protocol.Caller, req []byte) []byte {
	op := protocol.RequestOp(req)
	switch {
	case op == protocol.OpStatus:
		return n.status().Append(nil)
	case op < protocol.OpMember:
		return n.server.Load().Handle(from, req)
	case from.Node < 1 || from.Node > len(n.cfg.Cluster.Members):
		return refusal(protocol.CodeDenied, "only members of the cluster may ask this")
	}
	return n.handleMember(from.Node, op, req[2:])
}

func (n *Node) handleMember(from int, op protocol.Op, body []byte) []byte {
	switch op {
	case opExchange:
		e, err := readExchange(body)
		if err != nil {
			return refusal(protocol.CodeMalformed, "%v", err)
		}
		return n.handleExchange(from, e)
	case opReveal:
		id, transcript, err := readReveal(body)
		if err != nil {
			return refusal(protocol.CodeMalformed, "%v", err)
		}
		return n.handleReveal(from, id, transcript)
	}
	return refusal(protocol.CodeMalformed, "unknown operation %d", op)
}

// name is a member's name, for people.
func (n *Node) name(index int) string { return n.cfg.Cluster.Members[index-1].Name }

func (n *Node) names(indices []int) []string {
	list := make([]string, len(indices))
	for i, index := range indices {
		list[i] = n.name(index)
	}
	return list
}

// status is what this node says of itself.
func (n *Node) status() *protocol.NodeStatus {
	s := &protocol.NodeStatus{Node: n.name(n.cfg.Self), Software: n.cfg.Software, ClusterHash: n.cfg.Cluster.Hash()}
	for _, k := range n.List() {
		s.Keysets = append(s.Keysets, protocol.KeysetStatus{ID: k.id.Keyset, Name: k.Name, Suite: k.suite, N: uint8(k.N), T: uint8(k.T),
			Epoch: k.Epoch, Attempt: k.Attempt, State: k.State})
	}
	return s
}

// Errors of administration.
var (
	ErrUnknownKeyset = errors.New("no such keyset")
	ErrNameTaken     = errors.New("a keyset of this name exists")
	ErrUsage         = errors.New("bad parameters of a keyset")
)
