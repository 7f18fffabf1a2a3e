package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/protocol"
)

// A File is where EncryptFile writes: the header goes to the start after the body
// is written. *os.File is one.
type File interface {
	io.Writer
	io.Seeker
}

// EncryptFile encrypts src to dst, from dst's current position on, in constant
// memory. The object's commitment covers the whole body; until EncryptFile has
// returned nil, dst holds no usable object.
func (k *Keyset) EncryptFile(ctx context.Context, dst File, src io.Reader, aad []byte) error {
	// The data may take long to read; the default timeout is for the quorum alone.
	setup, cancel, err := k.c.bound(ctx)
	if err != nil {
		return err
	}
	cert, err := k.c.certificate(setup, k.name)
	cancel()
	if err != nil {
		return err
	}
	start, err := dst.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	hints, src := hintsOf(src)
	header := make([]byte, protocol.StreamHeaderSize(cert))
	if _, err := dst.Write(header); err != nil { // zeros: not an object until the end
		return err
	}
	s, err := protocol.NewFile(cert, k.c.author(), aad, hints, dst)
	if err != nil {
		return err
	}
	defer s.Wipe()
	if err := copyChunks(ctx, s, src); err != nil {
		return err
	}
	if err := s.FinishBody(); err != nil {
		return err
	}
	ctx, cancel, err = k.c.bound(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if err := k.runEncrypt(ctx, cert, s.Encryption); err != nil {
		return err
	}
	if _, err := dst.Seek(start, io.SeekStart); err != nil {
		return err
	}
	if _, err := dst.Write(s.Header()); err != nil {
		return err
	}
	_, err = dst.Seek(0, io.SeekEnd)
	return err
}

// hintsOf reads what hedges a stream's secret against bad randomness: the first
// chunk, and a file's name, size and time.
func hintsOf(src io.Reader) (*protocol.StreamHints, io.Reader) {
	h := &protocol.StreamHints{}
	if f, ok := src.(*os.File); ok {
		if info, err := f.Stat(); err == nil {
			h.Name, h.Size, h.ModTime = info.Name(), info.Size(), info.ModTime().UnixNano()
		}
	}
	first := make([]byte, protocol.ChunkSize)
	n, err := io.ReadFull(src, first)
	h.FirstChunk = first[:n]
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return h, bytes.NewReader(h.FirstChunk)
	}
	if err != nil {
		return h, io.MultiReader(bytes.NewReader(h.FirstChunk), failingReader{err})
	}
	return h, io.MultiReader(bytes.NewReader(h.FirstChunk), src)
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// copyChunks copies until src ends or ctx does.
func copyChunks(ctx context.Context, dst io.Writer, src io.Reader) error {
	buf := make([]byte, protocol.ChunkSize)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := src.Read(buf)
		if n > 0 {
			if _, err := dst.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// A Writer encrypts a pipe. It is not safe for concurrent use.
type Writer struct {
	k    *Keyset
	ctx  context.Context
	dst  io.Writer
	aad  []byte
	s    *protocol.Stream
	err  error
	done bool
}

// EncryptWriter returns a writer that encrypts to dst, which need not be seekable,
// in constant memory. The quorum is asked at the first Write. Close writes the end,
// signed with the client's key: without a nil Close the object is cut off and does
// not decrypt.
func (k *Keyset) EncryptWriter(ctx context.Context, dst io.Writer, aad []byte) *Writer {
	return &Writer{k: k, ctx: ctx, dst: dst, aad: aad}
}

func (w *Writer) begin(first []byte) error {
	ctx, cancel, err := w.k.c.bound(w.ctx)
	if err != nil {
		return err
	}
	defer cancel()
	cert, err := w.k.c.certificate(ctx, w.k.name)
	if err != nil {
		return err
	}
	s := protocol.NewPipe(cert, w.k.c.author(), w.aad, &protocol.StreamHints{FirstChunk: first})
	if err := w.k.runEncrypt(ctx, cert, s.Encryption); err != nil {
		return err
	}
	if _, err := w.dst.Write(s.Header()); err != nil {
		return err
	}
	w.s = s
	return s.StartBody(w.dst)
}

// Write encrypts p. After an error every later call fails with the same.
func (w *Writer) Write(p []byte) (int, error) {
	if w.done && w.err == nil {
		return 0, errors.New("client: write after Close")
	}
	if w.err == nil && w.s == nil {
		w.err = w.begin(p)
	}
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.s.Write(p)
	w.err = err
	return n, err
}

// Close writes the end of the object. It does not close the destination.
func (w *Writer) Close() error {
	if w.done {
		return w.err
	}
	w.done = true
	if w.err == nil && w.s == nil {
		w.err = w.begin(nil)
	}
	if w.s != nil {
		defer w.s.Wipe()
	}
	if w.err == nil {
		w.err = w.s.EndPipe(w.k.c.opts.key)
	}
	return w.err
}

// A Reader decrypts an object of any kind.
type Reader struct {
	src    io.Reader
	author func() [32]byte
}

// Read releases verified plaintext. The data are complete and authentic only when
// it has returned io.EOF; any other error means that what was released before is to
// be thrown away.
func (r *Reader) Read(p []byte) (int, error) { return r.src.Read(p) }

// Author is the public key of the client that encrypted the object. It is proven
// when Read has returned io.EOF.
func (r *Reader) Author() [32]byte { return r.author() }

// DecryptReader decrypts the object that src holds, in constant memory. The quorum
// is asked before it returns. An object of wrong form, keyset or epoch is refused
// here; a pipe with other associated data too, a file with other associated data
// only at its end.
func (k *Keyset) DecryptReader(ctx context.Context, src io.Reader, aad []byte) (*Reader, error) {
	h, err := readHeader(src)
	if err != nil {
		return nil, err
	}
	setup, cancel, err := k.c.bound(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	cert, err := k.c.certificate(setup, k.name)
	if err != nil {
		return nil, err
	}
	if err := checkObject(cert, h); err != nil {
		return nil, err
	}
	if h.Kind == protocol.KindMessage {
		return k.readMessage(setup, cert, h, src, aad)
	}
	commitment := make([]byte, protocol.CommitmentSize)
	if _, err := io.ReadFull(src, commitment); err != nil {
		return nil, cutOff(err)
	}
	var secret protocol.Opened
	errs, err := k.unmask(setup, cert, []*protocol.Header{h}, func(_ int, o protocol.Opened) bool {
		secret = o
		return o.FitsStream(commitment)
	})
	if err = errors.Join(err, first(errs)); err != nil {
		return nil, err
	}
	b, err := secret.Stream(io.MultiReader(bytes.NewReader(commitment), contextReader{ctx, src}), aad)
	if err != nil {
		return nil, err
	}
	return &Reader{src: b, author: func() [32]byte { return b.Author() }}, nil
}

func first(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}

// readHeader reads a header and nothing behind it.
func readHeader(src io.Reader) (*protocol.Header, error) {
	prefix := make([]byte, protocol.MinHeader)
	n, err := io.ReadFull(src, prefix)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	size, err := protocol.HeaderSize(prefix[:n])
	if err != nil {
		return nil, err
	}
	full := make([]byte, size)
	n = copy(full, prefix)
	m, err := io.ReadFull(src, full[n:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	h, _, err := protocol.ParseHeader(full[:n+m])
	return h, err
}

// cutOff turns an early end into an authentication failure.
func cutOff(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: it is cut off", ErrAuthentication)
	}
	return err
}

func (k *Keyset) readMessage(ctx context.Context, cert *protocol.Certificate, h *protocol.Header, src io.Reader, aad []byte) (*Reader, error) {
	body, err := io.ReadAll(io.LimitReader(src, MaxMessage+1024))
	if err != nil {
		return nil, err
	}
	var m []byte
	var author [32]byte
	errs, err := k.unmask(ctx, cert, []*protocol.Header{h}, func(_ int, o protocol.Opened) bool {
		var err error
		m, author, err = o.Message(body, aad)
		return err == nil
	})
	if err = errors.Join(err, first(errs)); err != nil {
		return nil, err
	}
	return &Reader{src: bytes.NewReader(m), author: func() [32]byte { return author }}, nil
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	src io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.src.Read(p)
}

// Info is what an object shows without any key.
type Info struct {
	Kind       string
	Suite      string
	Mode       string
	Keyset     string // hexadecimal identity
	Epoch      int
	Moved      bool // a sealed object that was rotated since it was made
	Tags       int
	HeaderSize int // bytes
}

// Inspect reads the header at the start of src. It asks nobody.
func Inspect(src io.Reader) (*Info, error) {
	h, err := readHeader(src)
	if err != nil {
		return nil, err
	}
	return &Info{Kind: h.Kind.String(), Suite: h.Suite.String(), Mode: h.Mode.String(), Keyset: h.Keyset.String(), Epoch: int(h.Epoch),
		Moved: h.Source.Moved, Tags: len(h.Proof) / dprf.TagSize, HeaderSize: h.Size()}, nil
}
