package uae_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/seed-a893640b/tae/uae"
)

func FuzzKey(f *testing.F) {
	f.Add(uae.NewKey(uae.Nested, 20).ExposeSecret(nil))
	f.Add([]byte("UAEK\x01\x02\x00\x3c"))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := uae.ParseKey(b)
		if err != nil {
			if _, e := k.ExposeRoot(uae.Nested, 20); e == nil {
				t.Fatal("a usable key with an error")
			}
			if !errors.Is(err, uae.ErrFormat) && !errors.Is(err, uae.ErrScheme) && !errors.Is(err, uae.ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(k.ExposeSecret(nil), b) {
			t.Fatal("not canonical")
		}
	})
}
