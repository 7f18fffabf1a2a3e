package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/p2p"
	"github.com/seed-a893640b/tae/protocol"
)

// A node is administered over HTTP on a Unix socket in its directory, mode 0600:
// who may open it may administer the node. It is never on the network.

// maxSocketPath is the length in bytes that all systems allow for a socket's path.
const maxSocketPath = 103

// shortPath works around the limit on socket paths: a longer
// one is named relative to the current directory, where that is shorter.
func shortPath(path string) string {
	if len(path) <= maxSocketPath {
		return path
	}
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, path); err == nil && len(rel) < len(path) {
			return rel
		}
	}
	return path
}

type adminServer struct {
	n        *Node
	host     *p2p.Host
	listener net.Listener
	http     *http.Server
}

func (n *Node) listenAdmin(dir string, host *p2p.Host) (*adminServer, error) {
	path := filepath.Join(dir, SocketFile)
	// The directory's lock is held, so a socket that is there is a dead node's.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if p := shortPath(path); len(p) > maxSocketPath {
		return nil, fmt.Errorf("administration socket: the path %s has %d bytes, a socket's may have %d; use a directory with a shorter path", p, len(p), maxSocketPath)
	}
	l, err := net.Listen("unix", shortPath(path))
	if err != nil {
		return nil, fmt.Errorf("administration socket: %w", err)
	}
	// The directory itself is private, so nobody else gets in before this.
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	a := &adminServer{n: n, host: host, listener: l}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", a.status)
	mux.HandleFunc("POST /keysets", a.create)
	mux.HandleFunc("POST /keysets/{name}/{verb}", a.verb)
	a.http = &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	return a, nil
}

func (a *adminServer) run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-ctx.Done()
		a.http.Close()
	}()
	if err := a.http.Serve(a.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		a.n.log.Error("administration socket", zap.Error(err))
	}
	<-done
}

// An AdminStatus is what a node says to its operator.
type AdminStatus struct {
	Schema      int          `json:"schema_version"`
	Node        string       `json:"node"`
	Index       int          `json:"index"`
	Cluster     string       `json:"cluster"`
	ClusterHash string       `json:"cluster_hash"`
	Software    string       `json:"software"`
	Addrs       []string     `json:"addrs"`
	Peers       []PeerInfo   `json:"peers"`
	Keysets     []KeysetInfo `json:"keysets"`
}

// A PeerInfo is this node's connection to another.
type PeerInfo struct {
	Name      string  `json:"name"`
	Index     int     `json:"index"`
	Connected bool    `json:"connected"`
	Addr      string  `json:"addr,omitempty"`
	RTTMillis float64 `json:"rtt_ms,omitempty"`
	Error     string  `json:"error,omitempty"`
}

func (a *adminServer) status(w http.ResponseWriter, _ *http.Request) {
	n := a.n
	hash := n.cfg.Cluster.Hash()
	s := AdminStatus{Schema: 1, Node: n.name(n.cfg.Self), Index: n.cfg.Self, Cluster: n.cfg.Cluster.Name, ClusterHash: fmt.Sprintf("%x", hash),
		Software: n.cfg.Software, Addrs: a.host.Addrs(), Keysets: n.List()}
	for _, p := range a.host.Peers() {
		info := PeerInfo{Name: p.Name, Index: p.Index, Connected: p.Connected, Addr: p.Addr, RTTMillis: float64(p.RTT.Microseconds()) / 1000}
		if p.LastErr != nil {
			info.Error = p.LastErr.Error()
		}
		s.Peers = append(s.Peers, info)
	}
	reply(w, s, nil)
}

func (a *adminServer) create(w http.ResponseWriter, r *http.Request) {
	var k NewKeyset
	d := json.NewDecoder(io.LimitReader(r.Body, 64<<10))
	d.DisallowUnknownFields()
	if err := d.Decode(&k); err != nil {
		reply(w, nil, err)
		return
	}
	info, err := a.n.Create(k)
	reply(w, info, err)
}

func (a *adminServer) verb(w http.ResponseWriter, r *http.Request) {
	f := map[string]func(string) (KeysetInfo, error){"accept": a.n.Accept, "abort": a.n.Abort, "retry": a.n.Retry}[r.PathValue("verb")]
	if f == nil {
		http.NotFound(w, r)
		return
	}
	info, err := f(r.PathValue("name"))
	reply(w, info, err)
}

// adminError carries an error over the socket; the kind lets the command choose its
// exit code.
type adminError struct {
	Kind string `json:"kind"`
	Text string `json:"error"`
}

func reply(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		kind := ""
		for name, sentinel := range adminKinds {
			if errors.Is(err, sentinel) {
				kind = name
			}
		}
		v = adminError{kind, err.Error()}
	}
	_ = json.NewEncoder(w).Encode(v)
}

var adminKinds = map[string]error{"unknown": ErrUnknownKeyset, "taken": ErrNameTaken, "threshold": dprf.ErrThreshold, "keys": dprf.ErrTooManyKeys, "name": protocol.ErrName, "usage": ErrUsage}

// An AdminError is an error that the node reported to its operator.
type AdminError struct {
	Text string
	Kind error // a sentinel, or nil
}

func (e *AdminError) Error() string { return e.Text }
func (e *AdminError) Unwrap() error { return e.Kind }

// call asks a running node over its socket.
func call(ctx context.Context, dir, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialAdmin(ctx, dir)
	}}}
	req, err := http.NewRequestWithContext(ctx, method, "http://node"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		if errors.Is(err, ErrNotRunning) {
			return errors.Unwrap(err)
		}
		return err
	}
	defer resp.Body.Close()
	d := json.NewDecoder(io.LimitReader(resp.Body, 16<<20))
	if resp.StatusCode != http.StatusOK {
		var e adminError
		if d.Decode(&e) != nil || e.Text == "" {
			return fmt.Errorf("node: administration socket answered %s", resp.Status)
		}
		return &AdminError{e.Text, adminKinds[e.Kind]}
	}
	return d.Decode(out)
}

// Status asks the node that runs in dir.
func Status(ctx context.Context, dir string) (*AdminStatus, error) {
	s := new(AdminStatus)
	return s, call(ctx, dir, http.MethodGet, "/status", nil, s)
}

// CreateKeyset proposes a keyset through the node that runs in dir.
func CreateKeyset(ctx context.Context, dir string, k NewKeyset) (*KeysetInfo, error) {
	i := new(KeysetInfo)
	return i, call(ctx, dir, http.MethodPost, "/keysets", k, i)
}

// KeysetVerb accepts, aborts or retries a keyset at the node that runs in dir.
func KeysetVerb(ctx context.Context, dir, name, verb string) (*KeysetInfo, error) {
	if err := protocol.CheckName(name); err != nil {
		return nil, err
	}
	i := new(KeysetInfo)
	return i, call(ctx, dir, http.MethodPost, "/keysets/"+name+"/"+verb, nil, i)
}
