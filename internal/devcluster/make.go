package devcluster

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/seed-a893640b/tae/internal/config"
	"github.com/seed-a893640b/tae/internal/node"
)

// prepare makes identities, configuration and clients, or checks those that are
// there.
func (c *Cluster) prepare() error {
	file := filepath.Join(c.o.Dir, clusterFile)
	if _, err := os.Stat(file); err == nil {
		cluster, err := config.LoadCluster(file)
		if err != nil {
			return err
		}
		if len(cluster.Members) != c.o.Nodes {
			return fmt.Errorf("%w: %s is a cluster of %d nodes, not %d; use --nodes %d or another directory",
				ErrUsage, c.o.Dir, len(cluster.Members), c.o.Nodes, len(cluster.Members))
		}
		return nil
	}
	if err := c.checkUnfinished(); err != nil {
		return err
	}
	cluster := &config.Cluster{Version: 1, Name: "dev", Clients: map[string]config.PublicKey{}}
	ports, err := freePorts(c.o.Nodes)
	if err != nil {
		return err
	}
	for i := 1; i <= c.o.Nodes; i++ {
		key, err := c.makeNode(i)
		if err != nil {
			return err
		}
		cluster.Members = append(cluster.Members, config.Member{Index: i, Name: "n" + strconv.Itoa(i), Key: key,
			Addrs: []string{fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", ports[i-1])}})
	}
	for _, name := range append([]string{clientName}, c.o.Guests...) {
		if cluster.Clients[name], err = c.makeClient(name); err != nil {
			return err
		}
	}
	// Last: its presence says that the rest is complete.
	if err := cluster.Save(file); err != nil {
		return err
	}
	return os.Remove(filepath.Join(c.o.Dir, unfinishedFile))
}

// checkUnfinished makes sure that nothing is replaced but what an interrupted start of
// this package left: a node directory holds keys that nobody else has.
func (c *Cluster) checkUnfinished() error {
	marker := filepath.Join(c.o.Dir, unfinishedFile)
	if _, err := os.Stat(marker); err == nil {
		return nil
	}
	for i := 1; i <= c.o.Nodes; i++ {
		if _, err := os.Lstat(c.dir(i)); err == nil {
			return fmt.Errorf("%w: %s exists, but %s has no %s: this is not a cluster that dev made, or its cluster file was lost; "+
				"nothing was changed; use another directory or restore the file", ErrUsage, c.dir(i), c.o.Dir, clusterFile)
		}
	}
	return os.WriteFile(marker, []byte("dev was interrupted while it made this cluster; its directories may be removed\n"), 0o600)
}

func (c *Cluster) makeNode(i int) (config.PublicKey, error) {
	dir := c.dir(i)
	if err := os.RemoveAll(dir); err != nil { // see checkUnfinished
		return config.PublicKey{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return config.PublicKey{}, err
	}
	var pass [16]byte
	_, _ = rand.Read(pass[:])
	if err := os.WriteFile(filepath.Join(dir, "passphrase"), []byte(hex.EncodeToString(pass[:])+"\n"), 0o600); err != nil {
		return config.PublicKey{}, err
	}
	cfg := &config.Node{Version: 1, Name: "n" + strconv.Itoa(i), Cluster: "../" + clusterFile, Policy: "policy.yaml",
		Passphrase: config.Passphrase{File: "passphrase"}, AutoAccept: true, InsecureThresholdOne: c.o.AllowOne}
	if err := cfg.Save(filepath.Join(dir, node.ConfigFile)); err != nil {
		return config.PublicKey{}, err
	}
	all := config.PolicyRights{Encrypt: true, Decrypt: true, Rotate: true}
	policy := &config.Policy{Version: 1, Clients: map[string]map[string]config.PolicyRights{clientName: {config.AnyKeyset: all}}}
	if err := policy.Save(filepath.Join(dir, "policy.yaml")); err != nil {
		return config.PublicKey{}, err
	}
	return node.Init(dir, cfg.Name, cfg.Passphrase, node.DefaultSealCost)
}

func (c *Cluster) makeClient(name string) (config.PublicKey, error) {
	base, file := "client", c.ClientConfig()
	if name != clientName {
		base, file = name, c.GuestConfig(name)
	}
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return config.PublicKey{}, err
	}
	keyFile := filepath.Join(c.o.Dir, base+".key")
	if err := os.Remove(keyFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return config.PublicKey{}, err
	}
	if err := config.SaveClientKey(keyFile, key); err != nil {
		return config.PublicKey{}, err
	}
	cfg := &config.Client{Version: 1, Cluster: clusterFile, KeyFile: base + ".key", Timeout: config.Duration(config.DefaultTimeout)}
	return config.PublicKey(pub), cfg.Save(file)
}

// freePorts finds ports below the range from which the system takes those of
// outgoing connections, so that nothing takes them before the nodes do.
func freePorts(count int) ([]int, error) {
	var ports []int
	for range 1000 {
		port := 20000 + mrand.IntN(12000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer l.Close() // held until all are found, so that no two are the same
		if ports = append(ports, port); len(ports) == count {
			return ports, nil
		}
	}
	return nil, errors.New("no free ports on loopback")
}
