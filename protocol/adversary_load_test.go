package protocol

import (
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/sig"
)

// allocated is the memory in bytes that f allocates in all.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A short request cannot make a node work for an answer that no frame could carry.
func TestGameLargeAnswers(t *testing.T) {
	c := newTestCluster(t, 12, 6) // 792 keys, 462 of them at every node
	s, commitments, _ := refOpenings(random(32), 12)
	request := func(items int, detail bool) []byte {
		w := make([][]byte, items)
		for i := range w {
			w[i] = random(32)
		}
		req := c.encryptRequest(c.all(), commitments, s[0], w...)
		if !detail {
			req[4] = 0
		}
		return req
	}
	for _, detail := range []bool{false, true} {
		keys := 792 / 12
		if detail {
			keys = 462
		}
		fits := MaxAnswer / encryptItemSize(keys, detail)
		for _, items := range []int{min(fits, 1024), min(fits+1, 1024)} {
			req := request(items, detail)
			var answer []byte
			used := allocated(func() { answer = c.servers[1].Handle(c.caller(), req) })
			_, err := OpenAnswer(answer)
			if fit := items <= fits; fit != (err == nil) || !fit && !errors.Is(err, &Refusal{Code: CodeTooLarge}) {
				t.Errorf("%d items, detail %v: %v", items, detail, err)
			}
			if len(answer) > MaxAnswer+2 || used > 3*MaxAnswer {
				t.Errorf("%d items, detail %v: an answer of %d bytes, %d allocated", items, detail, len(answer), used)
			}
		}
	}
	// Control: without the limit the largest batch would be answered with megabytes.
	if size := 1024 * encryptItemSize(462, true); len(request(1024, true)) > 40_000 || size < 5*MaxAnswer {
		t.Errorf("control: %d bytes", size)
	}
}

// Counts in what a stranger sends cost no memory before their bytes are there.
func TestGameHugeCounts(t *testing.T) {
	cert := fixedCluster(t, 3, 2).cert.Append(nil)
	terms := cert[5:]
	at := 16 + 1 + len("vectors") // of the suite, then n and t
	hostile := func(n, th byte) []byte {
		b := append([]byte{}, cert...)
		b[5+at+1], b[5+at+2] = n, th
		return append(b, make([]byte, 300)...)
	}
	header := append([]byte{}, fixedHeader(t)...)
	binary.BigEndian.PutUint16(header[proofStart:], dprf.MaxKeys)
	c := fixedCluster(t, 3, 2)
	for name, f := range map[string]func() error{
		"n and t of a certificate": func() error {
			for _, p := range [][2]byte{{255, 128}, {64, 32}, {64, 4}, {64, 3}, {16, 8}, {0, 0}, {1, 255}, {64, 64}} {
				if _, err := ParseCertificate(hostile(p[0], p[1])); err == nil {
					return nil
				}
			}
			return errors.New("refused")
		},
		"terms": func() error {
			_, err := ParseTerms(append([]byte{}, terms[:at+20]...))
			return err
		},
		"tags of a header": func() error { _, _, err := ParseHeader(header); return err },
		"certificates of an answer": func() error {
			_, err := ParseKeysetsAnswer([]byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0})
			return err
		},
		"a refusal's certificate": func() error {
			_, err := OpenAnswer([]byte{1, 5, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
			return err
		},
		"keysets of a status": func() error {
			_, err := ParseStatus(append(make([]byte, 38), 0xff, 0xff))
			return err
		},
		"items of a request": func() error {
			req := c.encryptRequest(c.all(), make([][]byte, 3), make([]byte, 32))
			binary.BigEndian.PutUint16(req[len(req)-2:], 0xffff)
			_, err := OpenAnswer(c.servers[1].Handle(c.caller(), req))
			return err
		},
	} {
		var err error
		if used := allocated(func() { err = f() }); used > 1<<20 {
			t.Errorf("%s: %d bytes allocated", name, used)
		}
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	// Control: the largest certificate that is allowed has more than half a megabyte, so
	// what is measured is not nothing.
	if size := 32*(dprf.Params{N: 16, T: 8}).Keys() + 16*sig.Size; size < 300_000 {
		t.Errorf("control: %d", size)
	}
}

func fixedHeader(t testing.TB) []byte {
	t.Helper()
	return loadVectors(t, "message")[0].bytes(t, "header")
}

// Answers out of place do no harm: of a node that was not asked, twice, or of none.
func TestAnswersOutOfPlace(t *testing.T) {
	c := newTestCluster(t, 4, 2)
	e, err := EncryptMessages(c.cert, c.author, []Message{{Plaintext: []byte("m")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, detail := range []bool{false, true} {
		r, err := e.Round(dprf.SetOf(1, 2), detail)
		if err != nil {
			t.Fatal(err)
		}
		good := c.servers[1].Handle(c.caller(), r.Request(1))
		if err := r.Add(3, good); err == nil {
			t.Error("a node that was not asked")
		}
		if err := r.Add(1, good); err != nil {
			t.Fatal(err)
		}
		if err := r.Add(1, good); err == nil {
			t.Error("twice")
		}
		if r.Done() {
			t.Error("done with one of two")
		}
	}
	for _, q := range []dprf.Set{0, dprf.SetOf(1), dprf.SetOf(1, 5), dprf.SetOf(64, 63)} {
		if _, err := e.Round(q, false); err == nil {
			t.Errorf("quorum %v", q)
		}
		if _, err := e.Round(q, true); err == nil {
			t.Errorf("quorum %v in detail", q)
		}
	}
}

// One request serves any number of quorums, in detail or not, and all of them give one
// object: no mixture of its answers opens or makes another.
func TestGameHedges(t *testing.T) {
	c := newTestCluster(t, 4, 2)
	e, err := EncryptMessages(c.cert, c.author, []Message{{Plaintext: []byte("m")}})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for size := 2; size <= 4; size++ {
		quorums(4, size, func(q dprf.Set) {
			for _, detail := range []bool{false, true} {
				if err := c.runEncrypt(e, q, detail); err != nil {
					t.Fatal(err)
				}
				seen[string(e.Objects()[0])] = true
			}
		})
	}
	if len(seen) != 1 {
		t.Errorf("%d objects of one session", len(seen))
	}
	// Control: another session of the same message is another object.
	seen[string(c.encrypt(t, c.all(), false, Message{Plaintext: []byte("m")})[0])] = true
	if len(seen) != 2 {
		t.Error("control")
	}
}
