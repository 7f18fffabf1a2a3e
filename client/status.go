package client

import (
	"context"
	"time"

	"github.com/seed-a893640b/tae/protocol"
)

// A NodeStatus is what a node says of itself; nothing is decided by it.
type NodeStatus struct {
	NodeResult
	Software    string
	ClusterHash [32]byte
	RTT         time.Duration
	Keysets     []KeysetStatus
}

// A KeysetStatus is what a node holds of a keyset.
type KeysetStatus struct {
	Name    string
	ID      string
	Suite   string
	N, T    int
	Epoch   int
	Attempt int
	State   string
}

// Status asks every node for its status. Nodes that do not answer have Err set.
func (c *Client) Status(ctx context.Context) ([]NodeStatus, error) {
	ctx, cancel, err := c.bound(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	list := make([]NodeStatus, len(c.opts.members))
	begun := time.Now()
	results := c.askAll(ctx, protocol.StatusRequest(), 1, func(node int, answer []byte) (bool, error) {
		s, err := protocol.ParseStatus(answer)
		if err != nil {
			return false, err
		}
		list[node-1] = NodeStatus{Software: s.Software, ClusterHash: s.ClusterHash, RTT: time.Since(begun)}
		for _, k := range s.Keysets {
			list[node-1].Keysets = append(list[node-1].Keysets, KeysetStatus{Name: k.Name, ID: k.ID.String(), Suite: k.Suite.String(),
				N: int(k.N), T: int(k.T), Epoch: int(k.Epoch), Attempt: int(k.Attempt), State: k.State})
		}
		return false, nil
	})
	for i := range list {
		list[i].NodeResult = results[i]
	}
	return list, nil
}
