package node

import (
	"testing"

	"github.com/seed-a893640b/tae/internal/config"
	"github.com/seed-a893640b/tae/protocol"
)

func TestGate(t *testing.T) {
	cluster := &config.Cluster{Clients: map[string]config.PublicKey{"writer": {1}, "any": {2}, "unlisted": {3}}}
	policy := &config.Policy{Clients: map[string]map[string]config.PolicyRights{
		"writer": {"orders": {Encrypt: true}},
		"any":    {config.AnyKeyset: {Decrypt: true}, "orders": {}},
	}}
	gate := newGate(cluster, policy)
	for _, c := range []struct {
		key    byte
		node   int
		keyset string
		op     protocol.Op
		want   bool
	}{
		{1, 0, "orders", protocol.OpEncrypt, true},
		{1, 0, "orders", protocol.OpDecrypt, false},
		{1, 0, "orders", protocol.OpRotate, false},
		{1, 0, "other", protocol.OpEncrypt, false},
		{1, 2, "orders", protocol.OpEncrypt, false}, // a member is no client
		{2, 0, "other", protocol.OpDecrypt, true},
		{2, 0, "orders", protocol.OpDecrypt, false}, // its own entry counts
		{3, 0, "orders", protocol.OpEncrypt, false},
		{9, 0, "orders", protocol.OpEncrypt, false},
		{1, 0, "orders", protocol.Op(99), false},
	} {
		refusal := gate(protocol.Caller{Key: protocol.ClientKey{c.key}, Node: c.node}, c.keyset, c.op, 1)
		if (refusal == nil) != c.want {
			t.Errorf("%+v: %v", c, refusal)
		}
		if refusal != nil && refusal.Code != protocol.CodeDenied {
			t.Errorf("%+v: code %v", c, refusal.Code)
		}
	}
}
