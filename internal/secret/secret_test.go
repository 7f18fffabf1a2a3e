package secret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestEveryFormatterRedacts(t *testing.T) {
	s := Copy([]byte("sentinel"))
	holder := struct{ S Bytes }{s}
	js, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "s", s, "h", holder)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "s", s, "h", holder)
	out := fmt.Sprintf("%v %+v %#v %s %q %x %d", s, holder, s, s, s, s, holder) + string(js) + log.String()
	for _, leak := range []string{"sentinel", "73656e74", "115 101"} {
		if strings.Contains(out, leak) {
			t.Errorf("output holds the secret as %q: %s", leak, out)
		}
	}
	if !strings.Contains(out, redacted) {
		t.Error("placeholder missing")
	}
}

func TestEqualAndWipe(t *testing.T) {
	a, b := Copy([]byte("abc")), Copy([]byte("abc"))
	if !a.Equal(b) || a.Equal(Copy([]byte("abd"))) || a.Equal(Copy([]byte("ab"))) {
		t.Error("Equal is wrong")
	}
	a.Wipe()
	if !bytes.Equal(a.Expose(), make([]byte, 3)) {
		t.Error("Wipe left bytes")
	}
}
