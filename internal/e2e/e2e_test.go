package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-a893640b/tae/client"
	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/devcluster"
	"github.com/seed-a893640b/tae/internal/node"
	"github.com/seed-a893640b/tae/protocol"
)

// bin is the directory with the two programs, built once.
var bin string

func TestMain(m *testing.M) {
	playBaseline()
	dir, err := os.MkdirTemp("", "tae-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	bin = dir
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "../../cmd/tae-node", "../../cmd/tae-client")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"cluster":  clusterCommand,
			"code":     codeCommand,
			"absent":   absentCommand,
			"damage":   damageCommand,
			"stopnode": stopCommand,
		},
	})
}

var clusters = map[string]*devcluster.Cluster{}

// clusterCommand starts a cluster with keyset default: cluster DIR NODES THRESHOLD.
// TAE_CONFIG names its client.
func clusterCommand(ts *testscript.TestScript, neg bool, args []string) {
	var n, th int
	if len(args) != 3 {
		ts.Fatalf("usage: cluster dir nodes threshold")
	}
	fmt.Sscan(args[1], &n)
	fmt.Sscan(args[2], &th)
	dir := ts.MkAbs(args[0])
	c, err := startCluster(dir, n, th)
	ts.Check(err)
	clusters[dir] = c
	ts.Defer(c.Stop)
	ts.Setenv("TAE_CONFIG", c.ClientConfig())
}

func startCluster(dir string, n, th int) (*devcluster.Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := devcluster.Start(ctx, devcluster.Options{Dir: dir, Nodes: n, Threshold: th, Program: filepath.Join(bin, "tae-node"), Guests: []string{"guest"}})
	if err != nil {
		return nil, err
	}
	id, _, err := c.EnsureKeyset(ctx, "default")
	if err == nil {
		err = awaitAll(ctx, c, id)
	}
	if err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// awaitAll waits until all nodes serve the keyset.
func awaitAll(ctx context.Context, c *devcluster.Cluster, id string) error {
	for _, dir := range c.NodeDirs() {
		for {
			k, err := keysetState(ctx, dir, id)
			if err == nil && k.Serving {
				break
			}
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("%s: keyset %s is %q: %w", dir, id, k.State, err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}

func keysetState(ctx context.Context, dir, id string) (node.KeysetInfo, error) {
	s, err := node.Status(ctx, dir)
	if err != nil {
		return node.KeysetInfo{}, err
	}
	for _, k := range s.Keysets {
		if k.ID == id {
			return k, nil
		}
	}
	return node.KeysetInfo{State: "without"}, nil
}

// codeCommand runs a command and checks its exit code: code 12 tae-client decrypt x.
// Its output is checked with stdout and stderr as after exec.
func codeCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: code N command...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := err.(*exec.ExitError); ok {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
	if text := ts.ReadFile("stderr") + ts.ReadFile("stdout"); strings.Contains(text, "panic:") || strings.Contains(text, "goroutine ") {
		ts.Fatalf("the command panicked")
	}
}

// absentCommand checks that no file matches, not even a temporary one.
func absentCommand(ts *testscript.TestScript, _ bool, args []string) {
	for _, pattern := range args {
		got, err := filepath.Glob(ts.MkAbs(pattern))
		ts.Check(err)
		if len(got) > 0 {
			ts.Fatalf("%v is there", got)
		}
	}
}

// damageCommand makes a damaged copy: damage KIND FROM TO.
func damageCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: damage cut|cutheader|extend|flip|flipbody|swap|crlf|utf16|empty from to")
	}
	b, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	switch args[0] {
	case "cut":
		b = b[:len(b)-1]
	case "cutheader":
		b = b[:60]
	case "extend":
		b = append(b, 0)
	case "flip":
		b[40] ^= 1
	case "flipbody":
		b[len(b)-1] ^= 1
	case "swap": // the first two chunks
		at, chunk := protocol.SealedHeaderSize(dprf.Params{N: 3, T: 2})+protocol.CommitmentSize, protocol.ChunkSize+16
		first := append([]byte(nil), b[at:at+chunk]...)
		copy(b[at:], b[at+chunk:at+2*chunk])
		copy(b[at+chunk:], first)
	case "crlf":
		b = []byte(strings.ReplaceAll(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n", "\r\n"))
	case "utf16":
		out := []byte{0xff, 0xfe}
		for _, c := range b {
			out = append(out, c, 0)
		}
		b = out
	case "empty":
		b = nil
	default:
		ts.Fatalf("unknown damage %s", args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), b, 0o600))
}

// stopCommand stops a node of a cluster: stopnode DIR I.
func stopCommand(ts *testscript.TestScript, _ bool, args []string) {
	var i int
	fmt.Sscan(args[1], &i)
	clusters[ts.MkAbs(args[0])].StopNode(i)
}

// A node that is killed at a random moment of key generation is left with the
// complete keyset or without it, and the keyset is complete when it is back.
func TestKill9DuringKeyGeneration(t *testing.T) {
	kills := 50
	if testing.Short() {
		kills = 5
	}
	c, err := startCluster(t.TempDir(), 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	outcomes := map[string]int{}
	for i := range kills {
		outcomes[killOnce(t, c, i, time.Duration(i)*120*time.Millisecond/time.Duration(kills))]++
	}
	t.Logf("%d kills: %v", kills, outcomes)
	cl, err := client.Open(t.Context(), client.WithConfigFile(c.ClientConfig()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	c.StopNode(1) // so that the node that was killed takes part
	for i := range kills {
		k := cl.Keyset(fmt.Sprintf("k%d", i))
		object, err := k.Encrypt(t.Context(), []byte("m"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := k.Decrypt(t.Context(), object, nil); err != nil || string(got) != "m" {
			t.Fatal(err)
		}
	}
}

func killOnce(t *testing.T, c *devcluster.Cluster, i int, after time.Duration) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	k, err := node.CreateKeyset(ctx, c.NodeDirs()[0], node.NewKeyset{Name: fmt.Sprintf("k%d", i), Suite: protocol.SuiteTAE1, Threshold: 2, Modes: []string{"sealed"}})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	c.KillNode(2)
	if err := c.StartNode(2); err != nil {
		t.Fatal(err)
	}
	if err := c.AwaitNode(ctx, 2); err != nil {
		t.Fatal(err)
	}
	state, err := keysetState(ctx, c.NodeDirs()[1], k.ID)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(state.State, "damaged") {
		t.Fatalf("kill %d after %v: %s", i, after, state.State)
	}
	if err := awaitAll(ctx, c, k.ID); err != nil {
		t.Fatalf("kill %d after %v: %v", i, after, err)
	}
	if state.Serving {
		return "complete"
	}
	return "without"
}

// Two demos at once do not get in each other's way, and leave nothing behind.
func TestDemoTwiceAtOnce(t *testing.T) {
	temp := t.TempDir()
	var group sync.WaitGroup
	for i := range 2 {
		group.Go(func() {
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "tae-node"), "demo")
			cmd.Env = append(os.Environ(), "TMPDIR="+temp)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "all of it held") {
				t.Errorf("demo %d: %v\n%s", i, err, out)
			}
		})
	}
	group.Wait()
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
