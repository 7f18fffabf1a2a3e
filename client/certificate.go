package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-a893640b/tae/protocol"
)

func (c *Client) memberKeys() [][32]byte {
	keys := make([][32]byte, len(c.opts.members))
	for i, m := range c.opts.members {
		keys[i] = m.Key
	}
	return keys
}

// adopt keeps a certificate that verifies and is newer than what is known.
func (c *Client) adopt(cert *protocol.Certificate) error {
	if err := cert.Verify(c.memberKeys()); err != nil {
		return err
	}
	if err := cert.Prepare(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cert.Newer(c.certs[cert.Name]) {
		c.certs[cert.Name] = cert
	}
	return nil
}

// learn follows a newer certificate that a refusal shows.
func (c *Client) learn(err error) {
	var r *protocol.Refusal
	if !errors.As(err, &r) || len(r.Certificate) == 0 {
		return
	}
	if cert, err := protocol.ParseCertificate(r.Certificate); err == nil {
		_ = c.adopt(cert)
	}
}

// certificate is the newest certificate of the keyset, asked for when none is
// known. Any t nodes can serve it and one is enough to believe it, since all
// members signed it; the newest that t nodes show is taken.
func (c *Client) certificate(ctx context.Context, name string) (*protocol.Certificate, error) {
	c.mu.Lock()
	cert := c.certs[name]
	c.mu.Unlock()
	if cert != nil {
		return cert, nil
	}
	if err := protocol.CheckName(name); err != nil {
		return nil, err
	}
	pause := firstPause
	for try := 0; ; try++ {
		cert, err := c.askCertificate(ctx, name)
		if cert != nil || !Retryable(err) || try == maxRetries || !sleep(ctx, pause/2+rand.N(pause)) {
			return cert, err
		}
		pause *= 2
	}
}

// askCertificate asks all nodes once.
func (c *Client) askCertificate(ctx context.Context, name string) (*protocol.Certificate, error) {
	req := protocol.KeysetsRequest(name)
	valid := 0
	answers := c.askAll(ctx, req, 1, func(node int, answer []byte) (enough bool, err error) {
		certs, err := protocol.ParseKeysetsAnswer(answer)
		if err != nil {
			return false, err
		}
		for _, cert := range certs {
			if cert.Name != name {
				continue
			}
			if err := c.adopt(cert); err != nil {
				return false, err
			}
			valid++
			return valid >= cert.T, nil
		}
		return false, fmt.Errorf("%w: no certificate of keyset %s", protocol.ErrAnswer, name)
	})
	c.mu.Lock()
	cert := c.certs[name]
	c.mu.Unlock()
	if cert != nil {
		return cert, nil
	}
	return nil, noCertificate(answers)
}

// noCertificate says why no node showed a certificate.
func noCertificate(results []NodeResult) error {
	e := &QuorumError{Kind: ErrQuorum, Need: 1, Nodes: results}
	votes := map[error]int{}
	for _, r := range results {
		votes[kindOf(r.Err)]++
	}
	for _, kind := range []error{ErrUnknownKeyset, ErrDenied} {
		if votes[kind] > 0 && votes[kind] >= votes[e.Kind] {
			e.Kind = kind
		}
	}
	return e
}

// grace is how long stragglers are waited for when enough nodes have answered.
const grace = time.Second

// askAll sends one request to all nodes and calls each with the answers until it
// says that they are enough, or need of them were good and the grace period is over.
func (c *Client) askAll(ctx context.Context, req []byte, need int, each func(node int, answer []byte) (bool, error)) []NodeResult {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n := len(c.opts.members)
	events := make(chan event, n)
	for node := 1; node <= n; node++ {
		go func() {
			begun := time.Now()
			answer, err := c.transport.Call(ctx, node, req)
			events <- event{node: node, answer: answer, err: err, took: time.Since(begun)}
		}()
	}
	results := make([]NodeResult, n)
	for i := range results {
		results[i] = NodeResult{Index: i + 1, Name: c.name(i + 1), Err: context.DeadlineExceeded}
	}
	var late <-chan time.Time
	for range n {
		select {
		case <-ctx.Done():
			return results
		case <-late:
			return results
		case e := <-events:
			c.health.note(e.node, e.took, e.err)
			enough := false
			if e.err == nil {
				enough, e.err = each(e.node, e.answer)
			}
			results[e.node-1].Err = e.err
			if enough {
				return results
			}
			if e.err == nil {
				if need--; need == 0 {
					timer := time.NewTimer(grace)
					defer timer.Stop()
					late = timer.C
				}
			}
		}
	}
	return results
}
