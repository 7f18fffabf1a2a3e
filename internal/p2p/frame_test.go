package p2p

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"
	"time"
)

// quiet is a source without deadlines.
type quiet struct{ io.Reader }

func (quiet) SetReadDeadline(time.Time) error { return nil }

func exampleFrames() []frame {
	return []frame{
		{kind: kindRequest, id: 1, millis: 1500, body: []byte("hello")},
		{kind: kindRequest, id: 1<<64 - 1},
		{kind: kindAnswer, id: 2, body: bytes.Repeat([]byte("a"), 200_000)},
		{kind: kindAnswer, id: 2},
		{kind: kindFailed, id: 3, body: []byte("why")},
		{kind: kindCancel, id: 4}, {kind: kindBusy, id: 5}, {kind: kindPing, id: 6}, {kind: kindPong, id: 6},
	}
}

func equal(a, b frame) bool {
	return a.kind == b.kind && a.id == b.id && a.millis == b.millis && bytes.Equal(a.body, b.body)
}

func TestFrameReader(t *testing.T) {
	want := exampleFrames()
	var b []byte
	for i := range want {
		b = want[i].appendTo(b)
	}
	for name, src := range map[string]io.Reader{
		"whole": bytes.NewReader(b), "bytewise": iotest.OneByteReader(bytes.NewReader(b)), "halves": iotest.HalfReader(bytes.NewReader(b)),
	} {
		r := newFrameReader(quiet{src}, 1<<20, time.Second)
		for i := range want {
			got, err := r.next()
			if err != nil || !equal(got, want[i]) {
				t.Fatalf("%s %d: %+v, %v", name, i, got, err)
			}
		}
		if _, err := r.next(); err != io.EOF {
			t.Fatal(err)
		}
	}
	// cut anywhere: whole frames, then one error that is EOF only between two
	b = append(want[0].appendTo(nil), want[5].appendTo(nil)...)
	ends := []int{0, want[0].size(), len(b)}
	for n := range len(b) {
		r := newFrameReader(quiet{bytes.NewReader(b[:n])}, 1<<20, time.Second)
		var err error
		for err == nil {
			_, err = r.next()
		}
		if clean := slices.Contains(ends, n); clean != (err == io.EOF) || (!clean && !errors.Is(err, io.ErrUnexpectedEOF)) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

// The announcement of a large frame must not cost memory by itself.
func TestFrameMemory(t *testing.T) {
	head := binary.BigEndian.AppendUint32(nil, 1<<29)
	r := newFrameReader(quiet{io.MultiReader(bytes.NewReader(head), bytes.NewReader(make([]byte, 100_000)))}, 1<<30, time.Second)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := r.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Fatal(n)
	}
}

// FuzzFrame: what parses encodes back to the same bytes, from a slice and from a
// stream alike; what does not gives ErrFrame and an empty frame.
func FuzzFrame(f *testing.F) {
	for _, fr := range exampleFrames() {
		if fr.size() < 1000 {
			f.Add(fr.appendTo(nil)[lengthSize:])
		}
	}
	f.Add([]byte{})
	f.Add([]byte{kindRequest, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0})
	f.Add([]byte{kindCancel, 0, 0, 0, 0, 0, 0, 0, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, err := parseFrame(b)
		wire := append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
		streamed, serr := newFrameReader(quiet{bytes.NewReader(wire)}, len(wire)+minFrame, time.Second).next()
		if (err == nil) != (serr == nil) || !equal(fr, streamed) {
			t.Fatalf("%+v, %v; streamed %+v, %v", fr, err, streamed, serr)
		}
		if err != nil {
			if !errors.Is(err, ErrFrame) || fr.body != nil || fr.kind != 0 {
				t.Fatalf("%+v, %v", fr, err)
			}
			return
		}
		if again := fr.appendTo(nil); !bytes.Equal(again, wire) || fr.size() != len(wire) {
			t.Fatalf("%x encodes as %x", wire, again)
		}
	})
}
