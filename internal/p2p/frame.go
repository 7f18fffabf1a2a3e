package p2p

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// A frame on the stream, all integers big endian (docs/spec.md section 9):
//
//	offset  size
//	     0     4  length of everything after this field
//	     4     1  kind
//	     5     8  request id
//	    13     4  request only: milliseconds the caller still waits, 0 = no limit
//	 13/17     -  body: request, answer and failed only; otherwise empty
//
// The time left is a duration, not an instant, so that clocks need not agree.
const (
	kindRequest = 1 // caller to node; ids count up from 1 on each stream
	kindAnswer  = 2 // node to caller
	kindCancel  = 3 // caller to node: the answer is no longer wanted
	kindBusy    = 4 // node to caller: not started, over a bound
	kindFailed  = 5 // node to caller: no answer; the body says why, in UTF-8
	kindPing    = 6 // either way, any id
	kindPong    = 7 // answers a ping, with its id
)

const (
	lengthSize    = 4
	headerSize    = lengthSize + 1 + 8
	requestHeader = headerSize + 4
	minFrame      = headerSize
)

// FrameOverhead is how much shorter than Config.MaxFrame a request or answer must
// be, in bytes.
const FrameOverhead = requestHeader

// maxWrite is the most that one Write hands to the connection. A yamux frame of
// 64 KiB is more than a Noise message holds and would be sent as two.
const maxWrite = 48 << 10

// growStep is how much memory a peer gets on the mere announcement of a frame.
const growStep = 64 << 10

type frame struct {
	kind   byte
	id     uint64
	millis uint32 // request only
	body   []byte
}

func (f *frame) size() int {
	if f.kind == kindRequest {
		return requestHeader + len(f.body)
	}
	return headerSize + len(f.body)
}

// appendTo adds the encoded frame to b.
func (f *frame) appendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(f.size()-lengthSize))
	b = append(b, f.kind)
	b = binary.BigEndian.AppendUint64(b, f.id)
	if f.kind == kindRequest {
		b = binary.BigEndian.AppendUint32(b, f.millis)
	}
	return append(b, f.body...)
}

// parseFrame decodes what follows the length field. The body aliases b.
func parseFrame(b []byte) (frame, error) {
	if len(b) < minFrame-lengthSize {
		return frame{}, fmt.Errorf("%w: %d bytes", ErrFrame, len(b))
	}
	f := frame{kind: b[0], id: binary.BigEndian.Uint64(b[1:]), body: b[9:]}
	switch f.kind {
	case kindRequest:
		if len(f.body) < 4 {
			return frame{}, fmt.Errorf("%w: request without a time limit", ErrFrame)
		}
		f.millis, f.body = binary.BigEndian.Uint32(f.body), f.body[4:]
	case kindAnswer, kindFailed:
	case kindCancel, kindBusy, kindPing, kindPong:
		if len(f.body) != 0 {
			return frame{}, fmt.Errorf("%w: kind %d with a body", ErrFrame, f.kind)
		}
	default:
		return frame{}, fmt.Errorf("%w: unknown kind %d", ErrFrame, f.kind)
	}
	return f, nil
}

// errStalled says that a frame began and did not end in time.
var errStalled = fmt.Errorf("%w: incomplete", ErrFrame)

type deadlineReader interface {
	io.Reader
	SetReadDeadline(time.Time) error
}

// A frameReader reads frames from a stream. Between frames it waits without
// limit; of a frame that has begun, each growStep must come within timeout, so
// that a large frame may take its time on a slow line.
type frameReader struct {
	src      deadlineReader
	br       *bufio.Reader
	max      int
	timeout  time.Duration
	progress func() // called when part of a frame has come; may be nil
}

func newFrameReader(src deadlineReader, max int, timeout time.Duration) *frameReader {
	return &frameReader{src: src, br: bufio.NewReaderSize(src, growStep), max: max, timeout: timeout}
}

// next returns the next frame, whose body the caller owns. io.EOF means that the
// peer closed its side between two frames.
func (r *frameReader) next() (frame, error) {
	if _, err := r.br.Peek(1); err != nil {
		return frame{}, err
	}
	timed := r.br.Buffered() < lengthSize
	if timed {
		_ = r.src.SetReadDeadline(time.Now().Add(r.timeout))
	}
	head, err := r.br.Peek(lengthSize)
	if err != nil {
		return frame{}, stalled(err)
	}
	n := int64(binary.BigEndian.Uint32(head))
	if n < minFrame-lengthSize || n > int64(r.max-lengthSize) {
		return frame{}, fmt.Errorf("%w: length %d, limit %d", ErrFrame, n, r.max-lengthSize)
	}
	_, _ = r.br.Discard(lengthSize)
	timed = timed || int64(r.br.Buffered()) < n
	b, err := r.read(int(n), timed)
	if timed {
		_ = r.src.SetReadDeadline(time.Time{})
	}
	if err != nil {
		return frame{}, stalled(err)
	}
	return parseFrame(b)
}

// read returns the next n bytes. Its buffer grows with what has arrived.
func (r *frameReader) read(n int, timed bool) ([]byte, error) {
	b := make([]byte, min(n, growStep))
	for got := 0; ; {
		if timed {
			_ = r.src.SetReadDeadline(time.Now().Add(r.timeout))
		}
		m, err := io.ReadFull(r.br, b[got:min(len(b), got+growStep)])
		if err != nil {
			return nil, err
		}
		if got += m; got == n {
			return b, nil
		}
		if r.progress != nil {
			r.progress()
		}
		if got == len(b) {
			grown := make([]byte, min(n, 4*len(b)))
			copy(grown, b)
			b = grown
		}
	}
}

// stalled names what an error in the middle of a frame means.
func stalled(err error) error {
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return errStalled
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
