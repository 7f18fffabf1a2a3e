package node

import (
	"errors"
	"fmt"
	"io/fs"
	"sort"

	"golang.org/x/crypto/cryptobyte"

	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/protocol/keygen"
)

// indexFile lists the keyset files that must be there, so that a lost one is
// noticed rather than taken for a keyset that never was.
const indexFile = "index.tae"

// index maps attempts with a file to the names of their keysets.
type index map[keygen.ID]string

func loadIndex(s *Sealer) (index, error) {
	content, err := s.Read(indexFile)
	if errors.Is(err, fs.ErrNotExist) {
		return index{}, nil
	}
	if err != nil {
		return nil, err
	}
	in := cryptobyte.String(content.Expose())
	x := index{}
	for !in.Empty() {
		var id keygen.ID
		var name cryptobyte.String
		if !in.CopyBytes(id.Keyset[:]) || !in.ReadUint16(&id.Epoch) || !in.ReadUint16(&id.Attempt) || !in.ReadUint8LengthPrefixed(&name) {
			return nil, fmt.Errorf("%s: %w", indexFile, ErrDamaged)
		}
		x[id] = string(name)
	}
	return x, nil
}

func (x index) save(s *Sealer) error {
	ids := make([]keygen.ID, 0, len(x))
	for id := range x {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return fileOf(ids[i]) < fileOf(ids[j]) })
	c := cryptobyte.NewBuilder(nil)
	for _, id := range ids {
		c.AddBytes(id.Keyset[:])
		c.AddUint16(id.Epoch)
		c.AddUint16(id.Attempt)
		c.AddUint8LengthPrefixed(func(c *cryptobyte.Builder) { c.AddBytes([]byte(x[id])) })
	}
	return s.Write(indexFile, secret.New(c.BytesOrPanic()))
}

// reconcile compares the index with the files found: a file that is listed but
// missing is reported as damaged, one that is not listed yet (a crash came in
// between) is added. A damaged index is made again from the files.
func (n *Node) reconcile(all []stored) error {
	x, err := loadIndex(n.cfg.Sealer)
	if err != nil {
		n.log.Sugar().Errorf("%v; it is made again from the files that are there", err)
		x = index{}
	}
	changed := err != nil
	found := map[keygen.ID]bool{}
	for _, s := range all {
		found[s.id] = true
		if _, ok := x[s.id]; !ok {
			x[s.id], changed = "", true
		}
		if s.attempt != nil && x[s.id] != s.attempt.Terms().Name {
			x[s.id], changed = s.attempt.Terms().Name, true
		}
	}
	for id := range x {
		if !found[id] {
			n.damaged[id] = fmt.Sprintf("%s: missing; restore it from a backup of this directory; without it this node cannot serve the keyset", fileOf(id))
			n.log.Error("keyset not served", zapKeyset(id), zapText("error", n.damaged[id]))
		}
	}
	n.index = x
	if changed {
		return x.save(n.cfg.Sealer)
	}
	return nil
}
