package dprf

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"

	"github.com/seed-a893640b/tae/internal/secret"
)

// Sizes in bytes.
const (
	KeySize  = 32 // one replicated key k_D
	IDSize   = 32 // the input: an object's identity
	MaskSize = 32
	TagSize  = 16
)

// Purpose separates the masks of one identity (docs/spec.md section 4).
type Purpose uint8

// PurposeDec masks the object's secret. Slot, rot and ring masks belong to
// rotation.
const (
	PurposeDec  Purpose = 1
	PurposeSlot Purpose = 2
	PurposeRot  Purpose = 3
	PurposeRing Purpose = 4
)

const (
	labelMask = "tae/v1/dprf/mask"
	labelTag  = "tae/v1/dprf/tag"
	maxMode   = 4
)

// A Share is one node's keys of one epoch, ready for evaluation. It is
// immutable and safe for concurrent use; each goroutine needs its own Scratch.
type Share struct {
	layout *Layout
	node   int
	keys   []evalKey // in the order of layout.HeldBy(node)
	slot   []int     // key number -> index in keys, -1 where not held
}

type evalKey struct {
	mask, tag cipher.Block
	dec       [2][aes.BlockSize]byte           // E_mask of the two first blocks of PurposeDec
	tags      [maxMode + 1][aes.BlockSize]byte // E_tag of the first block per mode
}

// NewShare expands node's keys, given in the order of layout.HeldBy(node), each
// KeySize bytes. The keys themselves are not kept.
func NewShare(layout *Layout, node int, keys []secret.Bytes) (*Share, error) {
	if node < 1 || node > layout.N {
		return nil, fmt.Errorf("dprf: node %d is not between 1 and %d", node, layout.N)
	}
	held := layout.HeldBy(node)
	if len(keys) != len(held) {
		return nil, fmt.Errorf("dprf: node %d holds %d keys, got %d", node, len(held), len(keys))
	}
	s := &Share{layout: layout, node: node, keys: make([]evalKey, len(keys)), slot: make([]int, layout.Keys())}
	for i := range s.slot {
		s.slot[i] = -1
	}
	for i, k := range keys {
		if k.Len() != KeySize {
			return nil, fmt.Errorf("dprf: key %d of node %d has %d bytes, want %d", held[i], node, k.Len(), KeySize)
		}
		s.slot[held[i]] = i
		if err := s.keys[i].expand(k); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// expand derives the two AES-256 keys and encrypts the first CBC-MAC blocks once.
func (e *evalKey) expand(k secret.Bytes) error {
	block := func(label string) (cipher.Block, error) {
		derived, err := hkdf.Key(sha256.New, k.Expose(), nil, label, 32)
		if err != nil {
			return nil, fmt.Errorf("dprf: derive %s: %w", label, err)
		}
		defer clear(derived)
		return aes.NewCipher(derived)
	}
	var err error
	if e.mask, err = block(labelMask); err != nil {
		return err
	}
	if e.tag, err = block(labelTag); err != nil {
		return err
	}
	for counter := range e.dec {
		first := firstBlock(byte(PurposeDec), 0, uint32(counter))
		e.mask.Encrypt(e.dec[counter][:], first[:])
	}
	for mode := range e.tags {
		first := firstBlock(byte(mode), 0, 0)
		e.tag.Encrypt(e.tags[mode][:], first[:])
	}
	return nil
}

// firstBlock encodes purpose (or mode), slot and counter injectively.
func firstBlock(kind byte, slot uint16, counter uint32) (b [aes.BlockSize]byte) {
	b[0] = kind
	binary.BigEndian.PutUint16(b[1:], slot)
	binary.BigEndian.PutUint32(b[3:], counter)
	return b
}

// Node is the index of the node that holds the share.
func (s *Share) Node() int { return s.node }

// Layout is the structure of the keys.
func (s *Share) Layout() *Layout { return s.layout }

// Scratch is working memory for evaluations: locals passed to a cipher.Block
// escape, so one Scratch per batch saves an allocation per call. Not safe for
// concurrent use.
type Scratch struct{ block, tag [aes.BlockSize]byte }

// cbc finishes a CBC-MAC whose first block is encrypted already: two AES calls.
func (sc *Scratch) cbc(b cipher.Block, first *[aes.BlockSize]byte, id *[IDSize]byte) {
	subtle.XORBytes(sc.block[:], first[:], id[:aes.BlockSize])
	b.Encrypt(sc.block[:], sc.block[:])
	subtle.XORBytes(sc.block[:], sc.block[:], id[aes.BlockSize:])
	b.Encrypt(sc.block[:], sc.block[:])
}

// AddMask XORs the PurposeDec mask of id under one held key into dst. It costs
// four AES calls and runs in constant time where AES does (with AES
// instructions). It panics when the node does not hold the key.
func (s *Share) AddMask(sc *Scratch, dst *[MaskSize]byte, id *[IDSize]byte, key int) {
	k := &s.keys[s.slot[key]]
	for i := range k.dec {
		sc.cbc(k.mask, &k.dec[i], id)
		half := dst[i*aes.BlockSize:][:aes.BlockSize]
		subtle.XORBytes(half, half, sc.block[:])
	}
}

// Tag writes the tag of id in mode under one held key: two AES calls.
func (s *Share) Tag(sc *Scratch, dst *[TagSize]byte, mode uint8, id *[IDSize]byte, key int) {
	k := &s.keys[s.slot[key]]
	sc.cbc(k.tag, &k.tags[mode], id)
	*dst = sc.block
}

// VerifyTags checks the tag of every key that the node holds. tags are all
// Keys() tags of the object in the order of key numbers. It looks at all of them
// whatever it finds, compares in constant time and does not say which one
// failed: a caller that learned that could repair a forgery tag by tag.
func (s *Share) VerifyTags(sc *Scratch, mode uint8, id *[IDSize]byte, tags []byte) bool {
	if len(tags) != TagSize*s.layout.Keys() {
		return false
	}
	good := 1
	for _, key := range s.layout.HeldBy(s.node) {
		s.Tag(sc, &sc.tag, mode, id, key)
		good &= subtle.ConstantTimeCompare(sc.tag[:], tags[key*TagSize:][:TagSize])
	}
	return good == 1
}
