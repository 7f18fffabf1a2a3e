package protocol

import (
	"golang.org/x/crypto/cryptobyte"
)

// A NodeStatus is what a node says of itself to anyone who may connect. It is not
// signed: it is information, and nothing is decided by it.
type NodeStatus struct {
	Node        string // its name
	Software    string // program version
	ClusterHash [32]byte
	Keysets     []KeysetStatus
}

// A KeysetStatus is what a node holds of a keyset.
type KeysetStatus struct {
	ID      KeysetID
	Name    string
	Suite   Suite
	N, T    uint8
	Epoch   uint16
	Attempt uint16
	State   string // active, or what it waits for, or why it is not served
}

// StatusRequest asks a node for its status.
func StatusRequest() []byte { return []byte{wireVersion, byte(OpStatus)} }

const maxStatusText = 512

// Append appends the answer that carries the status.
func (n *NodeStatus) Append(b []byte) []byte {
	c := cryptobyte.NewBuilder(append(b, wireVersion, byte(CodeOK)))
	text := func(s string) {
		s = s[:min(len(s), maxStatusText)]
		c.AddUint16LengthPrefixed(func(c *cryptobyte.Builder) { c.AddBytes([]byte(s)) })
	}
	text(n.Node)
	text(n.Software)
	c.AddBytes(n.ClusterHash[:])
	c.AddUint16(uint16(len(n.Keysets)))
	for _, k := range n.Keysets {
		c.AddBytes(k.ID[:])
		text(k.Name)
		c.AddUint8(uint8(k.Suite))
		c.AddUint8(k.N)
		c.AddUint8(k.T)
		c.AddUint16(k.Epoch)
		c.AddUint16(k.Attempt)
		text(k.State)
	}
	return c.BytesOrPanic()
}

// ParseStatus reads the answer to StatusRequest. Texts come back printable.
func ParseStatus(answer []byte) (*NodeStatus, error) {
	b, err := OpenAnswer(answer)
	if err != nil {
		return nil, err
	}
	s := cryptobyte.String(b)
	n := new(NodeStatus)
	text := func(out *string) bool {
		var t cryptobyte.String
		ok := s.ReadUint16LengthPrefixed(&t) && len(t) <= maxStatusText
		*out = printable(t)
		return ok
	}
	var count uint16
	if !text(&n.Node) || !text(&n.Software) || !s.CopyBytes(n.ClusterHash[:]) || !s.ReadUint16(&count) {
		return nil, ErrAnswer
	}
	for range count {
		var k KeysetStatus
		var suite uint8
		if !s.CopyBytes(k.ID[:]) || !text(&k.Name) || !s.ReadUint8(&suite) || !s.ReadUint8(&k.N) || !s.ReadUint8(&k.T) ||
			!s.ReadUint16(&k.Epoch) || !s.ReadUint16(&k.Attempt) || !text(&k.State) {
			return nil, ErrAnswer
		}
		k.Suite = Suite(suite)
		n.Keysets = append(n.Keysets, k)
	}
	if !s.Empty() {
		return nil, ErrAnswer
	}
	return n, nil
}
