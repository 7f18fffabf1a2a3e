package config

import (
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The examples that users start from must load.
func TestExamples(t *testing.T) {
	cluster, err := LoadCluster("../../configs/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(cluster.Members) != 3 || len(cluster.Clients) != 2 {
		t.Errorf("%+v", cluster)
	}
	if _, err := LoadPolicy("../../configs/policy.yaml", cluster); err != nil {
		t.Error(err)
	}
	n, err := LoadNode("../../configs/node.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if n.Cluster != "../../configs/cluster.yaml" || n.Passphrase.Credential != "tae" {
		t.Errorf("%+v", n)
	}
	c, err := LoadClient("../../configs/client.yaml")
	if err != nil || time.Duration(c.Timeout) != 30*time.Second {
		t.Errorf("%+v %v", c, err)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const (
	key1 = "ed25519:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
	key2 = "ed25519:3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
)

// Every error names the file and the field.
func TestClusterErrors(t *testing.T) {
	member := "members: [{index: 1, name: n1, key: \"" + key1 + "\", addrs: [/ip4/127.0.0.1/tcp/1]}"
	for _, c := range []struct{ text, want string }{
		{"", "is empty"},
		{"version: 2\ncluster: a\n", "version"},
		{"version: 1\ncluster: A\n", "cluster"},
		{"version: 1\ncluster: a\n", "members"},
		{"version: 1\ncluster: a\ncolour: b\n", "colour"},
		{"version: 1\nversion: 1\n", "already defined"},
		{"version: 1\ncluster: a\n---\nversion: 1\n", "more than one document"},
		{"version: 1\ncluster: a\n" + strings.Replace(member, "index: 1", "index: 2", 1) + "]", "index"},
		{"version: 1\ncluster: a\n" + strings.Replace(member, "name: n1", "name: N1", 1) + "]", "name"},
		{"version: 1\ncluster: a\n" + strings.Replace(member, key1, "ed25519:00", 1) + "]", "public key"},
		{"version: 1\ncluster: a\n" + strings.Replace(member, key1, "ed25519:"+strings.Repeat("0", 64), 1) + "]", "full order"},
		{"version: 1\ncluster: a\n" + strings.Replace(member, "[/ip4/127.0.0.1/tcp/1]", "[]", 1) + "]", "addrs"},
		{"version: 1\ncluster: a\n" + member + ", {index: 2, name: n1, key: \"" + key2 + "\", addrs: [x]}]", "twice"},
		{"version: 1\ncluster: a\n" + member + ", {index: 2, name: n2, key: \"" + key1 + "\", addrs: [x]}]", "also the key"},
		{"version: 1\ncluster: a\n" + member + "]\nclients: {app: \"" + key1 + "\"}", "also the key"},
		{"version: 1\ncluster: a\n" + member + "]\nclients: {app: }", "clients.app"},
	} {
		file := write(t, c.text)
		_, err := LoadCluster(file)
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: %v, want %q and the file", c.text, err, c.want)
		}
	}
}

func TestPolicyErrors(t *testing.T) {
	cluster, err := LoadCluster("../../configs/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{"version: 1\nclients: {stranger: {orders: {encrypt: true}}}", "stranger"},
		{"version: 1\nclients: {orders-writer: {ORDERS: {encrypt: true}}}", "ORDERS"},
		{"version: 1\nclients: {orders-writer: {orders: {delete: true}}}", "delete"},
	} {
		if _, err := LoadPolicy(write(t, c.text), cluster); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestNodeErrors(t *testing.T) {
	const good = "version: 1\nname: n1\ncluster: c\npolicy: p\n"
	for _, c := range []struct{ text, want string }{
		{good, "exactly one"},
		{good + "passphrase: {file: a, credential: b}", "exactly one"},
		{good + "passphrase: {file: a}\nlog_level: loud", "log_level"},
		{good + "passphrase: {file: a}\nlimits: {workers: -1}", "limits"},
		{"version: 1\nname: n1\npolicy: p\n", "cluster"},
	} {
		if _, err := LoadNode(write(t, c.text)); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestClientKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := SaveClientKey(file, key); err != nil {
		t.Fatal(err)
	}
	got, err := LoadClientKey(file)
	if err != nil || !got.Equal(key) {
		t.Errorf("%v", err)
	}
	if err := SaveClientKey(file, key); err == nil {
		t.Error("an existing key was replaced")
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadClientKey(file); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others can read: %v", err)
	}
	bad := write(t, "tae-client-key-1:secretsecret")
	if _, err := LoadClientKey(bad); err == nil || strings.Contains(err.Error(), "secretsecret") {
		t.Errorf("a malformed key: %v", err)
	}
}

func TestPassphrase(t *testing.T) {
	file := write(t, "secret\n")
	p, err := Passphrase{File: file}.Read()
	if err != nil || string(p.Expose()) != "secret" {
		t.Errorf("%v", err)
	}
	if _, err := (Passphrase{File: write(t, "\n")}).Read(); !errors.Is(err, ErrConfig) {
		t.Errorf("an empty passphrase: %v", err)
	}
	t.Setenv("CREDENTIALS_DIRECTORY", filepath.Dir(file))
	if p, err = (Passphrase{Credential: "x.yaml"}).Read(); err != nil || string(p.Expose()) != "secret" {
		t.Errorf("credential: %v", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w.WriteString("through a pipe")
	w.Close()
	t.Setenv("PASS_FD", strconv.Itoa(int(r.Fd())))
	if p, err = (Passphrase{FDEnv: "PASS_FD"}).Read(); err != nil || string(p.Expose()) != "through a pipe" {
		t.Errorf("descriptor: %v", err)
	}
	t.Setenv("PASS_FD", "none")
	if _, err = (Passphrase{FDEnv: "PASS_FD"}).Read(); !errors.Is(err, ErrConfig) {
		t.Errorf("no descriptor: %v", err)
	}
}
