package protocol

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"testing"

	"github.com/seed-a893640b/tae/dprf"
)

// seedWith adds a field of stored vectors of TAE1 as seeds, seedWith3 of TAE3.
func seedWith(f *testing.F, file, field string) { addSeeds(f, loadVectors(f, file), field) }

func seedWith3(f *testing.F, file, field string) { addSeeds(f, loadVectors3(f, file), field) }

func addSeeds(f *testing.F, vectors []vector, field string) {
	f.Helper()
	for _, v := range vectors {
		if s, ok := v[field].(string); ok {
			if b, err := hex.DecodeString(s); err == nil {
				f.Add(b)
			}
		}
	}
}

func FuzzHeader(f *testing.F) {
	seedWith(f, "message", "header")
	seedWith(f, "reject", "object")
	seedWith3(f, "message", "header")
	seedWith3(f, "reject", "object")
	f.Fuzz(func(t *testing.T, b []byte) {
		h, body, err := ParseHeader(b)
		if err != nil {
			if h != nil || body != nil {
				t.Error("a header with an error")
			}
			return
		}
		if !bytes.Equal(append(h.Append(nil), body...), b) || h.Size() != len(b)-len(body) {
			t.Error("not canonical")
		}
		if size, err := HeaderSize(b[:MinHeader]); err != nil || size != h.Size() {
			t.Errorf("the size from the first bytes: %d, %v", size, err)
		}
	})
}

func FuzzTerms(f *testing.F) {
	seedWith(f, "certificate", "terms")
	seedWith3(f, "certificate", "terms")
	f.Fuzz(func(t *testing.T, b []byte) {
		terms, err := ParseTerms(b)
		if err != nil {
			if terms != nil {
				t.Error("terms with an error")
			}
			return
		}
		if !bytes.Equal(terms.Append(nil), b) {
			t.Error("not canonical")
		}
		if err := terms.Validate(true); err != nil {
			t.Errorf("parsed, and not valid: %v", err)
		}
		if terms.Suite == SuiteTAE3 {
			return // no keys per set
		}
		if k := terms.Layout().Keys(); k < 1 || k > dprf.MaxKeys {
			t.Errorf("%d keys", k)
		}
	})
}

func FuzzCertificate(f *testing.F) {
	seedWith(f, "certificate", "certificate")
	seedWith3(f, "certificate", "certificate")
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCertificate(b)
		if err != nil {
			if c != nil {
				t.Error("a certificate with an error")
			}
			return
		}
		if !bytes.Equal(c.Append(nil), b) {
			t.Error("not canonical")
		}
		_ = c.Verify(c.Members)
		if c.Prepare() == nil && c.Suite == SuiteTAE3 {
			for node := 1; node <= c.N; node++ {
				if c.public.proven[node] == [32]byte{} {
					continue // not to be hit by chance
				}
				if _, err := dprf.ParseElement(c.public.proven[node][:]); err != nil {
					t.Error("a public share that is no element")
				}
			}
		}
	})
}

// FuzzTarget is the start of every request on objects.
func FuzzTarget(f *testing.F) {
	seedWith(f, "request", "request")
	seedWith3(f, "request", "request")
	f.Fuzz(func(t *testing.T, b []byte) {
		target, rest, err := readTarget(b)
		if err != nil {
			if rest != nil {
				t.Error("a rest with an error")
			}
			return
		}
		if !bytes.Equal(append(target.append(nil), rest...), b) {
			t.Error("not canonical")
		}
	})
}

// FuzzHandle gives any bytes to a server: it answers, in the format of answers, and an
// encryption never depends on what a policy forbids.
func FuzzHandle(f *testing.F) {
	seedWith(f, "request", "request")
	seedWith3(f, "request", "request")
	c := fixedCluster(f, 3, 2)
	denied := c.server(f, 1, func(Caller, string, Op, int) *Refusal { return refuse(CodeDenied, "no") })
	f.Fuzz(func(t *testing.T, b []byte) {
		for node := 1; node <= 3; node++ {
			answer := c.servers[node].Handle(c.caller(), b)
			body, err := OpenAnswer(answer)
			var refusal *Refusal
			if err != nil && !errors.As(err, &refusal) {
				t.Errorf("an answer that cannot be read: %v", err)
			}
			if err == nil && len(b) >= 2 && (Op(b[1]) == OpEncrypt || Op(b[1]) == OpDecrypt) {
				if target, _, err := readTarget(b); err != nil || !target.quorum.Has(node) || target.mode != ModeSealed || len(body) == 0 {
					t.Error("served what is to be refused")
				}
			}
		}
		if answer := denied.Handle(c.caller(), b); answer[1] == 0 && RequestOp(b) != opKeysets {
			t.Error("answered without a right")
		}
	})
}

func FuzzEncryptAnswer(f *testing.F) {
	c := fixedCluster(f, 3, 2)
	e := encryptMessages(c.cert, c.author, []Message{{Plaintext: sequence(3)}, {Plaintext: sequence(40)}}, fixed32("b req"), fixed32("seed req"))
	seedWith(f, "request", "answer")
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, detail := range []bool{false, true} {
			r, err := e.Round(dprf.SetOf(1, 2), detail)
			if err != nil {
				t.Fatal(err)
			}
			err = r.Add(1, b)
			var n *NodeError
			if err != nil && (!errors.As(err, &n) || n.Node != 1 || r.got != 0) {
				t.Errorf("got %v", err)
			}
			if err != nil {
				continue
			}
			if err := r.Add(1, b); err == nil {
				t.Error("one node answered twice")
			}
			if err := r.Add(2, c.servers[2].Handle(c.caller(), r.Request(2))); err != nil {
				t.Fatal(err)
			}
			err = r.Finish()
			var d *DisputeError
			if err != nil && !errors.As(err, &d) {
				t.Errorf("got %v", err)
			}
			for _, object := range e.Objects() {
				if _, _, perr := ParseHeader(object); err == nil && perr != nil {
					t.Errorf("a malformed object: %v", perr)
				}
			}
		}
	})
}

func FuzzDecryptAnswer(f *testing.F) {
	c := fixedCluster(f, 3, 2)
	e := encryptMessages(c.cert, c.author, []Message{{Plaintext: sequence(3)}, {Plaintext: sequence(40)}}, fixed32("b req"), fixed32("seed req"))
	if err := c.runEncrypt(e, c.all(), false); err != nil {
		f.Fatal(err)
	}
	var headers []*Header
	var bodies [][]byte
	for _, object := range e.Objects() {
		h, body, err := ParseHeader(object)
		if err != nil {
			f.Fatal(err)
		}
		headers, bodies = append(headers, h), append(bodies, body)
	}
	seedWith(f, "request", "answer")
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := NewDecryption(c.cert, headers)
		if err != nil {
			t.Fatal(err)
		}
		for _, detail := range []bool{false, true} {
			r, err := d.Round(dprf.SetOf(1, 2), detail)
			if err != nil {
				t.Fatal(err)
			}
			err = r.Add(1, b)
			var n *NodeError
			if err != nil {
				if !errors.As(err, &n) || n.Node != 1 || r.got != 0 {
					t.Errorf("got %v", err)
				}
				continue
			}
			if err := r.Add(2, c.servers[2].Handle(c.caller(), r.Request())); err != nil {
				t.Fatal(err)
			}
			for i := range headers {
				check := func(o Opened) bool {
					m, _, err := o.Message(bodies[i], nil)
					if err == nil && !bytes.Equal(m, sequence([]int{3, 40}[i])) {
						t.Error("a wrong plaintext")
					}
					return err == nil
				}
				if detail {
					r.Compare()
					r.Recombine(i, check)
				} else if o, err := r.Unmask(i); err == nil {
					check(o)
				}
			}
		}
	})
}

func FuzzKeysetsRequest(f *testing.F) {
	seedWith(f, "request", "request")
	f.Fuzz(func(t *testing.T, b []byte) {
		name, err := readKeysetsRequest(b)
		if err != nil && name != "" {
			t.Error("a name with an error")
		}
		if err == nil && !bytes.Equal(KeysetsRequest(name)[2:], b[2:]) {
			t.Error("not canonical")
		}
	})
}

func FuzzKeysetsAnswer(f *testing.F) {
	seedWith(f, "request", "answer")
	f.Fuzz(func(t *testing.T, b []byte) {
		certs, err := ParseKeysetsAnswer(b)
		if err != nil {
			if certs != nil {
				t.Error("certificates with an error")
			}
			return
		}
		out := append([]byte{wireVersion, byte(CodeOK)}, refU16(len(certs))...)
		for _, c := range certs {
			e := c.Append(nil)
			out = append(append(out, refU32(len(e))...), e...)
		}
		if !bytes.Equal(out, b) {
			t.Error("not canonical")
		}
	})
}

func FuzzStatus(f *testing.F) {
	seedWith(f, "request", "answer")
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseStatus(b)
		if err != nil {
			if s != nil {
				t.Error("a status with an error")
			}
			return
		}
		out := s.Append(nil)
		if len(out) != len(b) {
			t.Error("not canonical")
		}
		for i := range out { // only what is not printable is replaced
			if out[i] != b[i] && (out[i] != '?' || b[i] >= 0x20 && b[i] <= 0x7e) {
				t.Fatal("not canonical")
			}
		}
	})
}

// FuzzRefusal is what every answer may be.
func FuzzRefusal(f *testing.F) {
	seedWith(f, "request", "answer")
	f.Fuzz(func(t *testing.T, b []byte) {
		body, err := OpenAnswer(b)
		var r *Refusal
		switch {
		case err == nil:
			if !bytes.Equal(append([]byte{wireVersion, byte(CodeOK)}, body...), b) {
				t.Error("not canonical")
			}
		case body != nil:
			t.Error("an answer with an error")
		case errors.As(err, &r):
			if out := r.Append(nil); len(out) != len(b) || printable([]byte(r.Text)) != r.Text {
				t.Error("not canonical")
			}
		}
	})
}

// FuzzMessage opens any bytes as the body of a message.
func FuzzMessage(f *testing.F) {
	seedWith(f, "message", "body")
	c := fixedCluster(f, 3, 2)
	e := encryptMessages(c.cert, c.author, []Message{{Plaintext: sequence(3)}}, fixed32("b"), fixed32("seed"))
	if err := c.runEncrypt(e, c.all(), false); err != nil {
		f.Fatal(err)
	}
	h, body, err := ParseHeader(e.Objects()[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	o, err := c.runDecrypt(h, c.all())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, j, err := o.Message(b, nil)
		if opened := err == nil; opened != bytes.Equal(b, body) {
			t.Errorf("opened %v", opened)
		}
		if err != nil && (m != nil || j != ClientKey{}) {
			t.Error("a message with an error")
		}
	})
}

// FuzzStream reads any bytes as the body of a file and of a pipe; they open only as
// what was written.
func FuzzStream(f *testing.F) {
	c := fixedCluster(f, 3, 2)
	var opened [3]Opened
	var bodies [3][]byte
	for _, kind := range []Kind{KindFile, KindPipe} {
		object, _ := c.fixedStream(f, kind, sequence(100), nil, fixed32("b"), fixed32("seed"))
		h, body, err := ParseHeader(object)
		if err != nil {
			f.Fatal(err)
		}
		if opened[kind], err = c.runDecrypt(h, c.all()); err != nil {
			f.Fatal(err)
		}
		bodies[kind] = body
		f.Add(body)
		f.Add(body[:40])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, kind := range []Kind{KindFile, KindPipe} {
			r, err := opened[kind].Stream(bytes.NewReader(b), nil)
			var out []byte
			if err == nil {
				out, err = io.ReadAll(r)
			}
			if whole := err == nil; whole != bytes.Equal(b, bodies[kind]) || whole && !bytes.Equal(out, sequence(100)) {
				t.Errorf("%v: %d bytes, %v", kind, len(out), err)
			}
			if err != nil && !errors.Is(err, ErrAuthentication) {
				t.Errorf("got %v", err)
			}
		}
	})
}

// FuzzStreamRoundTrip writes in pieces of any size, reads back, and agrees with the
// second implementation.
func FuzzStreamRoundTrip(f *testing.F) {
	f.Add(uint32(0), uint16(1), uint16(1))
	f.Add(uint32(ChunkSize-64), uint16(999), uint16(4096))
	f.Add(uint32(2*ChunkSize), uint16(ChunkSize-1), uint16(7))
	c := fixedCluster(f, 3, 2)
	f.Fuzz(func(t *testing.T, size uint32, write, read uint16) {
		data := sequence(int(size % (3 * ChunkSize)))
		for _, kind := range []Kind{KindFile, KindPipe} {
			object, _ := c.fixedStream(t, kind, data, nil, fixed32("b"), fixed32("seed"))
			var body bytes.Buffer
			rho, r := Rho(refCTR(fixed("seed"), 30)), newOpenings(fixed32("b"), 3).r
			w, err := newBodyWriter(&body, kind, &rho, &c.author.Key, &r)
			if err != nil {
				t.Fatal(err)
			}
			for rest := data; len(rest) > 0; {
				n := min(len(rest), int(write)+1)
				if _, err := w.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			h, want, err := ParseHeader(object)
			if err != nil {
				t.Fatal(err)
			}
			if kind == KindFile {
				_, err = w.finishFile()
			} else {
				err = w.finishPipe(h.Source.X0, c.private)
			}
			if err != nil || !bytes.Equal(body.Bytes(), want) {
				t.Fatalf("%v: the pieces matter: %v", kind, err)
			}
			if m, _, err := refOpen(c.rawKeys(), object, nil); err != nil || !bytes.Equal(m, data) {
				t.Fatalf("%v: the second implementation: %v", kind, err)
			}
			o, err := c.runDecrypt(h, c.all())
			if err != nil {
				t.Fatal(err)
			}
			s, err := o.Stream(onlyReader{bytes.NewReader(want)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var out []byte
			buf := make([]byte, int(read)+1)
			for err == nil {
				var n int
				n, err = s.Read(buf)
				out = append(out, buf[:n]...)
			}
			if err != io.EOF || !bytes.Equal(out, data) {
				t.Fatalf("%v: %v", kind, err)
			}
		}
	})
}

// onlyReader hides everything of a reader but Read, and reads short.
type onlyReader struct{ r io.Reader }

func (o onlyReader) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 5000)]) }
