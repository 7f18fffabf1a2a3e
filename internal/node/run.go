package node

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-a893640b/tae/internal/config"
	"github.com/seed-a893640b/tae/internal/disk"
	"github.com/seed-a893640b/tae/internal/p2p"
	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/protocol"
)

const (
	// ConfigFile and SocketFile are a node's files that have fixed names.
	ConfigFile = "node.yaml"
	SocketFile = "admin.sock"
	lockFile   = "lock"

	// drainLimit bounds the wait for answers under way when a node stops.
	drainLimit = 2 * time.Second
)

// Options of a process that runs a node.
type Options struct {
	Dir      string
	Software string
	Logger   *zap.Logger
	Ready    func(addrs []string) // called once, when the node answers
}

// Check reads everything that Run needs from a directory, without the passphrase.
func Check(dir string) (*config.Node, *config.Cluster, *config.Policy, error) {
	cfg, err := config.LoadNode(filepath.Join(dir, ConfigFile))
	if err != nil {
		return nil, nil, nil, err
	}
	cluster, err := config.LoadCluster(cfg.Cluster)
	if err != nil {
		return nil, nil, nil, err
	}
	policy, err := config.LoadPolicy(cfg.Policy, cluster)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, m := range cluster.Members {
		if err := p2p.CheckAddrs(m.Addrs, cfg.QUIC); err != nil {
			return nil, nil, nil, fmt.Errorf("%w: %s: member %s: addrs: %w", config.ErrConfig, cfg.Cluster, m.Name, err)
		}
	}
	if len(cfg.Listen) > 0 {
		if err := p2p.CheckAddrs(cfg.Listen, cfg.QUIC); err != nil {
			return nil, nil, nil, fmt.Errorf("%w: %s: listen: %w", config.ErrConfig, filepath.Join(dir, ConfigFile), err)
		}
	}
	if indexOf(cluster, cfg.Name) == 0 {
		return nil, nil, nil, fmt.Errorf("%w: %s: name: the cluster file lists no member %s", config.ErrConfig, filepath.Join(dir, ConfigFile), cfg.Name)
	}
	return cfg, cluster, policy, nil
}

func indexOf(cluster *config.Cluster, name string) int {
	for _, m := range cluster.Members {
		if m.Name == name {
			return m.Index
		}
	}
	return 0
}

// Run runs the node of a directory until ctx ends.
func Run(ctx context.Context, o Options) error {
	cfg, cluster, policy, err := Check(o.Dir)
	if err != nil {
		return err
	}
	root, err := disk.OS(o.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	release, err := root.Lock(lockFile)
	if err != nil {
		return fmt.Errorf("%s: %w; is the node running already?", o.Dir, err)
	}
	defer release()
	pass, err := cfg.Passphrase.Read()
	if err != nil {
		return err
	}
	sealer, err := OpenSealer(root, pass)
	pass.Wipe()
	if err != nil {
		return err
	}
	key, err := LoadIdentity(sealer)
	if err != nil {
		return err
	}
	self := indexOf(cluster, cfg.Name)
	n, err := New(Config{Cluster: cluster, Policy: policy, Self: self, Key: key, Sealer: sealer, AutoAccept: cfg.AutoAccept,
		AllowOne: cfg.InsecureThresholdOne, Software: o.Software, Logger: o.Logger})
	if err != nil {
		return err
	}
	return n.serve(ctx, o, cfg)
}

// serve connects the node to the network and to its administration socket.
func (n *Node) serve(ctx context.Context, o Options, cfg *config.Node) error {
	hash := n.cfg.Cluster.Hash()
	n.log.Info("starting", zap.String("dir", o.Dir), zap.String("node", cfg.Name), zap.String("cluster", n.cfg.Cluster.Name),
		zap.String("cluster_hash", fmt.Sprintf("%x", hash[:8])), zap.Int("keyset_files", len(n.index)))
	host, err := p2p.New(n.transportConfig(cfg))
	if err != nil {
		return err
	}
	defer host.Close()
	admin, err := n.listenAdmin(o.Dir, host)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { n.Run(ctx, host) })
	group.Go(func() { admin.run(ctx) })
	if o.Ready != nil {
		o.Ready(host.Addrs())
	}
	<-ctx.Done()
	n.log.Info("stopping")
	drain, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	if err := host.Drain(drain); err != nil {
		n.log.Warn("requests under way were dropped", zap.Error(err))
	}
	return nil
}

func (n *Node) transportConfig(cfg *config.Node) p2p.Config {
	c := p2p.Config{Key: n.cfg.Key, Listen: cfg.Listen, Self: n.cfg.Self, QUIC: cfg.QUIC, MaxInFlight: cfg.Limits.InFlight,
		Workers: cfg.Limits.Workers, Logger: n.log.Named("transport")}
	for _, m := range n.cfg.Cluster.Members {
		c.Nodes = append(c.Nodes, p2p.Peer{Index: m.Index, Name: m.Name, Key: ed25519.PublicKey(m.Key[:]), Addrs: m.Addrs})
	}
	if len(c.Listen) == 0 {
		c.Listen = n.cfg.Cluster.Members[n.cfg.Self-1].Addrs
	}
	for _, key := range n.cfg.Cluster.Clients {
		c.Clients = append(c.Clients, ed25519.PublicKey(key[:]))
	}
	c.Handler = func(ctx context.Context, from p2p.Caller, req []byte) []byte {
		return n.Handle(ctx, protocol.Caller{Key: from.Key, Node: from.Node}, req)
	}
	return c
}

// Init makes a new node directory: its sealed identity, and an example node.yaml and
// policy.yaml where there are none. It returns the node's public key.
func Init(dir, name string, passphrase config.Passphrase, cost SealCost) (config.PublicKey, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return config.PublicKey{}, err
	}
	root, err := disk.OS(dir)
	if err != nil {
		return config.PublicKey{}, err
	}
	defer root.Close()
	if _, err := root.ReadFile(keyFile); err == nil {
		return config.PublicKey{}, fmt.Errorf("%s is a node directory already; nothing was changed", dir)
	}
	inside := passphrase
	if inside.File != "" && !filepath.IsAbs(inside.File) {
		inside.File = filepath.Join(dir, inside.File)
	}
	pass, err := inside.Read()
	if err != nil {
		return config.PublicKey{}, err
	}
	defer pass.Wipe()
	sealer, err := openOrNew(root, pass, cost)
	if err != nil {
		return config.PublicKey{}, err
	}
	pub, err := CreateIdentity(sealer)
	if err != nil {
		return config.PublicKey{}, err
	}
	cfg := &config.Node{Version: 1, Name: name, Cluster: "cluster.yaml", Policy: "policy.yaml", Passphrase: passphrase}
	if file := filepath.Join(dir, ConfigFile); !exists(file) {
		if err := cfg.Save(file); err != nil {
			return config.PublicKey{}, err
		}
	}
	if file := filepath.Join(dir, "policy.yaml"); !exists(file) {
		p := &config.Policy{Version: 1, Clients: map[string]map[string]config.PolicyRights{}}
		if err := p.Save(file); err != nil {
			return config.PublicKey{}, err
		}
	}
	return config.PublicKey(pub), nil
}

// openOrNew finishes an Init that a crash cut short after the seal was written.
func openOrNew(root *disk.Root, pass secret.Bytes, cost SealCost) (*Sealer, error) {
	if _, err := root.ReadFile(sealFile); err == nil {
		return OpenSealer(root, pass)
	}
	return NewSealer(root, pass, cost)
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// dialAdmin connects to a running node's socket.
func dialAdmin(ctx context.Context, dir string) (net.Conn, error) {
	path := filepath.Join(dir, SocketFile)
	d := net.Dialer{Timeout: 5 * time.Second}
	c, err := d.DialContext(ctx, "unix", shortPath(path))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %v; start it with `tae-node run --dir %s`", ErrNotRunning, dir, unwrapOp(err), dir)
	}
	return c, nil
}

// ErrNotRunning: no node runs in the directory.
var ErrNotRunning = errors.New("no node is running in this directory")

func unwrapOp(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}
