package recrypt

import (
	"errors"
	"fmt"
	"io"

	"github.com/seed-a893640b/tae/uae"
)

// chunkBlocks is the number of blocks that the streams hold in memory.
const chunkBlocks = 1024

// EncryptStream implements uae.Streamer.
func (s *Scheme) EncryptStream(body io.Writer, k uae.Key, m io.Reader, aad []byte) ([]byte, error) {
	return s.encryptStream(body, k, m, aad, draw())
}

func (s *Scheme) encryptStream(body io.Writer, k uae.Key, m io.Reader, aad []byte, r *random) ([]byte, error) {
	key, err := k.ExposeRoot(uae.ReCrypt, 0)
	if err != nil {
		return nil, err
	}
	if _, err := body.Write(r.y.Encode(nil)); err != nil {
		return nil, err
	}
	h := newMessageHash(aad)
	in, out := make([]byte, BlockSize*chunkBlocks), make([]byte, pointSize*chunkBlocks)
	length, first := uint64(0), uint64(1)
	for last := false; !last; first += chunkBlocks {
		n, err := io.ReadFull(m, in)
		last = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return nil, err
		}
		if length += uint64(n); length > limit {
			return nil, fmt.Errorf("uae/recrypt: message longer than %d bytes", uint64(limit))
		}
		_, _ = h.Write(in[:n])
		encryptBlocks(out[:pointSize*blocks(n)], in[:n], r.x, first)
		if _, err := body.Write(out[:pointSize*blocks(n)]); err != nil {
			return nil, err
		}
	}
	clear(in)
	return seal(h, r).header(nil, key, length, &r.salt), nil
}

// ReEncryptStream implements uae.Streamer.
func (s *Scheme) ReEncryptStream(dst io.Writer, tok, header []byte, body io.Reader) ([]byte, error) {
	t, err := parseToken(tok)
	if err != nil {
		return nil, err
	}
	p, err := parse(header)
	if err != nil {
		return nil, err
	}
	if err := t.Check(header); err != nil {
		return nil, err
	}
	buf := make([]byte, pointSize*chunkBlocks)
	read := func(b []byte) error {
		if _, err := io.ReadFull(body, b); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return fmt.Errorf("%w ciphertext: length", uae.ErrFormat)
			}
			return err
		}
		return nil
	}
	if err := read(buf[:shareSize]); err != nil {
		return nil, err
	}
	if err := t.share(buf[:shareSize], buf[:shareSize]); err != nil {
		return nil, err
	}
	if _, err := dst.Write(buf[:shareSize]); err != nil {
		return nil, err
	}
	first := uint64(1)
	for left := blocks(int(p.Length)); left > 0; left -= chunkBlocks {
		b := buf[:pointSize*min(left, chunkBlocks)]
		if err := read(b); err != nil {
			return nil, err
		}
		if !updateBlocks(b, b, t.x, first) {
			return nil, fmt.Errorf("%w body: not a group element", uae.ErrFormat)
		}
		if _, err := dst.Write(b); err != nil {
			return nil, err
		}
		first += chunkBlocks
	}
	if n, err := io.ReadFull(body, buf[:1]); n != 0 || !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w ciphertext: length", uae.ErrFormat)
	}
	return t.Header, nil
}
