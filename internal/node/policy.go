package node

import (
	"github.com/seed-a893640b/tae/internal/config"
	"github.com/seed-a893640b/tae/protocol"
)

// newGate turns the policy file into this node's decision. What is not listed is
// denied, and so is every member: nodes are not clients.
func newGate(cluster *config.Cluster, policy *config.Policy) protocol.Gate {
	type client struct {
		name    string
		keysets map[string]config.PolicyRights
	}
	clients := map[protocol.ClientKey]client{}
	for name, key := range cluster.Clients {
		clients[protocol.ClientKey(key)] = client{name, policy.Clients[name]}
	}
	return func(caller protocol.Caller, keyset string, op protocol.Op, _ int) *protocol.Refusal {
		c, ok := clients[caller.Key]
		if caller.Node != 0 || !ok {
			return &protocol.Refusal{Code: protocol.CodeDenied, Text: "not a client of this cluster"}
		}
		r, ok := c.keysets[keyset]
		if !ok {
			r = c.keysets[config.AnyKeyset]
		}
		if op == protocol.OpEncrypt && r.Encrypt || op == protocol.OpDecrypt && r.Decrypt || op == protocol.OpRotate && r.Rotate {
			return nil
		}
		return &protocol.Refusal{Code: protocol.CodeDenied, Text: "client " + c.name + " may not " + op.String() + " under keyset " + keyset}
	}
}
