package disk

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"syscall"
)

// A simFile is an open file of a Sim.
type simFile struct {
	d    *simDisk
	name string
	node *inode
	at   int
}

// Write is one step. It stays within the disk's capacity.
func (f *simFile) Write(b []byte) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	crash, err := f.d.step()
	if err != nil && !crash {
		return 0, pathErr("write", f.name, err)
	}
	if free := f.d.free(); free >= 0 {
		if grow := int64(f.at + len(b) - len(f.node.data)); grow > free {
			b = b[:max(0, int64(len(b))-(grow-free))]
			if err == nil {
				err = syscall.ENOSPC
			}
		}
	}
	data := slices.Clone(f.node.data)
	if end := f.at + len(b); end > len(data) {
		data = append(data, make([]byte, end-len(data))...)
	}
	copy(data[f.at:], b)
	f.node.data = data
	f.at += len(b)
	if err != nil {
		return len(b), pathErr("write", f.name, err)
	}
	return len(b), nil
}

// Sync is one step. Crashing in it leaves the content unsynced.
func (f *simFile) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if _, err := f.d.step(); err != nil {
		return pathErr("sync", f.name, err)
	}
	f.node.synced = f.node.data
	return nil
}

// Close is no step: it neither changes nor syncs anything.
func (f *simFile) Close() error { return nil }

// free returns the bytes left, negative without a limit.
func (d *simDisk) free() int64 {
	if d.capacity < 0 {
		return -1
	}
	used := int64(0)
	for _, node := range d.names {
		used += int64(len(node.data))
	}
	return max(0, d.capacity-used)
}

// Restart returns the disk as the next start finds it: everything synced, and of
// the rest a selection that the seed determines. Power may be cut at any time,
// whether or not CrashAfter struck; s itself is left as it is.
func (s *Sim) Restart(seed uint64) *Sim {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	rng := rand.New(rand.NewPCG(seed, 0x6469736b))
	names := maps.Clone(s.d.durable)
	for _, c := range s.d.pending {
		if rng.IntN(2) == 0 {
			apply(names, c.sets)
		}
	}
	dropOrphans(names)
	// A fixed order, so that the seed alone decides, and one copy for each inode.
	copies := make(map[*inode]*inode)
	out := make(map[string]*inode)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		node := names[name]
		if copies[node] == nil {
			data := node.survivor(rng)
			copies[node] = &inode{dir: node.dir, data: data, synced: data}
		}
		out[name] = copies[node]
	}
	return newSim(&simDisk{names: out, durable: maps.Clone(out), capacity: s.d.capacity})
}

// dropOrphans removes what lies in directories that did not survive.
func dropOrphans(names map[string]*inode) {
	for name := range names {
		for dir := name; dir != "."; {
			dir = path.Dir(dir)
			if p := names[dir]; p == nil || !p.dir {
				delete(names, name)
				break
			}
		}
	}
}

// survivor returns a content that a crash may leave.
func (n *inode) survivor(rng *rand.Rand) []byte {
	if n.dir || bytes.Equal(n.data, n.synced) {
		return n.synced
	}
	switch rng.IntN(5) {
	case 0: // nothing reached the disk
		return n.synced
	case 1: // everything did
		return n.data
	case 2: // the new size did, the blocks did not
		return padded(n.synced, len(n.data))
	}
	// a prefix did; the rest is old, missing or zero
	cut := rng.IntN(len(n.data) + 1)
	torn := padded(n.synced, cut)
	copy(torn, n.data[:cut])
	if rng.IntN(2) == 0 {
		return padded(torn, len(n.data))
	}
	return torn
}

// padded returns a copy of b with zeros up to n bytes.
func padded(b []byte, n int) []byte {
	out := make([]byte, max(len(b), n))
	copy(out, b)
	return out
}
