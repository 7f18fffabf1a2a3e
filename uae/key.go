package uae

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/seed-a893640b/tae/internal/secret"
)

// KeySize is the length of an encoded key in bytes: magic "UAEK", version,
// scheme, parameter (2) and 32 secret bytes.
const KeySize = 8 + 32

const (
	keyMagic   = "UAEK"
	keyVersion = 1

	// fmt reads unexported fields without their methods, so a Key must redact
	// by itself.
	redacted = "[uae key]"
)

// SchemeID numbers the schemes in every format.
type SchemeID byte

// The schemes. Zero is not a scheme.
const (
	Nested  SchemeID = 1
	Lattice SchemeID = 2
	ReCrypt SchemeID = 3
)

// A Key opens and updates the ciphertexts of one scheme with one parameter: the
// bound t for nested, the parameter set for lattice, 0 for recrypt. The zero
// Key is of no scheme. Printing a Key does not show it.
type Key struct {
	scheme SchemeID
	param  uint16
	root   secret.Bytes
}

// NewKey draws a key from crypto/rand. Applications call a scheme's KeyGen.
func NewKey(scheme SchemeID, param uint16) Key {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // crypto/rand.Read never fails
	return Key{scheme, param, secret.New(b)}
}

// ParseKey reads an encoded key, which it copies. The errors are ErrFormat and
// ErrVersion, and never quote the input.
func ParseKey(b []byte) (Key, error) {
	if len(b) != KeySize || string(b[:4]) != keyMagic {
		return Key{}, fmt.Errorf("%w key", ErrFormat)
	}
	if b[4] != keyVersion {
		return Key{}, ErrVersion
	}
	if b[5] < byte(Nested) || b[5] > byte(ReCrypt) {
		return Key{}, ErrScheme
	}
	return Key{SchemeID(b[5]), binary.BigEndian.Uint16(b[6:]), secret.Copy(b[8:])}, nil
}

// ExposeSecret appends the encoded key, KeySize bytes, to dst.
func (k Key) ExposeSecret(dst []byte) []byte {
	dst = append(dst, keyMagic...)
	dst = append(dst, keyVersion, byte(k.scheme))
	dst = binary.BigEndian.AppendUint16(dst, k.param)
	return append(dst, k.root.Expose()...)
}

// ExposeRoot returns the 32 secret bytes, not a copy, if the key is of this scheme
// and parameter, else ErrScheme. It is for the packages of the schemes.
func (k Key) ExposeRoot(scheme SchemeID, param uint16) ([]byte, error) {
	if k.scheme != scheme || k.param != param || k.root.Len() != 32 {
		return nil, fmt.Errorf("%w: key", ErrScheme)
	}
	return k.root.Expose(), nil
}

// String, GoString, Format and MarshalText redact.
func (k Key) String() string               { return redacted }
func (k Key) GoString() string             { return redacted }
func (k Key) Format(f fmt.State, _ rune)   { _, _ = f.Write([]byte(redacted)) }
func (k Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Wipe overwrites the key and all its copies; best effort in Go.
func (k Key) Wipe() { k.root.Wipe() }

// Equal compares in constant time; scheme and parameter are public.
func (k Key) Equal(o Key) bool {
	return k.scheme == o.scheme && k.param == o.param && k.root.Equal(o.root)
}
