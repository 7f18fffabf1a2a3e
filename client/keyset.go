package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/protocol"
)

// A Keyset is a handle for operations under one keyset. It is cheap and safe for
// concurrent use.
type Keyset struct {
	c            *Client
	name         string
	crossChecked bool
}

// Keyset returns a handle; nothing is asked before the first operation.
func (c *Client) Keyset(name string) *Keyset { return &Keyset{c: c, name: name} }

// CrossChecked returns a handle whose encryptions ask 2t-1 nodes in detail and
// compare their answers, so that up to t-1 lying nodes cannot make an object that
// does not decrypt: a difference ends the encryption with a *DisputeError. It
// needs n >= 2t-1 nodes and costs bandwidth and time.
func (k *Keyset) CrossChecked() *Keyset {
	checked := *k
	checked.crossChecked = true
	return &checked
}

// Name is the keyset's name.
func (k *Keyset) Name() string { return k.name }

// An Item is one message of a batch: for EncryptBatch a plaintext, for
// DecryptBatch an object.
type Item struct {
	Data []byte
	AAD  []byte
}

// A Result is what became of one item, in the order of the items. Data is nil when
// Err is not.
type Result struct {
	Data []byte
	// Author is the public key of the client that encrypted the item; after
	// decryption only.
	Author [32]byte
	Err    error
}

const (
	// chunkItems is the number of items sent in one request, chunksInFlight how many
	// requests of a batch are under way at once.
	chunkItems     = 128
	chunksInFlight = 4
)

// Encrypt encrypts one message of at most MaxMessage bytes.
func (k *Keyset) Encrypt(ctx context.Context, plaintext, aad []byte) ([]byte, error) {
	r, err := k.EncryptBatch(ctx, []Item{{plaintext, aad}})
	if err != nil {
		return nil, err
	}
	return r[0].Data, r[0].Err
}

// Decrypt decrypts and verifies one message.
func (k *Keyset) Decrypt(ctx context.Context, object, aad []byte) ([]byte, error) {
	r, err := k.DecryptBatch(ctx, []Item{{object, aad}})
	if err != nil {
		return nil, err
	}
	return r[0].Data, r[0].Err
}

// EncryptBatch encrypts many messages. The error is that of the whole batch, such
// as an unknown keyset; what befell single items is in their results.
func (k *Keyset) EncryptBatch(ctx context.Context, items []Item) ([]Result, error) {
	return k.batch(ctx, items, k.encryptChunk)
}

// DecryptBatch decrypts and verifies many messages.
func (k *Keyset) DecryptBatch(ctx context.Context, items []Item) ([]Result, error) {
	return k.batch(ctx, items, k.decryptChunk)
}

type chunkFunc func(ctx context.Context, cert *protocol.Certificate, items []Item, results []Result)

func (k *Keyset) batch(ctx context.Context, items []Item, f chunkFunc) ([]Result, error) {
	ctx, cancel, err := k.c.bound(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	cert, err := k.c.certificate(ctx, k.name)
	if err != nil {
		return nil, err
	}
	size := k.chunkSize(cert)
	results := make([]Result, len(items))
	if len(items) <= size {
		if len(items) > 0 {
			f(ctx, cert, items, results)
		}
		return results, nil
	}
	var group sync.WaitGroup
	places := make(chan struct{}, chunksInFlight)
	for i := 0; i < len(items); i += size {
		end := min(i+size, len(items))
		places <- struct{}{}
		group.Go(func() {
			f(ctx, cert, items[i:end], results[i:end])
			<-places
		})
	}
	group.Wait()
	return results, nil
}

// chunkSize is how many items go in one request: few enough that request and
// answers stay well below the transport's limit on messages, whatever the number of
// keys.
func (k *Keyset) chunkSize(cert *protocol.Certificate) int {
	p := cert.Params()
	if cert.Suite == protocol.SuiteTAE3 {
		return min(chunkItems, int(cert.Limits.MaxBatch))
	}
	perItem := dprf.IDSize + dprf.TagSize*p.Keys()
	if k.crossChecked {
		perItem = max(perItem, (dprf.MaskSize+dprf.TagSize)*p.Held())
	}
	return max(1, min(chunkItems, int(cert.Limits.MaxBatch), maxMessage/perItem))
}

// maxMessage is the size in bytes that a request or answer should not exceed.
const maxMessage = 2 << 20

func failAll(results []Result, err error) {
	for i := range results {
		if results[i].Err == nil && results[i].Data == nil {
			results[i].Err = err
		}
	}
}

func (k *Keyset) encryptChunk(ctx context.Context, cert *protocol.Certificate, items []Item, results []Result) {
	var messages []protocol.Message
	var at []int
	for i, it := range items {
		if len(it.Data) > MaxMessage {
			results[i].Err = ErrTooLarge
			continue
		}
		messages = append(messages, protocol.Message{Plaintext: it.Data, AAD: it.AAD})
		at = append(at, i)
	}
	if len(messages) == 0 {
		return
	}
	e, err := protocol.EncryptMessages(cert, k.c.author(), messages)
	if err != nil {
		failAll(results, err)
		return
	}
	defer e.Wipe()
	if err := k.runEncrypt(ctx, cert, e); err != nil {
		failAll(results, err)
		return
	}
	for j, object := range e.Objects() {
		results[at[j]].Data = object
	}
}

// runEncrypt asks quorums until the objects' headers can be made.
func (k *Keyset) runEncrypt(ctx context.Context, cert *protocol.Certificate, e *protocol.Encryption) error {
	p := cert.Params()
	if cert.Suite == protocol.SuiteTAE3 { // every answer is verified: nothing is left to cross-check
		start := func(q dprf.Set) (*protocol.VerifiedEncryptRound, error) { return e.VerifiedRound(q) }
		_, err := newOperation(k.c, p, p.T, start, (*protocol.VerifiedEncryptRound).Request).run(ctx)
		return err
	}
	size := p.T
	if k.crossChecked {
		if size = 2*p.T - 1; size > p.N {
			return fmt.Errorf("client: cross-checking needs 2t-1 = %d nodes, keyset %s has %d", size, k.name, p.N)
		}
	}
	start := func(q dprf.Set) (*protocol.EncryptRound, error) { return e.Round(q, k.crossChecked) }
	r, err := newOperation(k.c, p, size, start, (*protocol.EncryptRound).Request).run(ctx)
	if err != nil {
		return err
	}
	return k.c.dispute(r.Finish())
}

// dispute gives the nodes of a dispute their names.
func (c *Client) dispute(err error) error {
	var d *protocol.DisputeError
	if !errors.As(err, &d) {
		return err
	}
	e := &DisputeError{Detail: d}
	for _, node := range d.Liars().Nodes() {
		e.Liars = append(e.Liars, c.name(node))
	}
	c.log.Warn("nodes gave different values", "liars", e.Liars, "detail", d.Error())
	return e
}

func (k *Keyset) decryptChunk(ctx context.Context, cert *protocol.Certificate, items []Item, results []Result) {
	var headers []*protocol.Header
	var bodies [][]byte
	var at []int
	for i, it := range items {
		h, body, err := protocol.ParseHeader(it.Data)
		if err == nil && h.Kind != protocol.KindMessage {
			err = fmt.Errorf("client: the object is a %v; decrypt it as a stream", h.Kind)
		}
		if err == nil {
			err = checkObject(cert, h)
		}
		if err != nil {
			results[i].Err = err
			continue
		}
		headers, bodies, at = append(headers, h), append(bodies, body), append(at, i)
	}
	if len(headers) == 0 {
		return
	}
	opened, err := k.unmask(ctx, cert, headers, func(j int, o protocol.Opened) bool {
		i := at[j]
		m, author, err := o.Message(bodies[j], items[i].AAD)
		if err != nil {
			return false
		}
		if m == nil {
			m = []byte{}
		}
		results[i] = Result{Data: m, Author: author}
		return true
	})
	for j, i := range at {
		switch {
		case err != nil && results[i].Data == nil:
			results[i] = Result{Err: err}
		case err == nil && opened[j] != nil:
			results[i] = Result{Err: opened[j]}
		}
	}
}
