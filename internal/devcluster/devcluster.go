// Package devcluster runs a local cluster for trying things out: one child process
// per node, on loopback, with everything it needs made in one directory. The
// program itself is started again for each node, so that it is always the same
// version.
package devcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/disk"
	"github.com/seed-a893640b/tae/internal/node"
	"github.com/seed-a893640b/tae/protocol"
)

// ErrUsage marks options that make no cluster.
var ErrUsage = errors.New("bad cluster options")

// Options of a cluster.
type Options struct {
	Dir       string
	Nodes     int
	Threshold int
	Suite     protocol.Suite // of the keysets that EnsureKeyset makes; default TAE1
	AllowOne  bool
	Log       io.Writer // where the nodes' logs go, and what happens to them
	// Guests are further clients, without any right.
	Guests []string
	// Program is the tae-node to run; default: this program.
	Program string
}

// A Cluster is a running cluster. Safe for concurrent use.
type Cluster struct {
	o     Options
	mu    sync.Mutex
	nodes []*child // in the order of their indices
	stop  bool

	unlock func()
}

type child struct {
	dir   string
	cmd   *exec.Cmd
	stdin io.Closer // the node stops when it closes, even when this process was killed
	done  chan struct{}
}

const (
	clusterFile = "cluster.yaml"
	clientFile  = "client.yaml"
	lockFile    = "dev.lock"
	// unfinishedFile is there while the cluster's directories are being made.
	unfinishedFile = "dev.unfinished"
	clientName     = "dev"
	startLimit     = 30 * time.Second
	stopLimit      = 5 * time.Second
)

// Start makes what is missing and starts all nodes. It returns when they answer.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.Suite == 0 {
		o.Suite = protocol.SuiteTAE1
	}
	validate := dprf.Params{N: o.Nodes, T: o.Threshold}.Validate
	if o.Suite == protocol.SuiteTAE3 {
		validate = dprf.Params{N: o.Nodes, T: o.Threshold}.ValidateThreshold
	}
	if err := validate(o.AllowOne); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	if o.Log != nil {
		for _, line := range node.Warnings(dprf.Params{N: o.Nodes, T: o.Threshold}) {
			fmt.Fprintln(o.Log, line)
		}
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	c := &Cluster{o: o}
	if err := c.lock(); err != nil {
		return nil, err
	}
	if err := c.prepare(); err != nil {
		c.unlock()
		return nil, err
	}
	for i := range o.Nodes {
		c.nodes = append(c.nodes, &child{dir: c.dir(i + 1)})
	}
	for i := range o.Nodes {
		if err := c.StartNode(i + 1); err != nil {
			c.Stop()
			return nil, err
		}
	}
	for i := range o.Nodes {
		if err := c.await(ctx, i+1); err != nil {
			c.Stop()
			return nil, err
		}
	}
	return c, nil
}

// lock keeps a second process from making or running the same cluster.
func (c *Cluster) lock() error {
	if err := os.MkdirAll(c.o.Dir, 0o700); err != nil {
		return err
	}
	root, err := disk.OS(c.o.Dir)
	if err != nil {
		return err
	}
	release, err := root.Lock(lockFile)
	if err != nil {
		root.Close()
		return fmt.Errorf("%w: %s: %w; does dev run there already?", ErrUsage, c.o.Dir, err)
	}
	c.unlock = func() {
		_ = release()
		_ = root.Close()
	}
	return nil
}

func (c *Cluster) dir(i int) string { return filepath.Join(c.o.Dir, "n"+strconv.Itoa(i)) }

// ClientConfig is the path of the client's configuration.
func (c *Cluster) ClientConfig() string { return filepath.Join(c.o.Dir, clientFile) }

// GuestConfig is the path of a guest's configuration.
func (c *Cluster) GuestConfig(name string) string { return filepath.Join(c.o.Dir, name+".yaml") }

// NodeDirs are the directories of the nodes.
func (c *Cluster) NodeDirs() []string {
	var dirs []string
	for _, n := range c.nodes {
		dirs = append(dirs, n.dir)
	}
	return dirs
}

// StartNode starts a node that is not running.
func (c *Cluster) StartNode(i int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	program := c.o.Program
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		program = self
	}
	n := c.nodes[i-1]
	cmd := exec.Command(program, "run", "--dir", n.dir, "--exit-with-stdin")
	cmd.SysProcAttr = ownGroup() // a Ctrl-C at the terminal is for this process alone
	log, err := os.OpenFile(filepath.Join(n.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	n.cmd, n.stdin, n.done = cmd, stdin, make(chan struct{})
	go c.reap(n, cmd, n.done)
	return os.WriteFile(filepath.Join(n.dir, "pid"), []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o600)
}

func (c *Cluster) reap(n *child, cmd *exec.Cmd, done chan struct{}) {
	err := cmd.Wait()
	c.mu.Lock()
	stopping := c.stop
	if n.cmd == cmd {
		_ = os.Remove(filepath.Join(n.dir, "pid")) // the number may soon be another's
	}
	c.mu.Unlock()
	if !stopping && c.o.Log != nil {
		if err == nil {
			err = errors.New("stopped")
		}
		fmt.Fprintf(c.o.Log, "node %s ended: %v; see %s, start it again with `tae-node run --dir %s`\n",
			filepath.Base(n.dir), err, filepath.Join(n.dir, "log"), n.dir)
	}
	close(done)
}

// await waits until a node answers its operator.
func (c *Cluster) await(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	n := c.nodes[i-1]
	for {
		if _, err := node.Status(ctx, n.dir); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return fmt.Errorf("node %s does not start; see %s", filepath.Base(n.dir), filepath.Join(n.dir, "log"))
		case <-n.done:
			return fmt.Errorf("node %s ended at its start: %s", filepath.Base(n.dir), lastLine(filepath.Join(n.dir, "log")))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func lastLine(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	for len(b) > 0 && b[len(b)-1] == '\n' {
		b = b[:len(b)-1]
	}
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] == '\n' {
			return string(b[i+1:])
		}
	}
	return string(b)
}

// AwaitNode waits until a started node answers.
func (c *Cluster) AwaitNode(ctx context.Context, i int) error { return c.await(ctx, i) }

// StopNode stops a node and waits for its end.
func (c *Cluster) StopNode(i int) { c.end(c.nodes[i-1], syscall.SIGTERM) }

// KillNode kills a node at once.
func (c *Cluster) KillNode(i int) { c.end(c.nodes[i-1], os.Kill) }

func (c *Cluster) end(n *child, signal os.Signal) {
	c.mu.Lock()
	cmd, done := n.cmd, n.done
	n.cmd = nil
	c.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(signal)
	select {
	case <-done:
	case <-time.After(stopLimit):
		_ = cmd.Process.Kill()
		<-done
	}
	_ = n.stdin.Close()
	_ = os.Remove(filepath.Join(n.dir, "pid"))
}

// Stop stops all nodes.
func (c *Cluster) Stop() {
	c.mu.Lock()
	c.stop = true
	c.mu.Unlock()
	var group sync.WaitGroup
	for _, n := range c.nodes {
		group.Go(func() { c.end(n, syscall.SIGTERM) })
	}
	group.Wait()
	c.unlock()
}

// EnsureKeyset proposes a keyset at node 1 where none of the name exists. All nodes
// accept it by their configuration.
func (c *Cluster) EnsureKeyset(ctx context.Context, name string) (id string, attempt uint16, err error) {
	dir := c.nodes[0].dir
	s, err := node.Status(ctx, dir)
	if err != nil {
		return "", 0, err
	}
	for _, k := range s.Keysets {
		if k.Name == name {
			if k.Suite != c.o.Suite.String() {
				return "", 0, fmt.Errorf("%w: keyset %s in %s is of suite %s, not %v", ErrUsage, name, c.o.Dir, k.Suite, c.o.Suite)
			}
			if k.T != c.o.Threshold {
				return "", 0, fmt.Errorf("%w: keyset %s in %s has threshold %d, not %d", ErrUsage, name, c.o.Dir, k.T, c.o.Threshold)
			}
			return k.ID, k.Attempt, nil
		}
	}
	want := node.NewKeyset{Name: name, Suite: c.o.Suite, Threshold: c.o.Threshold, Modes: []string{"sealed"}, AllowOne: c.o.AllowOne}
	if c.o.Suite == protocol.SuiteTAE1 {
		want.Modes, want.Layers = append(want.Modes, "layered"), 20
	}
	k, err := node.CreateKeyset(ctx, dir, want)
	if err != nil {
		return "", 0, err
	}
	return k.ID, k.Attempt, nil
}
