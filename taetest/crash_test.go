package taetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a893640b/tae/internal/disk"
	"github.com/seed-a893640b/tae/netsim"
)

// storageSteps counts the primitive storage steps of node 2 while a keyset is made.
func storageSteps(t *testing.T, opts ...Option) (steps int) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(t, 3, 2, append(opts, WithoutKeyset())...)
		before := c.Disk(2).Steps()
		c.keyset = "default"
		c.Create("default")
		steps = c.Disk(2).Steps() - before
	})
	return steps
}

// A node that stops at any storage step of key generation, on a disk that loses
// what was not synced, comes back with the complete keyset or without it, and the
// cluster ends with one keyset that all members hold.
func TestCrashAtEveryStorageStep(t *testing.T) {
	t.Run("tae1", func(t *testing.T) { crashEverywhere(t, 8) })
	t.Run("tae3", func(t *testing.T) { crashEverywhere(t, 1, WithTAE3()) })
}

func crashEverywhere(t *testing.T, seeds uint64, opts ...Option) {
	steps := storageSteps(t, opts...)
	if steps < 10 {
		t.Fatalf("only %d storage steps: the disk is not the simulated one", steps)
	}
	if testing.Short() {
		seeds = (seeds + 3) / 4
	}
	t.Logf("%d storage steps, %d outcomes each", steps, seeds)
	outcomes := map[string]int{}
	for step := 1; step <= steps; step++ {
		for seed := range seeds {
			synctest.Test(t, func(t *testing.T) { outcomes[crashOnce(t, step, seed, opts...)]++ })
		}
	}
	t.Logf("after the crash: %v", outcomes)
	if seeds >= 4 && outcomes["complete"] == 0 || outcomes["without"] == 0 || outcomes["not reached"] > steps*int(seeds)/2 {
		t.Error("the crashes did not reach both outcomes")
	}
}

// crashOnce crashes node 2 at a step and says how it came back.
func crashOnce(t *testing.T, step int, seed uint64, opts ...Option) (outcome string) {
	c := NewCluster(t, 3, 2, append(opts, WithoutKeyset(), WithSeed(seed))...)
	c.keyset = "default"
	c.Network.SetFaults(netsim.Faults{Latency: time.Millisecond, Jitter: 3 * time.Millisecond})
	c.Disk(2).CrashAfter(step)
	if err := c.Propose("default"); err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		if c.Disk(2).Crashed() {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if !c.Disk(2).Crashed() {
		// With other delays two states may have been stored as one.
		if err := c.Await(2, "default", time.Second); err != nil {
			t.Fatalf("step %d is never reached: %v", step, err)
		}
		return "not reached"
	}
	c.Stop(2)
	c.ReplaceDisk(2, c.Disk(2).Restart(seed))
	if err := c.TryStart(2); err != nil {
		t.Fatalf("step %d seed %d: %v", step, seed, err)
	}
	outcome = "without"
	for _, k := range c.Node(2).List() {
		if k.Serving {
			outcome = "complete"
		} else if len(k.State) >= 7 && k.State[:7] == "damaged" {
			t.Fatalf("step %d seed %d: %s", step, seed, k.State)
		}
	}
	for i := 1; i <= 3; i++ {
		if err := c.Await(i, "default", time.Minute); err != nil {
			t.Fatalf("step %d seed %d: %v", step, seed, err)
		}
	}
	checkQuorums(t, c)
	return outcome
}

// checkQuorums encrypts with each pair of nodes and decrypts with every other.
func checkQuorums(t *testing.T, c *Cluster) {
	t.Helper()
	k := c.Client("app").Keyset("default")
	object, err := k.Encrypt(t.Context(), []byte("m"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for down := 1; down <= c.n; down++ {
		c.Stop(down)
		if got, err := k.Decrypt(t.Context(), object, nil); err != nil || string(got) != "m" {
			t.Errorf("without node %d: %v", down, err)
		}
		c.Start(down)
	}
}

// A node whose disk is full during key generation says so, loses nothing, and the
// keyset is complete once there is room.
func TestFullDiskDuringKeyGeneration(t *testing.T) {
	errFull := errors.New("no space left on device")
	for step := 1; step <= 12; step++ {
		synctest.Test(t, func(t *testing.T) {
			c := NewCluster(t, 3, 2, WithoutKeyset())
			c.keyset = "default"
			c.Disk(2).FailAfter(step, errFull)
			c.Create("default")
			checkQuorums(t, c)
		})
	}
}

// Nothing is made while a member has not accepted; then it is.
func TestManualAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(t, 3, 2, WithoutKeyset(), WithManualAccept())
		c.keyset = "default"
		if err := c.Propose("default"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := c.Node(2).Accept("default"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		for i := 1; i <= 3; i++ {
			list := c.Node(i).List()
			if len(list) != 1 || list[0].Serving {
				t.Errorf("node %d: %+v", i, list)
			}
			if i != 3 && fmt.Sprint(list[0].Missing) != "[n3]" {
				t.Errorf("node %d waits for %v, not for n3", i, list[0].Missing)
			}
		}
		if err := c.Propose("default"); err == nil {
			t.Error("a second keyset of the same name was proposed")
		}
		if _, err := c.Node(3).Accept("default"); err != nil {
			t.Fatal(err)
		}
		for i := 1; i <= 3; i++ {
			if err := c.Await(i, "default", time.Minute); err != nil {
				t.Error(err)
			}
		}
	})
}

// An attempt that members give up ends everywhere, and the next one succeeds.
func TestAbortAndRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(t, 3, 2, WithoutKeyset(), WithManualAccept())
		c.keyset = "default"
		if err := c.Propose("default"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := c.Node(1).Retry("default"); err == nil {
			t.Error("a second attempt began beside the first")
		}
		for i := 2; i <= 3; i++ {
			if _, err := c.Node(i).Abort("default"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		for i := 1; i <= 3; i++ {
			if list := c.Node(i).List(); len(list) != 1 || list[0].State != "abandoned" {
				t.Errorf("node %d: %+v", i, list)
			}
		}
		if _, err := c.Node(2).Retry("default"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for _, i := range []int{1, 3} {
			if _, err := c.Node(i).Accept("default"); err != nil {
				t.Fatal(err)
			}
		}
		for i := 1; i <= 3; i++ {
			if err := c.Await(i, "default", time.Minute); err != nil {
				t.Error(err)
			}
		}
		checkQuorums(t, c)
	})
}

// A keyset file that is damaged, missing or foreign stops its keyset only, and the
// reason names the file.
func TestDamagedKeysetFile(t *testing.T) {
	file := func(c *Cluster, i int) string {
		names, err := c.Disk(i).List("keysets")
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		return "keysets/" + names[0]
	}
	for what, damage := range map[string]func(c *Cluster, d *disk.Sim, name string, b []byte) error{
		"truncated": func(_ *Cluster, d *disk.Sim, name string, b []byte) error {
			return d.WriteFileAtomic(name, b[:len(b)/2], 0o600)
		},
		"flipped": func(_ *Cluster, d *disk.Sim, name string, b []byte) error {
			b[len(b)/2] ^= 1
			return d.WriteFileAtomic(name, b, 0o600)
		},
		"empty":   func(_ *Cluster, d *disk.Sim, name string, b []byte) error { return d.WriteFileAtomic(name, nil, 0o600) },
		"missing": func(_ *Cluster, d *disk.Sim, name string, b []byte) error { return d.Remove(name) },
		"another node's": func(c *Cluster, d *disk.Sim, name string, b []byte) error {
			other, err := c.Disk(3).ReadFile(file(c, 3))
			if err != nil {
				return err
			}
			return d.WriteFileAtomic(name, other, 0o600)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := NewCluster(t, 3, 2)
			name := file(c, 2)
			c.Create("second")
			k := c.Client("app").Keyset("default")
			object, err := k.Encrypt(t.Context(), []byte("m"), nil)
			if err != nil {
				t.Fatal(err)
			}
			c.Stop(2)
			b, err := c.Disk(2).ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(c, c.Disk(2), name, b); err != nil {
				t.Fatal(err)
			}
			c.Start(2)
			serving, damaged := 0, ""
			for _, k := range c.Node(2).List() {
				if k.Serving {
					serving++
				} else {
					damaged = k.State
				}
			}
			if serving != 1 || !strings.Contains(damaged, name) || !strings.Contains(damaged, "restore") {
				t.Errorf("%s: %d keysets served, damage reported as %q", what, serving, damaged)
			}
			if got, err := k.Decrypt(t.Context(), object, nil); err != nil || string(got) != "m" {
				t.Errorf("%s: the other two nodes: %v", what, err)
			}
		})
	}
}
