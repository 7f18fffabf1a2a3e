package taetest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/seed-a893640b/tae/client"
)

func TestTAE3Cluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(t, 4, 2, WithTAE3())
		k := c.Client("app").Keyset("default")
		checkQuorums(t, c)
		items := []client.Item{{Data: []byte("one"), AAD: []byte("x")}, {Data: nil}, {Data: make([]byte, 3000)}}
		sealed, err := k.EncryptBatch(t.Context(), items)
		if err != nil {
			t.Fatal(err)
		}
		objects := make([]client.Item, len(items))
		for i, r := range sealed {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			objects[i] = client.Item{Data: r.Data, AAD: items[i].AAD}
		}
		objects[1].AAD = []byte("other")
		// A node that lies does not keep good objects from opening.
		c.Network.Lie(3, func(_, answer []byte) []byte { answer[len(answer)-1] ^= 1; return answer })
		for range 10 {
			opened, err := k.DecryptBatch(t.Context(), objects)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range opened {
				if i == 1 {
					if !errors.Is(r.Err, client.ErrAuthentication) {
						t.Errorf("other associated data: %v", r.Err)
					}
				} else if r.Err != nil || !bytes.Equal(r.Data, items[i].Data) {
					t.Errorf("item %d: %v", i, r.Err)
				}
			}
			if _, err := k.Encrypt(t.Context(), []byte("m"), nil); err != nil {
				t.Errorf("encrypt beside a liar: %v", err)
			}
		}
		c.Stop(1)
		c.Stop(2)
		if _, err := k.Encrypt(t.Context(), nil, nil); !errors.Is(err, client.ErrQuorum) {
			t.Errorf("one honest node of two needed: %v", err)
		}
	})
}

func TestTAE3Streams(t *testing.T) {
	c := NewCluster(t, 3, 2, WithTAE3())
	k := c.Client("app").Keyset("default")
	data := make([]byte, 200_000)
	rand.Read(data)
	f, err := os.Create(filepath.Join(t.TempDir(), "object"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := k.EncryptFile(t.Context(), f, bytes.NewReader(data), nil); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	var pipe bytes.Buffer
	w := k.EncryptWriter(t.Context(), &pipe, nil)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for kind, object := range map[string][]byte{"file": file, "pipe": pipe.Bytes()} {
		r, err := k.DecryptReader(t.Context(), bytes.NewReader(object), nil)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %v", kind, err)
		}
		if info, err := client.Inspect(bytes.NewReader(object)); err != nil || info.Suite != "tae3" || info.Kind != kind {
			t.Errorf("%+v %v", info, err)
		}
	}
}

func TestTAE3Restart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(t, 3, 2, WithTAE3())
		for i := 1; i <= 3; i++ {
			c.Stop(i)
		}
		for i := 1; i <= 3; i++ {
			c.Start(i)
		}
		checkQuorums(t, c)
	})
}
