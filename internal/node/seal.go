package node

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/chacha20poly1305"

	"github.com/seed-a893640b/tae/internal/disk"
	"github.com/seed-a893640b/tae/internal/labelhash"
	"github.com/seed-a893640b/tae/internal/secret"
)

const (
	sealFile  = "seal.tae"
	sealMagic = "TAES"
	fileMagic = "TAEF"

	fileVersion = 1

	labelSealCheck = "tae/v1/seal-check"
	labelSealKey   = "tae/v1/seal-key"
)

// Errors of stored files. Each is wrapped with the file's name and the remedy.
var (
	ErrPassphrase = errors.New("wrong passphrase")
	ErrDamaged    = errors.New("damaged file")
	ErrForeign    = errors.New("file of another node or kind")
)

// SealCost is the cost of turning the passphrase into a key, once per start.
type SealCost struct {
	Time      uint32
	MemoryKiB uint32
	Threads   uint8
}

// DefaultSealCost is the second recommendation of RFC 9106 section 4: 64 MiB.
var DefaultSealCost = SealCost{Time: 3, MemoryKiB: 64 << 10, Threads: 4}

// A Sealer encrypts the files of one node directory under its passphrase
// (docs/spec.md section 11). Safe for concurrent use.
type Sealer struct {
	fs  disk.FS
	key secret.Bytes
}

// seal.tae: magic, version, time, memory, threads, salt, check, SHA-256 of all that.
const sealSize = 4 + 1 + 4 + 4 + 1 + 16 + 32 + 32

// NewSealer writes seal.tae into a new node directory and returns its sealer.
func NewSealer(fsys disk.FS, passphrase secret.Bytes, cost SealCost) (*Sealer, error) {
	if _, err := fsys.ReadFile(sealFile); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s exists already", sealFile)
	}
	var salt [16]byte
	_, _ = rand.Read(salt[:])
	master := stretch(passphrase, salt[:], cost)
	b := append([]byte(sealMagic), fileVersion)
	b = binary.BigEndian.AppendUint32(b, cost.Time)
	b = binary.BigEndian.AppendUint32(b, cost.MemoryKiB)
	b = append(append(b, cost.Threads), salt[:]...)
	check := labelhash.New(labelSealCheck).Fixed(master.Expose()).Sum()
	b = append(b, check[:]...)
	sum := sha256.Sum256(b)
	if err := fsys.WriteFileAtomic(sealFile, append(b, sum[:]...), 0o600); err != nil {
		return nil, err
	}
	return newSealer(fsys, master), nil
}

// OpenSealer reads seal.tae and checks the passphrase.
func OpenSealer(fsys disk.FS, passphrase secret.Bytes) (*Sealer, error) {
	b, err := fsys.ReadFile(sealFile)
	if err != nil {
		return nil, fmt.Errorf("%w; is this a node directory? `tae-node init` makes one", err)
	}
	if len(b) != sealSize || string(b[:4]) != sealMagic || sha256.Sum256(b[:sealSize-32]) != [32]byte(b[sealSize-32:]) {
		return nil, fmt.Errorf("%s: %w; restore it from a backup of this directory", sealFile, ErrDamaged)
	}
	if b[4] != fileVersion {
		return nil, fmt.Errorf("%s: version %d, this program reads %d", sealFile, b[4], fileVersion)
	}
	cost := SealCost{binary.BigEndian.Uint32(b[5:]), binary.BigEndian.Uint32(b[9:]), b[13]}
	// The checksum is not secret, so the costs may be anybody's: bound them.
	if cost.Time < 1 || cost.Time > 64 || cost.MemoryKiB > 4<<20 || cost.Threads < 1 {
		return nil, fmt.Errorf("%s: %w: unreasonable cost", sealFile, ErrDamaged)
	}
	master := stretch(passphrase, b[14:30], cost)
	check := labelhash.New(labelSealCheck).Fixed(master.Expose()).Sum()
	if !secret.New(check[:]).Equal(secret.Copy(b[30:62])) {
		return nil, fmt.Errorf("%s: %w", sealFile, ErrPassphrase)
	}
	return newSealer(fsys, master), nil
}

func stretch(passphrase secret.Bytes, salt []byte, c SealCost) secret.Bytes {
	return secret.New(argon2.IDKey(passphrase.Expose(), salt, c.Time, c.MemoryKiB, c.Threads, 32))
}

func newSealer(fsys disk.FS, master secret.Bytes) *Sealer {
	key := labelhash.New(labelSealKey).Fixed(master.Expose()).Sum()
	master.Wipe()
	return &Sealer{fs: fsys, key: secret.New(key[:])}
}

// fileHead is the clear start of a sealed file; name binds it to its place.
func fileHead(name string) []byte {
	b := append([]byte(fileMagic), fileVersion, byte(len(name)))
	return append(b, name...)
}

// Write seals content into the file.
func (s *Sealer) Write(name string, content secret.Bytes) error {
	aead, err := chacha20poly1305.NewX(s.key.Expose())
	if err != nil {
		return err
	}
	b := fileHead(name)
	head := len(b)
	nonce := make([]byte, chacha20poly1305.NonceSizeX)
	_, _ = rand.Read(nonce)
	b = append(b, nonce...)
	b = aead.Seal(b, nonce, content.Expose(), b[:head])
	sum := sha256.Sum256(b)
	return s.fs.WriteFileAtomic(name, append(b, sum[:]...), 0o600)
}

// Read opens a sealed file. The checksum tells damage from a wrong key.
func (s *Sealer) Read(name string) (secret.Bytes, error) {
	b, err := s.fs.ReadFile(name)
	if err != nil {
		return secret.Bytes{}, err
	}
	head := fileHead(name)
	const nonceSize = chacha20poly1305.NonceSizeX
	n := len(b) - sha256.Size
	if n < 0 || sha256.Sum256(b[:max(n, 0)]) != [32]byte(b[max(n, 0):]) {
		return secret.Bytes{}, fmt.Errorf("%s: %w: its checksum does not fit", name, ErrDamaged)
	}
	if n < 6 || string(b[:4]) != fileMagic {
		return secret.Bytes{}, fmt.Errorf("%s: %w: not a sealed file", name, ErrForeign)
	}
	if b[4] != fileVersion {
		return secret.Bytes{}, fmt.Errorf("%s: version %d, this program reads %d", name, b[4], fileVersion)
	}
	if n < len(head)+nonceSize || !bytes.Equal(b[:len(head)], head) {
		return secret.Bytes{}, fmt.Errorf("%s: %w: it was written under another name", name, ErrForeign)
	}
	aead, err := chacha20poly1305.NewX(s.key.Expose())
	if err != nil {
		return secret.Bytes{}, err
	}
	content, err := aead.Open(nil, b[len(head):][:nonceSize], b[len(head)+nonceSize:n], head)
	if err != nil {
		return secret.Bytes{}, fmt.Errorf("%s: %w: it does not open with this directory's passphrase", name, ErrForeign)
	}
	return secret.New(content), nil
}
