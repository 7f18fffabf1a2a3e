package lattice

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/seed-a893640b/tae/uae"
)

// EncryptStream implements uae.Streamer. It holds two ring elements per core in
// memory.
func (s *Scheme) EncryptStream(body io.Writer, k uae.Key, m io.Reader, aad []byte) ([]byte, error) {
	r := draw()
	defer clear(r[:])
	return s.encryptStream(body, k, m, aad, r)
}

func (s *Scheme) encryptStream(body io.Writer, k uae.Key, m io.Reader, aad []byte, r *random) ([]byte, error) {
	key, err := k.ExposeRoot(uae.Lattice, uint16(s.r.param))
	if err != nil {
		return nil, err
	}
	w := s.newWorker(r.seed())
	defer w.wipe()
	count := 2 * runtime.GOMAXPROCS(0)
	in, out := make([]byte, count*s.r.blockPlain()), make([]byte, count*s.r.blockBody())
	defer clear(in)
	h, length := newMessageHash(aad), uint64(0)
	for first, last := 0, false; !last; first += count {
		n, err := io.ReadFull(m, in)
		last = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return nil, err
		}
		if length += uint64(n); length > limit {
			return nil, fmt.Errorf("uae/lattice: message longer than %d bytes", uint64(limit))
		}
		b := out[:s.r.bodySize(n)]
		leaves := w.encrypt(b, in[:n], first)
		for i := range leaves {
			h.Fixed(leaves[i][:])
		}
		if _, err := body.Write(b); err != nil {
			return nil, err
		}
	}
	st := state{seed: *r.seed(), hash: h.Sum()}
	return s.header(nil, key, length, &st, r.salt()), nil
}

// ReEncryptStream implements uae.Streamer.
func (s *Scheme) ReEncryptStream(dst io.Writer, token, header []byte, body io.Reader) ([]byte, error) {
	t, err := s.parseToken(token)
	if err != nil {
		return nil, err
	}
	p, err := s.parse(header)
	if err != nil {
		return nil, err
	}
	if err := t.Check(header); err != nil {
		return nil, err
	}
	u, err := s.newUpdater(t.Part)
	if err != nil {
		return nil, err
	}
	defer u.wipe()
	count := 2 * runtime.GOMAXPROCS(0)
	buf := make([]byte, count*s.r.blockBody())
	errLength := fmt.Errorf("%w ciphertext: length", uae.ErrFormat)
	left := s.r.bodySize(int(p.Length))
	for first := 0; left > 0; first += count {
		b := buf[:min(left, len(buf))]
		if _, err := io.ReadFull(body, b); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, errLength
			}
			return nil, err
		}
		if !u.update(b, b, first) {
			return nil, errRange
		}
		if _, err := dst.Write(b); err != nil {
			return nil, err
		}
		left -= len(b)
	}
	if n, err := io.ReadFull(body, buf[:1]); n != 0 || !errors.Is(err, io.EOF) {
		return nil, errLength
	}
	return t.Header, nil
}
