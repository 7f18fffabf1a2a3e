package protocol

import (
	"fmt"
	"io"
)

// Types that hold secrets print their name only, under every verb, whether printed as
// a value or through a pointer.

func redact(s fmt.State, what string) { _, _ = io.WriteString(s, what+" [redacted]") }

// Format redacts.
func (Author) Format(s fmt.State, _ rune) { redact(s, "author") }

// Format redacts.
func (Encryption) Format(s fmt.State, _ rune) { redact(s, "encryption") }

// Format redacts.
func (Stream) Format(s fmt.State, _ rune) { redact(s, "stream") }

// Format redacts.
func (BodyWriter) Format(s fmt.State, _ rune) { redact(s, "body writer") }

// Format redacts.
func (BodyReader) Format(s fmt.State, _ rune) { redact(s, "body reader") }

// Format redacts.
func (EncryptRound) Format(s fmt.State, _ rune) { redact(s, "encrypt round") }

// Format redacts.
func (Decryption) Format(s fmt.State, _ rune) { redact(s, "decryption") }

// Format redacts.
func (DecryptRound) Format(s fmt.State, _ rune) { redact(s, "decrypt round") }

// Format redacts.
func (VerifiedEncryptRound) Format(s fmt.State, _ rune) { redact(s, "encrypt round") }

// Format redacts.
func (VerifiedDecryptRound) Format(s fmt.State, _ rune) { redact(s, "decrypt round") }

// Format redacts.
func (Opened) Format(s fmt.State, _ rune) { redact(s, "opened object") }

// Format leaves the values out.
func (e *Evidence) Format(s fmt.State, _ rune) {
	redact(s, fmt.Sprintf("evidence against node %d", e.Node()))
}

// Format redacts.
func (TAE3Epoch) Format(s fmt.State, _ rune) { redact(s, "shares") }

// Format redacts.
func (Rho) Format(s fmt.State, _ rune) { redact(s, "rho") }
