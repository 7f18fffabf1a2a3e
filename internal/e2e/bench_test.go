package e2e

import (
	"crypto/ed25519"
	"path/filepath"
	"sync"
	"testing"

	"github.com/seed-a893640b/tae/client"
	"github.com/seed-a893640b/tae/internal/config"
	"github.com/seed-a893640b/tae/internal/node"
	"github.com/seed-a893640b/tae/internal/p2p"
	"github.com/seed-a893640b/tae/protocol"
)

// benchCluster is three real node processes and a client in this one.
// Keyset "default" is of suite tae1, "verified" of tae3.
func benchCluster(b *testing.B) (*client.Client, string) {
	b.Helper()
	dir := b.TempDir()
	c, err := startCluster(dir, 3, 2)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Stop)
	cl, err := client.Open(b.Context(), client.WithConfigFile(c.ClientConfig()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { cl.Close() })
	k, err := node.CreateKeyset(b.Context(), c.NodeDirs()[0], node.NewKeyset{Name: "verified", Suite: protocol.SuiteTAE3, Threshold: 2, Modes: []string{"sealed"}})
	if err == nil {
		err = awaitAll(b.Context(), c, k.ID)
	}
	if err != nil {
		b.Fatal(err)
	}
	return cl, dir
}

func items(n int) []client.Item {
	list := make([]client.Item, n)
	for i := range list {
		list[i].Data = make([]byte, 32)
	}
	return list
}

func mustBatch(b *testing.B, f func() ([]client.Result, error)) []client.Result {
	r, err := f()
	if err != nil {
		b.Fatal(err)
	}
	for i := range r {
		if r[i].Err != nil {
			b.Fatal(r[i].Err)
		}
	}
	return r
}

// BenchmarkNetwork measures whole operations against three processes on loopback,
// and an echo to two of them at once as the floor of a round trip.
func BenchmarkNetwork(b *testing.B) {
	cl, dir := benchCluster(b)
	b.Run("echo/nodes=2", func(b *testing.B) { benchEcho(b, dir) })
	b.Run("tae1", func(b *testing.B) { benchSuite(b, cl.Keyset("default")) })
	b.Run("tae3", func(b *testing.B) { benchSuite(b, cl.Keyset("verified")) })
}

func benchSuite(b *testing.B, k *client.Keyset) {
	objects := func(n int) []client.Item {
		list := items(n)
		for i, r := range mustBatch(b, func() ([]client.Result, error) { return k.EncryptBatch(b.Context(), list) }) {
			list[i].Data = r.Data
		}
		return list
	}
	for _, n := range []int{1, 128} {
		name := map[int]string{1: "single", 128: "batch=128"}[n]
		plain, sealed := items(n), objects(n)
		run := func(b *testing.B, f func() ([]client.Result, error)) {
			b.ReportAllocs()
			for b.Loop() {
				mustBatch(b, f)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "items/s")
		}
		b.Run("encrypt/"+name, func(b *testing.B) {
			run(b, func() ([]client.Result, error) { return k.EncryptBatch(b.Context(), plain) })
		})
		b.Run("decrypt/"+name, func(b *testing.B) {
			run(b, func() ([]client.Result, error) { return k.DecryptBatch(b.Context(), sealed) })
		})
	}
	b.Run("encrypt/batch=128/inflight=10", func(b *testing.B) {
		plain := items(128)
		b.SetParallelism(5) // times the two processors of the measured machine
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := k.EncryptBatch(b.Context(), plain); err != nil {
					b.Error(err)
				}
			}
		})
		b.ReportMetric(128*float64(b.N)/b.Elapsed().Seconds(), "items/s")
	})
}

// benchEcho asks two nodes at once for the smallest answer there is.
func benchEcho(b *testing.B, dir string) {
	cluster, err := config.LoadCluster(filepath.Join(dir, "cluster.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	key, err := config.LoadClientKey(filepath.Join(dir, "client.key"))
	if err != nil {
		b.Fatal(err)
	}
	var nodes []p2p.Peer
	for _, m := range cluster.Members {
		nodes = append(nodes, p2p.Peer{Index: m.Index, Name: m.Name, Key: ed25519.PublicKey(m.Key[:]), Addrs: m.Addrs})
	}
	h, err := p2p.New(p2p.Config{Key: key, Nodes: nodes})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	req := protocol.StatusRequest()
	for b.Loop() {
		var group sync.WaitGroup
		for node := 1; node <= 2; node++ {
			group.Go(func() {
				if _, err := h.Call(b.Context(), node, req); err != nil {
					b.Error(err)
				}
			})
		}
		group.Wait()
	}
}
