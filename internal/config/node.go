package config

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/seed-a893640b/tae/internal/secret"
)

// A Node is node.yaml. Paths are relative to the file.
type Node struct {
	Version    int        `yaml:"version"`
	Name       string     `yaml:"name"`
	Cluster    string     `yaml:"cluster"`         // path of cluster.yaml
	Policy     string     `yaml:"policy"`          // path of policy.yaml
	Listen     []string   `yaml:"listen,flow"`     // multiaddrs; default: the addresses of the cluster file
	Passphrase Passphrase `yaml:"passphrase,flow"` // where the passphrase of the stored keys comes from
	AutoAccept bool       `yaml:"auto_accept"`     // accept every valid proposal of a member
	QUIC       bool       `yaml:"quic"`            // also use /udp/.../quic-v1 addresses
	// InsecureThresholdOne admits keysets in which every single node can decrypt.
	InsecureThresholdOne bool       `yaml:"insecure_threshold_one"`
	Limits               NodeLimits `yaml:"limits,flow"`
	LogLevel             string     `yaml:"log_level"` // debug, info, warn or error; default info
}

// NodeLimits bound what a node does at once.
type NodeLimits struct {
	InFlight int `yaml:"in_flight"` // requests of one peer; default 128
	Workers  int `yaml:"workers"`   // requests of all peers running at once; default 8 per processor
}

// A Passphrase says where to read the passphrase: exactly one field is set.
type Passphrase struct {
	File       string `yaml:"file,omitempty"`       // a file readable by the node only
	FDEnv      string `yaml:"fd_env,omitempty"`     // an environment variable that holds a file descriptor's number
	Credential string `yaml:"credential,omitempty"` // a systemd credential's name
}

// LoadNode reads and checks node.yaml.
func LoadNode(file string) (*Node, error) {
	n := new(Node)
	if err := load(file, n); err != nil {
		return nil, err
	}
	if n.Version != version {
		return nil, fail(file, "version: is %d, this program reads %d", n.Version, version)
	}
	if !namePattern.MatchString(n.Name) {
		return nil, fail(file, "name: %q: %s", n.Name, nameRule)
	}
	if n.Cluster == "" || n.Policy == "" {
		return nil, fail(file, "cluster and policy: both paths are needed")
	}
	set := 0
	for _, s := range []string{n.Passphrase.File, n.Passphrase.FDEnv, n.Passphrase.Credential} {
		if s != "" {
			set++
		}
	}
	if set != 1 {
		return nil, fail(file, "passphrase: set exactly one of file, fd_env and credential")
	}
	if n.Limits.InFlight < 0 || n.Limits.Workers < 0 {
		return nil, fail(file, "limits: must not be negative")
	}
	switch n.LogLevel {
	case "", "debug", "info", "warn", "error":
	default:
		return nil, fail(file, "log_level: %q is not debug, info, warn or error", n.LogLevel)
	}
	n.Cluster, n.Policy, n.Passphrase.File = resolve(file, n.Cluster), resolve(file, n.Policy), resolve(file, n.Passphrase.File)
	return n, nil
}

// Save writes node.yaml.
func (n *Node) Save(file string) error {
	return save(file, "One node of the cluster. Paths are relative to this file.", n, 0o600)
}

// Read reads the passphrase. A trailing line end is not part of it.
func (p Passphrase) Read() (secret.Bytes, error) {
	b, err := p.read()
	if err != nil {
		return secret.Bytes{}, fmt.Errorf("%w: passphrase: %w", ErrConfig, err)
	}
	text := strings.TrimRight(string(b), "\r\n")
	clear(b)
	if text == "" {
		return secret.Bytes{}, fmt.Errorf("%w: passphrase: it is empty", ErrConfig)
	}
	return secret.New([]byte(text)), nil
}

func (p Passphrase) read() ([]byte, error) {
	switch {
	case p.File != "":
		if err := checkPrivate(p.File); err != nil {
			return nil, err
		}
		return os.ReadFile(p.File)
	case p.FDEnv != "":
		return readDescriptor(p.FDEnv)
	}
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	if dir == "" {
		return nil, fmt.Errorf("credential %s: CREDENTIALS_DIRECTORY is not set; is the node started by systemd with LoadCredential?", p.Credential)
	}
	return os.ReadFile(dir + "/" + p.Credential)
}

// A Client is client.yaml. Paths are relative to the file.
type Client struct {
	Version int      `yaml:"version"`
	Cluster string   `yaml:"cluster"`  // path of cluster.yaml
	KeyFile string   `yaml:"key_file"` // as `tae-client keygen` writes it
	Timeout Duration `yaml:"timeout"`  // of one operation; default 30s
	QUIC    bool     `yaml:"quic"`
}

// DefaultTimeout bounds one operation of a client.
const DefaultTimeout = 30 * time.Second

// LoadClient reads and checks client.yaml.
func LoadClient(file string) (*Client, error) {
	c := new(Client)
	if err := load(file, c); err != nil {
		return nil, err
	}
	if c.Version != version {
		return nil, fail(file, "version: is %d, this program reads %d", c.Version, version)
	}
	if c.Cluster == "" || c.KeyFile == "" {
		return nil, fail(file, "cluster and key_file: both paths are needed")
	}
	if c.Timeout == 0 {
		c.Timeout = Duration(DefaultTimeout)
	}
	c.Cluster, c.KeyFile = resolve(file, c.Cluster), resolve(file, c.KeyFile)
	return c, nil
}

// Save writes client.yaml.
func (c *Client) Save(file string) error {
	return save(file, "A client of the cluster. Paths are relative to this file.", c, 0o600)
}

const clientKeyPrefix = "tae-client-key-1:"

// SaveClientKey writes a new client key; it never replaces a file.
func SaveClientKey(file string, key ed25519.PrivateKey) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	text := clientKeyPrefix + hex.EncodeToString(key.Seed()) + "\n"
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// LoadClientKey reads a client's private key. Errors never show what the file holds.
func LoadClientKey(file string) (ed25519.PrivateKey, error) {
	if err := checkPrivate(file); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	defer clear(b)
	digits, ok := strings.CutPrefix(strings.TrimSpace(string(b)), clientKeyPrefix)
	seed, err := hex.DecodeString(digits)
	if !ok || err != nil || len(seed) != ed25519.SeedSize {
		return nil, fail(file, "is not a client key as `tae-client keygen` writes it")
	}
	defer clear(seed)
	return ed25519.NewKeyFromSeed(seed), nil
}
