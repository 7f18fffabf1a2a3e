package protocol

import (
	"encoding/hex"
	"errors"
	"fmt"
)

// Suite is the kind of distributed PRF of a keyset.
type Suite uint8

// SuiteTAE1 is the replicated symmetric suite, SuiteTAE3 the public-key suite whose
// answers can be verified.
const (
	SuiteTAE1 Suite = 1
	SuiteTAE3 Suite = 3
)

func (s Suite) String() string {
	switch s {
	case SuiteTAE1:
		return "tae1"
	case SuiteTAE3:
		return "tae3"
	}
	return fmt.Sprintf("suite %d", uint8(s))
}

// ParseSuite is the inverse of Suite.String.
func ParseSuite(s string) (Suite, error) {
	for _, suite := range []Suite{SuiteTAE1, SuiteTAE3} {
		if suite.String() == s {
			return suite, nil
		}
	}
	return 0, fmt.Errorf("protocol: unknown suite %q; there are tae1 and tae3", s)
}

// Mode is how an object moves to a new epoch (section 3).
type Mode uint8

// The modes of the format. This version writes and reads ModeSealed.
const (
	ModeSealed  Mode = 1
	ModeLayered Mode = 2
	ModeLattice Mode = 3
	ModeRecrypt Mode = 4
)

var modeNames = [...]string{ModeSealed: "sealed", ModeLayered: "layered", ModeLattice: "lattice", ModeRecrypt: "recrypt"}

func (m Mode) String() string {
	if m >= ModeSealed && int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// ParseMode is the inverse of Mode.String.
func ParseMode(s string) (Mode, error) {
	for m := ModeSealed; int(m) < len(modeNames); m++ {
		if modeNames[m] == s {
			return m, nil
		}
	}
	return 0, fmt.Errorf("protocol: unknown mode %q", s)
}

// Modes is a set of modes; bit m-1 stands for mode m.
type Modes uint8

// ModesOf returns the set of the given modes.
func ModesOf(modes ...Mode) (s Modes) {
	for _, m := range modes {
		s |= 1 << (m - 1)
	}
	return s
}

// Has reports whether m is in the set.
func (s Modes) Has(m Mode) bool { return m >= 1 && m <= 8 && s>>(m-1)&1 == 1 }

// List names the modes in the set, ascending.
func (s Modes) List() (modes []Mode) {
	for m := ModeSealed; m <= 8; m++ {
		if s.Has(m) {
			modes = append(modes, m)
		}
	}
	return modes
}

// Kind is how the body of an object is written (section 7).
type Kind uint8

// A message is checked whole before release; a file and a pipe are streams of
// chunks. A file's commitment covers its whole body, a pipe's only its start.
const (
	KindMessage Kind = 0
	KindFile    Kind = 1
	KindPipe    Kind = 2
)

func (k Kind) String() string {
	switch k {
	case KindMessage:
		return "message"
	case KindFile:
		return "file"
	case KindPipe:
		return "pipe"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// KeysetID is the random identity of a keyset.
type KeysetID [16]byte

func (id KeysetID) String() string { return hex.EncodeToString(id[:]) }

// Identity is an object's identity: what the DPRF is evaluated on.
type Identity [32]byte

func (id Identity) String() string { return hex.EncodeToString(id[:]) }

// ClientKey is a client's raw Ed25519 public key, called j in the spec.
type ClientKey [32]byte

func (k ClientKey) String() string { return hex.EncodeToString(k[:]) }

// Caller is who sent a request, as authenticated by the transport: a client by
// its key, or a member of the cluster by its index.
type Caller struct {
	Key  ClientKey
	Node int // 0 for a client
}

// Op is an operation that a policy allows or denies.
type Op uint8

// Operations on objects; a node answers one without helping with another.
const (
	OpEncrypt Op = 1
	OpDecrypt Op = 2
	OpRotate  Op = 3
)

func (o Op) String() string {
	switch o {
	case OpEncrypt:
		return "encrypt"
	case OpDecrypt:
		return "decrypt"
	case OpRotate:
		return "rotate"
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// MaxNameLen bounds a keyset's name in bytes.
const MaxNameLen = 64

// ErrName reports a name that no keyset can have.
var ErrName = errors.New("protocol: a keyset name has 1 to 64 characters of a-z, 0-9, '-', '_' and '.', the first a letter or digit")

// CheckName checks a keyset's name.
func CheckName(name string) error {
	if len(name) < 1 || len(name) > MaxNameLen {
		return ErrName
	}
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '_' && c != '.') {
			return ErrName
		}
	}
	return nil
}
