// Package secret holds byte strings that must not leak by accident: every
// formatter prints a placeholder, comparison is constant time, and Wipe
// overwrites the memory.
//
// Wiping is best effort: the Go runtime may have copied the bytes before (stack
// growth, conversions), and a swapped page or a core dump is out of its reach.
package secret

import (
	"crypto/subtle"
	"fmt"
)

const redacted = "[redacted]"

// Bytes is a secret byte string. The zero value is empty. It is not safe for
// concurrent use with Wipe.
type Bytes struct {
	_ [0]func() // not comparable: == is not constant time
	b []byte
}

// New takes ownership of b: the caller must not keep or change it.
func New(b []byte) Bytes { return Bytes{b: b} }

// Copy returns a secret with its own copy of b.
func Copy(b []byte) Bytes { return Bytes{b: append([]byte(nil), b...)} }

// Expose returns the bytes themselves, not a copy. Its name is meant to be
// searched for in review.
func (s Bytes) Expose() []byte { return s.b }

// Len is the number of bytes.
func (s Bytes) Len() int { return len(s.b) }

// Equal compares in constant time for equal lengths; the lengths are public.
func (s Bytes) Equal(o Bytes) bool { return subtle.ConstantTimeCompare(s.b, o.b) == 1 }

// Wipe overwrites the bytes with zeros.
func (s Bytes) Wipe() { clear(s.b) }

// String, GoString, Format, MarshalText and MarshalJSON redact: a secret that is
// printed, logged or encoded by mistake shows a placeholder. zap and slog end in
// one of them.
func (s Bytes) String() string               { return redacted }
func (s Bytes) GoString() string             { return redacted }
func (s Bytes) Format(f fmt.State, _ rune)   { _, _ = f.Write([]byte(redacted)) }
func (s Bytes) MarshalText() ([]byte, error) { return []byte(redacted), nil }
func (s Bytes) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }
