package armor

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func encode(t testing.TB, b []byte) string {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func decode(text string) ([]byte, error) {
	r, err := Detect(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func TestRoundTrip(t *testing.T) {
	for n := range 200 {
		b := bytes.Repeat([]byte{byte(n), 0xff}, n)
		text := encode(t, b)
		for _, variant := range []string{text, strings.ReplaceAll(text, "\n", "\r\n"), text + " \n", strings.TrimSuffix(text, "\n")} {
			got, err := decode(variant)
			if err != nil || !bytes.Equal(got, b) {
				t.Fatalf("%d bytes: %v\n%s", n, err, variant)
			}
		}
	}
}

func TestMalformed(t *testing.T) {
	text := encode(t, bytes.Repeat([]byte{7}, 100))
	lines := strings.SplitAfter(text, "\n")
	for name, bad := range map[string]string{
		"no end":           strings.Join(lines[:len(lines)-2], ""),
		"empty line":       lines[0] + "\n" + strings.Join(lines[1:], ""),
		"short line first": lines[0] + "AAAA\n" + strings.Join(lines[1:], ""),
		"not base64":       strings.Replace(text, "Bw", "!!", 1),
		"text behind":      text + "x",
		"spare bits":       lines[0] + "AB==\n" + end + "\n",
		"long line":        lines[0] + strings.Repeat("A", 68) + "\n" + end + "\n",
	} {
		if _, err := decode(bad); !errors.Is(err, ErrArmor) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := decode("plain"); err != nil || string(got) != "plain" {
		t.Errorf("what is not armored is passed on: %q %v", got, err)
	}
}

func FuzzArmor(f *testing.F) {
	f.Add(encode(f, []byte("some bytes")))
	f.Add(encode(f, bytes.Repeat([]byte{1}, 96)))
	f.Fuzz(func(t *testing.T, text string) {
		got, err := decode(text)
		if err != nil || !strings.HasPrefix(text, begin) {
			return
		}
		canonical := strings.ReplaceAll(strings.TrimRight(text, " \t\r\n"), "\r\n", "\n") + "\n"
		if canonical != encode(t, got) {
			t.Errorf("two texts decode alike: %q", text)
		}
	})
}
