package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a893640b/tae/client"
	"github.com/seed-a893640b/tae/internal/cli"
	"github.com/seed-a893640b/tae/internal/devcluster"
	"github.com/seed-a893640b/tae/internal/node"
	"github.com/seed-a893640b/tae/protocol"
)

func demoCommand() *cobra.Command {
	var keep bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job on a temporary local cluster of three nodes, two of them needed",
		Long: `Show the main job on a temporary local cluster: three processes make keys that none
of them holds whole, a client encrypts and decrypts a file and a batch through two of
them, goes on with one stopped, fails with two stopped, and a client without the
right is refused. Exits 0 only if all of it held.`,
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := os.MkdirTemp("", "tae-demo-")
			if err != nil {
				return err
			}
			d := &demo{out: c.OutOrStdout(), dir: dir, begun: time.Now()}
			err = d.run(c.Context())
			if keep {
				fmt.Fprintln(d.out, "kept", dir)
			} else if rmErr := os.RemoveAll(dir); err == nil {
				err = rmErr
			}
			if err == nil {
				fmt.Fprintf(d.out, "all of it held, in %v\n", time.Since(d.begun).Round(time.Millisecond))
			}
			return err
		},
	}
	c.Flags().BoolVar(&keep, "keep", false, "keep the cluster's directory")
	return c
}

// demo runs steps and prints what they do and how long they take.
type demo struct {
	out     io.Writer
	dir     string
	begun   time.Time
	cluster *devcluster.Cluster
	app     *client.Client
	keys    *client.Keyset
	file    []byte
}

const (
	demoFile  = 8 << 20
	demoBatch = 128
	demoGuest = "guest"
)

func (d *demo) step(text string, f func() error) error {
	begun := time.Now()
	if err := f(); err != nil {
		fmt.Fprintf(d.out, "FAILED  %s\n", text)
		return fmt.Errorf("%s: %w", text, err)
	}
	fmt.Fprintf(d.out, "%9.1f ms  %s\n", float64(time.Since(begun).Microseconds())/1000, text)
	return nil
}

func (d *demo) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	defer func() {
		if d.app != nil {
			d.app.Close()
		}
		if d.cluster != nil {
			d.cluster.Stop()
		}
	}()
	d.file = make([]byte, demoFile)
	_, _ = rand.Read(d.file)
	object := filepath.Join(d.dir, "file.tae")
	var message []byte
	for _, s := range []struct {
		text string
		f    func() error
	}{
		{"start three node processes on loopback, each with its own directory and passphrase", func() error { return d.start(ctx) }},
		{"make keyset \"default\" without a dealer: each key is held by two nodes, all by none", func() error { return d.makeKeys(ctx) }},
		{"connect a client and encrypt one message through two of the three nodes", func() (err error) {
			message, err = d.keys.Encrypt(ctx, []byte("a short message"), []byte("context"))
			return err
		}},
		{"encrypt a file of 8 MiB", func() error { return d.encryptFile(ctx, object) }},
		{"decrypt the file and compare", func() error { return d.decryptFile(ctx, object) }},
		{"encrypt and decrypt a batch of 128 messages, each with a result of its own", func() error { return d.batch(ctx) }},
		{"refuse the message with other associated data", func() error {
			_, err := d.keys.Decrypt(ctx, message, []byte("other context"))
			return expect(err, client.ErrAuthentication)
		}},
		{"refuse a client without the right to decrypt", func() error { return d.guest(ctx, message) }},
		{"make keyset \"verified\" of suite tae3, where every node proves its answers, and use it", func() error { return d.verified(ctx) }},
		{"stop node 3", func() error { d.cluster.StopNode(3); return nil }},
		{"decrypt the file with the other two", func() error { return d.decryptFile(ctx, object) }},
		{"stop node 2", func() error { d.cluster.StopNode(2); return nil }},
		{"fail to decrypt with node 1 alone: it lacks the key that nodes 2 and 3 share", func() error { return d.alone(ctx, message) }},
		{"start node 2 again and decrypt", func() error { return d.again(ctx, message) }},
	} {
		if err := d.step(s.text, s.f); err != nil {
			return err
		}
	}
	return nil
}

func expect(err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("got %v, expected: %w", err, want)
	}
	return nil
}

func (d *demo) start(ctx context.Context) (err error) {
	d.cluster, err = devcluster.Start(ctx, devcluster.Options{Dir: d.dir, Nodes: 3, Threshold: 2, Guests: []string{demoGuest}})
	return err
}

func (d *demo) makeKeys(ctx context.Context) error {
	o := devcluster.Options{Nodes: 3, Threshold: 2}
	if err := makeDefault(ctx, d.cluster, o); err != nil {
		return err
	}
	var err error
	if d.app, err = client.Open(ctx, client.WithConfigFile(d.cluster.ClientConfig())); err != nil {
		return err
	}
	d.keys = d.app.Keyset("default")
	return nil
}

func (d *demo) encryptFile(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := d.keys.EncryptFile(ctx, f, bytes.NewReader(d.file), nil); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func (d *demo) decryptFile(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := d.keys.DecryptReader(ctx, f, nil)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, d.file) {
		return errors.New("the decrypted file differs")
	}
	return nil
}

func (d *demo) batch(ctx context.Context) error {
	var items, objects []client.Item
	for i := range demoBatch {
		items = append(items, client.Item{Data: fmt.Appendf(nil, "record %d", i), AAD: []byte("table")})
	}
	sealed, err := d.keys.EncryptBatch(ctx, items)
	if err != nil {
		return err
	}
	for i, r := range sealed {
		if r.Err != nil {
			return fmt.Errorf("item %d: %w", i, r.Err)
		}
		objects = append(objects, client.Item{Data: r.Data, AAD: []byte("table")})
	}
	opened, err := d.keys.DecryptBatch(ctx, objects)
	if err != nil {
		return err
	}
	for i, r := range opened {
		if r.Err != nil || !bytes.Equal(r.Data, items[i].Data) {
			return fmt.Errorf("item %d came back wrong: %w", i, r.Err)
		}
	}
	return nil
}

// verified makes a keyset of the public-key suite on the same nodes.
func (d *demo) verified(ctx context.Context) error {
	k, err := node.CreateKeyset(ctx, d.cluster.NodeDirs()[0], node.NewKeyset{Name: "verified", Suite: protocol.SuiteTAE3, Threshold: 2, Modes: []string{"sealed"}})
	if err != nil {
		return err
	}
	for _, dir := range d.cluster.NodeDirs() {
		if _, err := waitServing(ctx, nil, dir, k.ID, k.Attempt); err != nil {
			return err
		}
	}
	keys := d.app.Keyset(k.Name)
	object, err := keys.Encrypt(ctx, []byte("verified"), nil)
	if err != nil {
		return err
	}
	got, err := keys.Decrypt(ctx, object, nil)
	if err == nil && string(got) != "verified" {
		err = errors.New("the message differs")
	}
	return err
}

func (d *demo) guest(ctx context.Context, message []byte) error {
	g, err := client.Open(ctx, client.WithConfigFile(d.cluster.GuestConfig(demoGuest)))
	if err != nil {
		return err
	}
	defer g.Close()
	_, err = g.Keyset("default").Decrypt(ctx, message, []byte("context"))
	return expect(err, client.ErrDenied)
}

func (d *demo) alone(ctx context.Context, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := d.keys.Decrypt(ctx, message, []byte("context"))
	return expect(err, client.ErrQuorum)
}

func (d *demo) again(ctx context.Context, message []byte) error {
	if err := d.cluster.StartNode(2); err != nil {
		return err
	}
	if err := d.cluster.AwaitNode(ctx, 2); err != nil {
		return err
	}
	got, err := d.keys.Decrypt(ctx, message, []byte("context"))
	if err != nil {
		return err
	}
	if string(got) != "a short message" {
		return errors.New("the message differs")
	}
	return nil
}
