package protocol

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"io"

	"github.com/seed-a893640b/tae/internal/labelhash"
	"github.com/seed-a893640b/tae/sig"
)

const (
	labelCommitKey = "tae/v1/commit"
	labelStreamKey = "tae/v1/stream-key"
	labelPipeBody  = "tae/v1/pipe-body"
	labelPipeRest  = "tae/v1/pipe-rest"
	labelPipeEnd   = "tae/v1/pipe-end"

	// ChunkSize is the plaintext of every chunk of a stream but the last, in bytes.
	ChunkSize = 64 << 10

	commitSize = 32
	tagSize    = 16
	// maxFinal is the plaintext of the longest last chunk: of a file a whole chunk,
	// of a pipe one byte less and the signature.
	maxFinalFile = ChunkSize
	maxFinalPipe = ChunkSize - 1 + sig.Size
)

func maxFinal(k Kind) int {
	if k == KindPipe {
		return maxFinalPipe
	}
	return maxFinalFile
}

// chunkNonce is the STREAM construction (Hoang, Reyhanitabar, Rogaway, Vizár,
// CRYPTO 2015): chunk number and final flag, so that chunks cannot be reordered,
// dropped, repeated or taken for the last.
func chunkNonce(n uint64, final bool) (nonce [12]byte) {
	binary.BigEndian.PutUint64(nonce[3:], n)
	if final {
		nonce[11] = 1
	}
	return nonce
}

func streamAEAD(rho *Rho) cipher.AEAD {
	key := bodyKey(rho, labelStreamKey)
	defer clear(key[:])
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("internal error: " + err.Error())
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return aead
}

func pipeCommitment(commitment *[commitSize]byte) [32]byte {
	return labelhash.New(labelPipe).Fixed(commitment[:]).Sum()
}

// pipeEnd is what a client signs at the end of a pipe: without it, whoever may
// decrypt could write another body under the same secret in the client's name.
func pipeEnd(x0 Identity, body [32]byte, rest []byte) [32]byte {
	restHash := labelhash.New(labelPipeRest).Fixed(rest).Sum()
	return labelhash.New(labelPipeEnd).Fixed(x0[:]).Fixed(body[:]).Fixed(restHash[:]).Sum()
}

// A BodyWriter encrypts the body of a stream in constant memory. It is not safe
// for concurrent use.
type BodyWriter struct {
	dst  io.Writer
	kind Kind
	aead cipher.AEAD
	hash labelhash.Hash // over the body: of a file all, of a pipe all before the last chunk
	buf  []byte
	n    uint64
	err  error
}

// newBodyWriter writes the key commitment; the prelude j || R.
func newBodyWriter(dst io.Writer, kind Kind, rho *Rho, j *ClientKey, r *[32]byte) (*BodyWriter, error) {
	label := labelBody
	if kind == KindPipe {
		label = labelPipeBody
	}
	w := &BodyWriter{dst: dst, kind: kind, aead: streamAEAD(rho), hash: labelhash.New(label)}
	w.buf = make([]byte, 0, maxFinalPipe+tagSize)
	w.buf = append(append(w.buf, j[:]...), r[:]...)
	commitment := bodyKey(rho, labelCommitKey)
	w.hash.Fixed(commitment[:])
	if _, err := dst.Write(commitment[:]); err != nil {
		return nil, err
	}
	return w, nil
}

// Write encrypts p. An error of the destination is returned again by every later
// call.
func (w *BodyWriter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 && w.err == nil {
		if len(w.buf) == ChunkSize {
			w.flush(false)
			continue
		}
		m := copy(w.buf[len(w.buf):ChunkSize], p)
		w.buf = w.buf[:len(w.buf)+m]
		p = p[m:]
		written += m
		// A pipe's last chunk is shorter than a chunk, a file's is not empty.
		if w.kind == KindPipe && len(w.buf) == ChunkSize {
			w.flush(false)
		}
	}
	return written, w.err
}

func (w *BodyWriter) flush(final bool) {
	nonce := chunkNonce(w.n, final)
	w.n++
	c := w.aead.Seal(w.buf[:0], nonce[:], w.buf, nil)
	if w.kind == KindFile || !final {
		w.hash.Fixed(c)
	}
	if _, err := w.dst.Write(c); err != nil && w.err == nil {
		w.err = err
	}
	w.buf = w.buf[:0]
}

// finishFile writes the last chunk and returns the hash of the body.
func (w *BodyWriter) finishFile() ([32]byte, error) {
	if w.err == nil {
		w.flush(true)
	}
	err := w.err
	w.err = errClosed
	return w.hash.Sum(), err
}

// finishPipe signs the body and writes the last chunk.
func (w *BodyWriter) finishPipe(x0 Identity, key ed25519.PrivateKey) error {
	if w.err != nil {
		return w.err
	}
	s := sig.Sign(key, labelPipeEnd, pipeEnd(x0, w.hash.Sum(), w.buf))
	w.buf = append(w.buf, s[:]...)
	w.flush(true)
	err := w.err
	w.err = errClosed
	return err
}

var errClosed = errors.New("protocol: write to a closed stream")

// A BodyReader decrypts the body of a stream and releases only chunks that
// verify. The client and the associated data are proven for a pipe with the first
// chunk, for a file only at the end; a pipe's end is signed by its client. Until
// Read has returned io.EOF the stream may still turn out to be cut off or forged:
// the last error is then ErrAuthentication, not io.EOF. Not safe for concurrent use.
type BodyReader struct {
	src    io.Reader
	h      *Header
	secret [32]byte
	aad    [32]byte
	aead   cipher.AEAD
	hash   labelhash.Hash
	buf    []byte // ciphertext read ahead
	store  []byte // the last opened chunk
	plain  []byte // the part of it that is verified and not yet released
	n      uint64
	author ClientKey
	r      [32]byte
	err    error
}

// newBodyReader reads and checks the key commitment: before it holds, no chunk is
// opened, so that one body cannot open under two secrets.
func newBodyReader(h *Header, secret *[32]byte, src io.Reader, aad []byte) (*BodyReader, error) {
	rho := Rho(secret[:RhoSize])
	defer clear(rho[:])
	label := labelBody
	if h.Kind == KindPipe {
		label = labelPipeBody
	}
	b := &BodyReader{src: src, h: h, secret: *secret, aad: aadHash(&h.Params, aad), hash: labelhash.New(label)}
	var commitment [commitSize]byte
	if _, err := io.ReadFull(src, commitment[:]); err != nil {
		return nil, truncated(err)
	}
	want := bodyKey(&rho, labelCommitKey)
	if subtle.ConstantTimeCompare(want[:], commitment[:]) != 1 {
		return nil, ErrAuthentication
	}
	b.hash.Fixed(commitment[:])
	b.aead = streamAEAD(&rho)
	b.buf = make([]byte, 0, maxFinal(h.Kind)+tagSize+1)
	b.store = make([]byte, maxFinal(h.Kind))
	b.next()
	if b.err != nil && b.err != io.EOF {
		return nil, b.err
	}
	return b, nil
}

// truncated turns the end of the input into an authentication failure and leaves
// errors of reading as they are.
func truncated(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return ErrAuthentication
	}
	return err
}

// Author is the client that encrypted the stream. For a file it is proven only
// when Read has returned io.EOF.
func (b *BodyReader) Author() ClientKey { return b.author }

// Read releases verified plaintext.
func (b *BodyReader) Read(p []byte) (int, error) {
	for len(b.plain) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.next()
	}
	n := copy(p, b.plain)
	b.plain = b.plain[n:]
	return n, nil
}

// next opens one chunk. It leaves plaintext in plain and, with the last chunk,
// io.EOF or an error in err; never both plaintext and an error.
func (b *BodyReader) next() {
	have := len(b.buf)
	m, err := io.ReadFull(b.src, b.buf[have:cap(b.buf)])
	b.buf = b.buf[:have+m]
	final := err == io.EOF || err == io.ErrUnexpectedEOF
	if err != nil && !final {
		b.err = err
		return
	}
	size := len(b.buf)
	if !final {
		size = ChunkSize + tagSize
	}
	chunk := b.buf[:size]
	if b.h.Kind == KindFile || !final {
		b.hash.Fixed(chunk)
	}
	nonce := chunkNonce(b.n, final)
	plain, err := b.aead.Open(b.store[:0], nonce[:], chunk, nil)
	if err != nil || (final && b.n > 0 && len(plain) == 0) {
		b.fail()
		return
	}
	b.buf = append(b.buf[:0], b.buf[size:]...)
	b.accept(plain, final)
	b.n++
}

func (b *BodyReader) fail() { b.plain, b.err = nil, ErrAuthentication }

func (b *BodyReader) accept(plain []byte, final bool) {
	b.plain = plain
	if b.n == 0 {
		if len(plain) < preludeSize {
			b.fail()
			return
		}
		b.author, b.r = ClientKey(plain[:32]), [32]byte(plain[32:64])
		if b.h.Kind == KindPipe && !b.pipeStart() {
			b.fail()
			return
		}
	}
	switch {
	case !final:
	case b.h.Kind == KindFile:
		if !b.verify(b.hash.Sum()) {
			b.fail()
			return
		}
		b.err = io.EOF
	default:
		end := len(plain) - sig.Size
		if end < 0 || !sig.Verify(b.author[:], labelPipeEnd, pipeEnd(b.h.Source.X0, b.hash.Sum(), plain[:end]), plain[end:]) {
			b.fail()
			return
		}
		b.plain = plain[:end]
		b.err = io.EOF
	}
	if b.n == 0 {
		if len(b.plain) < preludeSize {
			b.fail()
			return
		}
		b.plain = b.plain[preludeSize:]
	}
}

func (b *BodyReader) pipeStart() bool {
	rho := Rho(b.secret[:RhoSize])
	defer clear(rho[:])
	commitment := bodyKey(&rho, labelCommitKey)
	return b.verify(pipeCommitment(&commitment))
}

func (b *BodyReader) verify(body [32]byte) bool {
	rho := Rho(b.secret[:RhoSize])
	defer clear(rho[:])
	born := binary.BigEndian.Uint16(b.secret[RhoSize:])
	return b.h.verify(&rho, born, b.author, &b.r, &body, &b.aad) == nil
}
