package dprf

import (
	"fmt"
	"io"
)

// Format redacts under every verb.
func (Share) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "share [redacted]") }

// Format redacts under every verb.
func (DDHShare) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "share [redacted]") }
