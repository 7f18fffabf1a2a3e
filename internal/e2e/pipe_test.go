package e2e

import (
	"bufio"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The baseline of the pipe's speed: two processes that do AES-256-GCM, and SHA-256
// unless told otherwise, over the same 64 KiB chunks. The test program plays both.
const baselineVar = "TAE_E2E_BASELINE"

// playBaseline turns this process into half of a baseline pipeline when asked to.
func playBaseline() {
	switch os.Getenv(baselineVar) {
	case "seal", "seal-gcm":
		baseline(true, os.Getenv(baselineVar) == "seal")
	case "open", "open-gcm":
		baseline(false, os.Getenv(baselineVar) == "open")
	}
}

func baseline(seal, hashed bool) {
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	h := sha256.New()
	size := 64 << 10
	if !seal {
		size += aead.Overhead()
	}
	buf := make([]byte, size, size+aead.Overhead())
	var nonce [12]byte
	for i := uint64(0); ; i++ {
		n, _ := io.ReadFull(os.Stdin, buf[:size]) // a short read is the end
		if n == 0 {
			os.Exit(0)
		}
		binary.BigEndian.PutUint64(nonce[4:], i)
		out := buf[:n]
		if !seal && hashed {
			h.Write(out)
		}
		if seal {
			out = aead.Seal(buf[:0], nonce[:], out, nil)
		} else if out, err = aead.Open(buf[:0], nonce[:], out, nil); err != nil {
			panic(err)
		}
		if seal && hashed {
			h.Write(out)
		}
		if _, err := os.Stdout.Write(out); err != nil {
			panic(err)
		}
	}
}

// source is n pseudorandom bytes, cheap enough not to count.
type source struct {
	left  int64
	block []byte
}

func newSource(n int64) *source {
	b := make([]byte, 1<<20)
	c, _ := aes.NewCipher(make([]byte, 32))
	cipher.NewCTR(c, make([]byte, 16)).XORKeyStream(b, b)
	return &source{n, b}
}

func (s *source) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	off := int(s.left % int64(len(s.block)))
	n := copy(p[:min(int64(len(p)), s.left)], s.block[off:])
	s.left -= int64(n)
	return n, nil
}

// pipeline runs first | second over n bytes and returns both processes' largest
// resident memory in KiB, where the system shows it. The output goes to sink.
func pipeline(n int64, sink io.Writer, first, second *exec.Cmd) (rss [2]int64, err error) {
	in, err := first.StdinPipe()
	if err != nil {
		return rss, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return rss, err
	}
	first.Stdout, second.Stdin = w, r
	first.Stderr, second.Stderr = os.Stderr, os.Stderr
	out, err := second.StdoutPipe()
	if err != nil {
		return rss, err
	}
	if err := first.Start(); err != nil {
		return rss, err
	}
	if err := second.Start(); err != nil {
		return rss, err
	}
	r.Close()
	w.Close()
	go func() {
		io.Copy(in, bufio.NewReaderSize(newSource(n), 256<<10))
		in.Close()
	}()
	buf := make([]byte, 256<<10)
	for {
		m, err := out.Read(buf)
		sink.Write(buf[:m])
		for i, cmd := range []*exec.Cmd{first, second} {
			rss[i] = max(rss[i], peakMemory(cmd.Process.Pid))
		}
		if err == io.EOF {
			break
		} else if err != nil {
			return rss, err
		}
	}
	for _, cmd := range []*exec.Cmd{first, second} {
		if err := cmd.Wait(); err != nil {
			return rss, fmt.Errorf("%v: %w", cmd.Args, err)
		}
	}
	return rss, nil
}

// peakMemory reads a process's largest resident memory so far, in KiB. What wait
// reports instead would include this process's memory at the time of the fork.
func peakMemory(pid int) (kib int64) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	if _, rest, ok := strings.Cut(string(b), "VmHWM:"); ok {
		fmt.Sscan(rest, &kib)
	}
	return kib
}

func taeCommand(config, verb string) *exec.Cmd {
	return exec.Command(filepath.Join(bin, "tae-client"), verb, "--config", config)
}

func baselineCommand(mode string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), baselineVar+"="+mode)
	return cmd
}

// A long stream goes through encrypt | decrypt unchanged in constant memory.
func TestPipeInConstantMemory(t *testing.T) {
	size := int64(1 << 30)
	if testing.Short() {
		size = 64 << 20
	}
	c, err := startCluster(t.TempDir(), 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	got, want := sha256.New(), sha256.New()
	rss, err := pipeline(size, got, taeCommand(c.ClientConfig(), "encrypt"), taeCommand(c.ClientConfig(), "decrypt"))
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(want, newSource(size))
	if sum(got) != sum(want) {
		t.Error("the data came back changed")
	}
	t.Logf("%d MiB; resident: encrypt %d KiB, decrypt %d KiB", size>>20, rss[0], rss[1])
	if rss == [2]int64{} { // not Linux
		t.Skip("this system does not show a process's peak memory; the data came back unchanged")
	}
	for i, kib := range rss {
		if kib >= 64<<10 {
			t.Errorf("process %d used %d KiB, the limit is 64 MiB", i, kib)
		}
	}
}

func sum(h hash.Hash) [32]byte { return [32]byte(h.Sum(nil)) }

// BenchmarkPipe compares encrypt | decrypt with the baseline pipelines over the same
// amount of data, in turn, start of the processes included.
func BenchmarkPipe(b *testing.B) {
	const size = 256 << 20
	c, err := startCluster(b.TempDir(), 3, 2)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Stop()
	for _, p := range []struct {
		name          string
		first, second func() *exec.Cmd
	}{
		{"tae", func() *exec.Cmd { return taeCommand(c.ClientConfig(), "encrypt") }, func() *exec.Cmd { return taeCommand(c.ClientConfig(), "decrypt") }},
		{"gcm+sha256", func() *exec.Cmd { return baselineCommand("seal") }, func() *exec.Cmd { return baselineCommand("open") }},
		{"gcm", func() *exec.Cmd { return baselineCommand("seal-gcm") }, func() *exec.Cmd { return baselineCommand("open-gcm") }},
	} {
		b.Run(p.name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				if _, err := pipeline(size, io.Discard, p.first(), p.second()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
