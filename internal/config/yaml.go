// Package config reads the configuration files: cluster.yaml, node.yaml,
// policy.yaml and client.yaml, and the key files beside them. Unknown and repeated
// keys are errors, and every error names the file and the field.
package config

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed-a893640b/tae/sig"
)

// ErrConfig marks every error of this package.
var ErrConfig = errors.New("configuration")

// version is that of all configuration files.
const version = 1

func fail(file, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrConfig, file, fmt.Sprintf(format, args...))
}

// load reads a YAML file strictly into v.
func load(file string, v any) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return parse(file, b, v)
}

func parse(file string, b []byte, v any) error {
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(v); err != nil {
		if errors.Is(err, io.EOF) {
			return fail(file, "is empty")
		}
		text := strings.ReplaceAll(err.Error(), "\n", "; ")
		return fail(file, "%s", strings.TrimPrefix(text, "yaml: "))
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return fail(file, "holds more than one document")
	}
	return nil
}

// save writes v as YAML behind a comment, for the user to edit.
func save(file, comment string, v any, perm os.FileMode) error {
	b, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	out := append([]byte("# "+strings.ReplaceAll(comment, "\n", "\n# ")+"\n"), b...)
	return os.WriteFile(file, out, perm)
}

// resolve makes a path in a configuration file relative to that file.
func resolve(file, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// A PublicKey is an Ed25519 public key, written "ed25519:" and 64 hexadecimal
// digits.
type PublicKey [32]byte

const keyPrefix = "ed25519:"

func (k PublicKey) String() string { return keyPrefix + hex.EncodeToString(k[:]) }

// MarshalText implements encoding.TextMarshaler.
func (k PublicKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText refuses what is not a canonical key of full order.
func (k *PublicKey) UnmarshalText(text []byte) error {
	digits, ok := strings.CutPrefix(string(text), keyPrefix)
	b, err := hex.DecodeString(digits)
	if !ok || err != nil || len(b) != 32 {
		return fmt.Errorf("a public key is written %s and 64 hexadecimal digits", keyPrefix)
	}
	if err := sig.CheckPublicKey(b); err != nil {
		return err
	}
	*k = PublicKey(b)
	return nil
}

// A Duration is written as in "1m30s".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration such as 500ms or 1m30s", text)
	}
	*d = Duration(v)
	return nil
}
