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
	"time"

	"github.com/seed-a893640b/tae/client"
	"github.com/seed-a893640b/tae/netsim"
)

func TestCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(t, 3, 2)
		k := c.Client("app").Keyset("default")
		object, err := k.Encrypt(t.Context(), []byte("message"), []byte("aad"))
		if err != nil {
			t.Fatal(err)
		}
		for down := 1; down <= 3; down++ {
			c.Stop(down)
			got, err := k.Decrypt(t.Context(), object, []byte("aad"))
			if err != nil || string(got) != "message" {
				t.Errorf("with node %d down: %q %v", down, got, err)
			}
			c.Start(down)
		}
		if _, err := k.Decrypt(t.Context(), object, []byte("other")); !errors.Is(err, client.ErrAuthentication) {
			t.Errorf("other associated data: %v", err)
		}
		c.Stop(1)
		c.Stop(2)
		_, err = k.Decrypt(t.Context(), object, []byte("aad"))
		var q *client.QuorumError
		if !errors.As(err, &q) || !errors.Is(err, client.ErrQuorum) || len(q.Nodes) != 3 {
			t.Errorf("with two nodes down: %v", err)
		}
	})
}

func TestRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(t, 3, 2, WithClient("writer", Rights{Encrypt: true}), WithClient("reader", Rights{Decrypt: true}), WithClient("nobody", Rights{}))
		w, r := c.Client("writer").Keyset("default"), c.Client("reader").Keyset("default")
		object, err := w.Encrypt(t.Context(), []byte("m"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Decrypt(t.Context(), object, nil); !errors.Is(err, client.ErrDenied) || client.Retryable(err) {
			t.Errorf("the writer decrypts: %v", err)
		}
		if _, err := r.Encrypt(t.Context(), []byte("m"), nil); !errors.Is(err, client.ErrDenied) {
			t.Errorf("the reader encrypts: %v", err)
		}
		if got, err := r.Decrypt(t.Context(), object, nil); err != nil || string(got) != "m" {
			t.Errorf("the reader: %v", err)
		}
		if _, err := c.Client("nobody").Keyset("default").Encrypt(t.Context(), nil, nil); !errors.Is(err, client.ErrDenied) {
			t.Errorf("nobody: %v", err)
		}
		if _, err := w.Encrypt(t.Context(), nil, nil); err != nil {
			t.Errorf("an empty message: %v", err)
		}
		if _, err := c.Client("writer").Keyset("none").Encrypt(t.Context(), nil, nil); !errors.Is(err, client.ErrUnknownKeyset) {
			t.Errorf("an unknown keyset: %v", err)
		}
	})
}

func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(t, 3, 2)
		k := c.Client("app").Keyset("default")
		var items []client.Item
		for i := range 1000 {
			items = append(items, client.Item{Data: bytes.Repeat([]byte{byte(i)}, i%200), AAD: []byte{byte(i % 3)}})
		}
		items[500].Data = make([]byte, client.MaxMessage+1)
		sealed, err := k.EncryptBatch(t.Context(), items)
		if err != nil {
			t.Fatal(err)
		}
		var objects []client.Item
		for i, r := range sealed {
			if (i == 500) != errors.Is(r.Err, client.ErrTooLarge) || i != 500 && r.Err != nil {
				t.Fatalf("item %d: %v", i, r.Err)
			}
			objects = append(objects, client.Item{Data: r.Data, AAD: items[i].AAD})
		}
		objects[7].Data = append(bytes.Clone(objects[7].Data), 1)
		objects[8].AAD = []byte("wrong")
		opened, err := k.DecryptBatch(t.Context(), objects)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range opened {
			switch i {
			case 7, 8:
				if !errors.Is(r.Err, client.ErrAuthentication) || r.Data != nil {
					t.Errorf("item %d: %v", i, r.Err)
				}
			case 500:
				if !errors.Is(r.Err, client.ErrNotObject) {
					t.Errorf("item %d: %v", i, r.Err)
				}
			default:
				if r.Err != nil || !bytes.Equal(r.Data, items[i].Data) || r.Author != c.Client("app").PublicKey() {
					t.Fatalf("item %d: %v", i, r.Err)
				}
			}
		}
	})
}

func TestStreams(t *testing.T) {
	c := NewCluster(t, 3, 2)
	k := c.Client("app").Keyset("default")
	data := make([]byte, 300_000)
	rand.Read(data)

	var pipe bytes.Buffer
	w := k.EncryptWriter(t.Context(), &pipe, []byte("a"))
	if _, err := io.Copy(w, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "object"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := k.EncryptFile(t.Context(), f, bytes.NewReader(data), []byte("a")); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	for kind, object := range map[string][]byte{"pipe": pipe.Bytes(), "file": file} {
		r, err := k.DecryptReader(t.Context(), bytes.NewReader(object), []byte("a"))
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, data) || r.Author() != c.Client("app").PublicKey() {
			t.Errorf("%s: %v", kind, err)
		}
		if r, err = k.DecryptReader(t.Context(), bytes.NewReader(object), nil); err == nil {
			_, err = io.ReadAll(r)
		}
		if !errors.Is(err, client.ErrAuthentication) {
			t.Errorf("%s with other associated data: %v", kind, err)
		}
		info, err := client.Inspect(bytes.NewReader(object))
		if err != nil || info.Kind != kind || info.Epoch != 1 {
			t.Errorf("%+v %v", info, err)
		}
	}
}

// A node that lies while decrypting cannot make a good object fail.
func TestLyingNodeWhileDecrypting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(t, 4, 2)
		k := c.Client("app").Keyset("default")
		object, err := k.Encrypt(t.Context(), []byte("message"), nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Network.Lie(2, func(_, answer []byte) []byte {
			answer[len(answer)-1] ^= 1
			return answer
		})
		for range 20 {
			if got, err := k.Decrypt(t.Context(), object, nil); err != nil || string(got) != "message" {
				t.Errorf("%q %v", got, err)
			}
		}
		_, err = k.CrossChecked().Encrypt(t.Context(), []byte("x"), nil)
		if err != nil {
			var d *client.DisputeError
			if !errors.As(err, &d) {
				t.Errorf("cross-checked: %v", err)
			}
			for _, liar := range d.Liars {
				if liar != "n2" {
					t.Errorf("blamed %s", liar)
				}
			}
		}
	})
}

// A node that is silent costs a hedge, not the deadline.
func TestSlowNodeIsHedged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(t, 3, 2)
		k := c.Client("app").Keyset("default")
		c.Network.SetFaults(netsim.Faults{Latency: time.Millisecond})
		for range 10 {
			if _, err := k.Encrypt(t.Context(), []byte("m"), nil); err != nil {
				t.Fatal(err)
			}
		}
		c.Network.Slow(1, time.Minute)
		begun := time.Now()
		for range 10 {
			if _, err := k.Encrypt(t.Context(), []byte("m"), nil); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("ten operations beside a silent node took %v", took)
		}
	})
}

// Many keys: statements, requests and answers that do not fit into one message are
// spread over several.
func TestManyKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("3,003 keys")
	}
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(t, 14, 7)
		k := c.Client("app").Keyset("default")
		items := make([]client.Item, 20)
		for i := range items {
			items[i].Data = []byte{byte(i)}
		}
		sealed, err := k.EncryptBatch(t.Context(), items)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range sealed {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			items[i].Data = r.Data
		}
		opened, err := k.DecryptBatch(t.Context(), items)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range opened {
			if r.Err != nil || !bytes.Equal(r.Data, []byte{byte(i)}) {
				t.Errorf("item %d: %v", i, r.Err)
			}
		}
	})
}
