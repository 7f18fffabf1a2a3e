package node

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/protocol/keygen"
)

const (
	keysetDir   = "keysets"
	keyFile     = "node.key"
	keysetFiles = ".keys"
)

// fileOf is where an attempt's state is stored: one small file per keyset, epoch
// and attempt.
func fileOf(id keygen.ID) string {
	return fmt.Sprintf("%s/%v-%d-%d%s", keysetDir, id.Keyset, id.Epoch, id.Attempt, keysetFiles)
}

func idOfFile(name string) (id keygen.ID, ok bool) {
	base, ok := strings.CutSuffix(name, keysetFiles)
	parts := strings.Split(base, "-")
	if !ok || len(parts) != 3 {
		return id, false
	}
	b, err := hex.DecodeString(parts[0])
	epoch, err2 := strconv.ParseUint(parts[1], 10, 16)
	attempt, err3 := strconv.ParseUint(parts[2], 10, 16)
	if err != nil || err2 != nil || err3 != nil || len(b) != len(id.Keyset) {
		return id, false
	}
	id = keygen.ID{Keyset: [16]byte(b), Epoch: uint16(epoch), Attempt: uint16(attempt)}
	return id, fileOf(id) == keysetDir+"/"+name
}

// stored is one attempt's file as it was found at start.
type stored struct {
	id      keygen.ID
	attempt *keygen.Attempt
	err     error // why it cannot be used; the other keysets still are
}

// loadKeysets reads all keyset files. A file that cannot be used stops its keyset,
// not the node.
func loadKeysets(s *Sealer, self int, key ed25519.PrivateKey) ([]stored, error) {
	if err := s.fs.MkdirAll(keysetDir, 0o700); err != nil {
		return nil, err
	}
	names, err := s.fs.List(keysetDir)
	if err != nil {
		return nil, err
	}
	var all []stored
	for _, name := range names {
		id, ok := idOfFile(name)
		if !ok {
			continue
		}
		a, err := loadKeyset(s, id, self, key)
		if err != nil {
			err = fmt.Errorf("%w; restore %s from a backup of this directory; without it this node cannot serve the keyset", err, fileOf(id))
		}
		all = append(all, stored{id, a, err})
	}
	return all, nil
}

func loadKeyset(s *Sealer, id keygen.ID, self int, key ed25519.PrivateKey) (*keygen.Attempt, error) {
	state, err := s.Read(fileOf(id))
	if err != nil {
		return nil, err
	}
	defer state.Wipe()
	a, err := keygen.Restore(state, self, key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fileOf(id), err)
	}
	if keygen.IDOf(a.Terms()) != id {
		return nil, fmt.Errorf("%s: %w: it holds %v", fileOf(id), ErrForeign, keygen.IDOf(a.Terms()))
	}
	return a, nil
}

// save stores the state of an attempt durably.
func save(s *Sealer, a *keygen.Attempt) error {
	state := a.Marshal()
	defer state.Wipe()
	return s.Write(fileOf(keygen.IDOf(a.Terms())), state)
}

// CreateIdentity makes the node's key in a new directory.
func CreateIdentity(s *Sealer) (ed25519.PublicKey, error) {
	if _, err := s.fs.ReadFile(keyFile); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s exists already", keyFile)
	}
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	return pub, s.Write(keyFile, secret.New(key.Seed()))
}

// LoadIdentity reads the node's key.
func LoadIdentity(s *Sealer) (ed25519.PrivateKey, error) {
	seed, err := s.Read(keyFile)
	if err != nil {
		return nil, fmt.Errorf("%w; restore it from a backup of this directory", err)
	}
	defer seed.Wipe()
	if seed.Len() != ed25519.SeedSize {
		return nil, fmt.Errorf("%s: %w", keyFile, ErrDamaged)
	}
	return ed25519.NewKeyFromSeed(seed.Expose()), nil
}
