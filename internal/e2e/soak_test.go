package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a893640b/tae/client"
	"github.com/seed-a893640b/tae/internal/node"
	"github.com/seed-a893640b/tae/protocol"
)

// Nodes are killed and started again under load, one at a time so that a quorum
// always exists. Every operation that begins ends well within its deadline, and what
// was encrypted at any time decrypts.
func TestKillsUnderLoad(t *testing.T) {
	length := 12 * time.Second
	if testing.Short() {
		length = 4 * time.Second
	}
	c, err := startCluster(t.TempDir(), 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	k, err := node.CreateKeyset(t.Context(), c.NodeDirs()[0], node.NewKeyset{Name: "verified", Suite: protocol.SuiteTAE3, Threshold: 2, Modes: []string{"sealed"}})
	if err == nil {
		err = awaitAll(t.Context(), c, k.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	cl, err := client.Open(t.Context(), client.WithConfigFile(c.ClientConfig()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var done, kills atomic.Int64
	var group sync.WaitGroup
	for worker := range 6 {
		group.Go(func() {
			keys := cl.Keyset([]string{"default", "default", "verified"}[worker%3])
			var objects [][]byte
			for i := 0; ctx.Err() == nil; i++ {
				m := fmt.Appendf(nil, "worker %d message %d", worker, i)
				object, err := keys.Encrypt(t.Context(), m, nil)
				if err != nil {
					t.Errorf("encrypt: %v", err)
					return
				}
				objects = append(objects, object)
				at := rand.IntN(len(objects))
				got, err := keys.Decrypt(t.Context(), objects[at], nil)
				if err != nil || !bytes.Equal(got, fmt.Appendf(nil, "worker %d message %d", worker, at)) {
					t.Errorf("decrypt: %q %v", got, err)
					return
				}
				done.Add(1)
			}
		})
	}
	for ctx.Err() == nil {
		i := 1 + rand.IntN(3)
		if rand.IntN(2) == 0 {
			c.KillNode(i)
		} else {
			c.StopNode(i)
		}
		kills.Add(1)
		if err := c.StartNode(i); err != nil {
			t.Fatal(err)
		}
		if err := c.AwaitNode(t.Context(), i); err != nil {
			log, _ := os.ReadFile(filepath.Join(c.NodeDirs()[i-1], "log"))
			t.Fatalf("%v\n%s", err, log[max(0, len(log)-3000):])
		}
		time.Sleep(300 * time.Millisecond)
	}
	group.Wait()
	t.Logf("%d encryptions and decryptions, %d kills", done.Load(), kills.Load())
	if done.Load() < 100 || kills.Load() < 3 {
		t.Error("too little happened for this to mean anything")
	}
}
