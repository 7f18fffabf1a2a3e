package nested

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"

	"github.com/seed-a893640b/tae/uae/internal/frame"
)

// Everything below the header hangs on one 32-byte root per layer. The body key
// is seen by the storage in a token; it encrypts two messages, the payload under
// nonce 0 and zeros under nonce 1, the pad. The history key, which hides the
// previous root, is never seen by the storage and encrypts one message.
const (
	labelBody    = "tae/v1/uae/nested/body-key"
	labelHistory = "tae/v1/uae/nested/history-key"
)

// Nonces of the body key. The history key uses noncePayload too.
const (
	noncePayload = iota
	noncePad
)

func nonce(n byte) []byte { return []byte{11: n} }

// newGCM returns AES-256-GCM.
func newGCM(key *[32]byte) cipher.AEAD {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("internal error: " + err.Error())
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return gcm
}

// appendPad appends n bytes of pad, a multiple of PerUpdate: zeros encrypted
// with their tag, all of it pseudorandom.
func appendPad(dst []byte, gcm cipher.AEAD, n int) []byte {
	if n == 0 {
		return dst
	}
	at := len(dst)
	dst = append(dst, make([]byte, n)...) // does not allocate where there is room
	return gcm.Seal(dst[:at], nonce(noncePad), dst[at:at+n-tagSize], nil)
}

// isPad says whether b, a multiple of PerUpdate, is the pad of this key, which it computes anew in
// scratch. It reads all of b whatever it finds.
func isPad(b, scratch []byte, gcm cipher.AEAD) bool {
	want := appendPad(scratch[:0], gcm, len(b))
	var diff uint64
	for len(b) >= PerUpdate && len(want) >= PerUpdate {
		x, y := (*[PerUpdate]byte)(b), (*[PerUpdate]byte)(want)
		for i := 0; i < PerUpdate; i += 16 {
			diff |= binary.LittleEndian.Uint64(x[i:]) ^ binary.LittleEndian.Uint64(y[i:])
			diff |= binary.LittleEndian.Uint64(x[i+8:]) ^ binary.LittleEndian.Uint64(y[i+8:])
		}
		b, want = b[PerUpdate:], want[PerUpdate:]
	}
	return diff == 0
}

// sealHistory encrypts the old root under the history key of the new one.
func sealHistory(dst []byte, newRoot, oldRoot *[rootSize]byte) []byte {
	key := frame.Derive(labelHistory, newRoot[:])
	defer clear(key[:])
	return newGCM(&key).Seal(dst, nonce(noncePayload), oldRoot[:], nil)
}

// openHistory recovers the previous root. On failure it leaves a useless root,
// with which peel goes on: which check fails must not show in the time.
func openHistory(root *[rootSize]byte, hist []byte) bool {
	key := frame.Derive(labelHistory, root[:])
	defer clear(key[:])
	var buf [rootSize]byte
	_, err := newGCM(&key).Open(buf[:0], nonce(noncePayload), hist, nil)
	*root = buf
	return err == nil
}

// peel opens the age+1 layers of payload into buf, which has room for payload
// and is worked on in place from the second layer on, since all layers begin at
// offset 0. gcm has the key of the outermost. The message is the start of buf if
// it returns true.
func peel(buf, payload []byte, root *[rootSize]byte, gcm cipher.AEAD, age int, aad []byte) bool {
	ok := true
	for ; age > 0; age-- {
		n := len(payload) - histSize
		var hist [histSize]byte // buf and payload are the same from the second layer on
		copy(hist[:], payload[n:])
		_, err := gcm.Open(buf[:0], nonce(noncePayload), payload[:n], hist[:])
		good := openHistory(root, hist[:])
		ok = ok && err == nil && good
		payload = buf[:n-tagSize]
		gcm = bodyGCM(root)
	}
	_, err := gcm.Open(buf[:0], nonce(noncePayload), payload, aad)
	return ok && err == nil
}

func bodyGCM(root *[rootSize]byte) cipher.AEAD {
	key := frame.Derive(labelBody, root[:])
	defer clear(key[:])
	return newGCM(&key)
}
