// Package armor writes objects as text and reads them back, in constant memory: a
// BEGIN line, standard base64 in lines of 64 characters, and an END line
// (docs/spec.md section 6.4). Exactly one encoding is accepted, except that lines
// may end in CR LF and spaces may follow the end.
package armor

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
)

const (
	begin = "-----BEGIN TAE OBJECT-----"
	end   = "-----END TAE OBJECT-----"
	width = 64 // characters of a line
	unit  = width / 4 * 3
)

// ErrArmor reports text that is not an armored object.
var ErrArmor = errors.New("malformed armor")

// A Writer encodes. Close writes the end; it does not close the destination.
type Writer struct {
	w       *bufio.Writer
	pending []byte // of the present line
	started bool
}

// NewWriter returns a writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: bufio.NewWriterSize(w, 64<<10)} }

// Write encodes p.
func (a *Writer) Write(p []byte) (int, error) {
	n := len(p)
	a.start()
	for len(p) > 0 {
		m := min(unit-len(a.pending), len(p))
		a.pending = append(a.pending, p[:m]...)
		p = p[m:]
		if len(a.pending) == unit {
			if err := a.line(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

func (a *Writer) start() {
	if !a.started {
		a.started = true
		_, _ = a.w.WriteString(begin + "\n") // its error comes back from Flush
	}
}

func (a *Writer) line() error {
	var buf [width + 1]byte
	b := base64.StdEncoding.AppendEncode(buf[:0], a.pending)
	a.pending = a.pending[:0]
	_, err := a.w.Write(append(b, '\n'))
	return err
}

// Close writes what is left and the end line.
func (a *Writer) Close() error {
	a.start()
	if len(a.pending) > 0 {
		if err := a.line(); err != nil {
			return err
		}
	}
	_, _ = a.w.WriteString(end + "\n")
	return a.w.Flush()
}

// Detect returns a reader of the object in r, decoding it when it is armored.
func Detect(r *bufio.Reader) (io.Reader, error) {
	start, err := r.Peek(len(begin))
	if err != nil && err != io.EOF {
		return nil, err
	}
	if !bytes.Equal(start, []byte(begin)) {
		return r, nil
	}
	d := &reader{r: r}
	if line, err := d.readLine(); err != nil || string(line) != begin {
		return nil, fmt.Errorf("%w: bad first line", ErrArmor)
	}
	return d, nil
}

type reader struct {
	r     *bufio.Reader
	plain []byte
	buf   [unit]byte
	last  bool // a short line has been read
	err   error
}

func (d *reader) Read(p []byte) (int, error) {
	for len(d.plain) == 0 {
		if d.err != nil {
			return 0, d.err
		}
		d.next()
	}
	n := copy(p, d.plain)
	d.plain = d.plain[n:]
	return n, nil
}

// readLine reads a line without its end.
func (d *reader) readLine() ([]byte, error) {
	line, err := d.r.ReadSlice('\n')
	if err != nil && (err != io.EOF || len(line) == 0) {
		if err == io.EOF {
			err = fmt.Errorf("%w: it ends without an END line", ErrArmor)
		}
		return nil, err
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), nil
}

func (d *reader) next() {
	line, err := d.readLine()
	switch {
	case err != nil:
		d.err = err
	case string(line) == end:
		d.err = d.trailing()
	case len(line) == 0 || len(line) > width || d.last:
		d.err = fmt.Errorf("%w: a line has the wrong length", ErrArmor)
	case bytes.IndexByte(line, '\r') >= 0:
		// The decoder would pass over it, and two texts would be one object.
		d.err = fmt.Errorf("%w: a line is not base64", ErrArmor)
	default:
		d.last = len(line) < width
		n, err := base64.StdEncoding.Strict().Decode(d.buf[:], line)
		if err != nil {
			d.err = fmt.Errorf("%w: a line is not base64", ErrArmor)
			return
		}
		d.plain = d.buf[:n]
		d.last = d.last || n < unit
	}
}

// trailing accepts white space only behind the end.
func (d *reader) trailing() error {
	for {
		b, err := d.r.ReadByte()
		if err != nil {
			return err // io.EOF: the end
		}
		if b != ' ' && b != '\t' && b != '\r' && b != '\n' {
			return fmt.Errorf("%w: text behind the END line", ErrArmor)
		}
	}
}
