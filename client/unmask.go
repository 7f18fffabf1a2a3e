package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/protocol"
)

// checkObject sorts an object that does not fit the keyset into the errors of this
// package.
func checkObject(cert *protocol.Certificate, h *protocol.Header) error {
	err := protocol.CheckObject(cert, h)
	switch {
	case errors.Is(err, protocol.ErrOtherKeyset):
		return fmt.Errorf("%w: %w", ErrUnknownKeyset, err)
	case errors.Is(err, protocol.ErrUnknownEpoch):
		return fmt.Errorf("%w: %w", ErrEpoch, err)
	}
	return err
}

// unmask gets the secrets of objects and lets try open each. Where one does not
// open, or a node refuses its proof, the nodes are asked again in detail: a lying
// node must not be able to make a good object fail. It returns an error per object.
func (k *Keyset) unmask(ctx context.Context, cert *protocol.Certificate, headers []*protocol.Header, try func(int, protocol.Opened) bool) ([]error, error) {
	p := cert.Params()
	d, err := protocol.NewDecryption(cert, headers)
	if err != nil {
		return nil, err
	}
	if cert.Suite == protocol.SuiteTAE3 {
		return k.unmaskVerified(ctx, cert, d, headers, try)
	}
	start := func(q dprf.Set) (*protocol.DecryptRound, error) { return d.Round(q, false) }
	request := func(r *protocol.DecryptRound, _ int) []byte { return r.Request() }
	r, err := newOperation(k.c, p, p.T, start, request).run(ctx)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(headers))
	var bad []int
	for i := range headers {
		o, err := r.Unmask(i)
		if err != nil || !try(i, o) {
			bad = append(bad, i)
		}
	}
	perItem := max(dprf.IDSize+dprf.TagSize*p.Keys(), dprf.MaskSize*p.Held())
	for part := range slices.Chunk(bad, max(1, min(chunkItems, maxMessage/perItem))) {
		k.inDetail(ctx, cert, headers, part, errs, try)
	}
	return errs, nil
}

// inDetail asks all nodes for the masks of the given objects key by key, reports
// what they disagree on, and tries the combinations that remain.
func (k *Keyset) inDetail(ctx context.Context, cert *protocol.Certificate, headers []*protocol.Header, which []int, errs []error, try func(int, protocol.Opened) bool) {
	fail := func(err error) {
		for _, i := range which {
			errs[i] = err
		}
	}
	var part []*protocol.Header
	for _, i := range which {
		part = append(part, headers[i])
	}
	d, err := protocol.NewDecryption(cert, part)
	if err != nil {
		fail(err)
		return
	}
	r, err := d.Round(1<<cert.N-1, true)
	if err != nil {
		fail(err)
		return
	}
	results := k.c.askAll(ctx, r.Request(), cert.T, func(node int, answer []byte) (bool, error) {
		return false, r.Add(node, answer)
	})
	dispute := k.c.dispute(asError(r.Compare()))
	for j, i := range which {
		switch {
		case r.Recombine(j, func(o protocol.Opened) bool { return try(i, o) }):
			// The object is good, so some node's answer was not.
			k.c.log.Warn("a node gave a wrong answer to a decryption", "dispute", dispute)
		case dispute != nil && r.Served(j).Size() >= cert.T:
			errs[i] = errors.Join(ErrAuthentication, dispute)
		default:
			errs[i] = k.notServed(cert, r.Served(j).Size(), results)
		}
	}
}

// unmaskVerified is unmask for TAE3. The values are taken without proofs first; where
// an object does not open, all are asked for again with proofs, which name a liar.
func (k *Keyset) unmaskVerified(ctx context.Context, cert *protocol.Certificate, d *protocol.Decryption, headers []*protocol.Header, try func(int, protocol.Opened) bool) ([]error, error) {
	r, err := k.verifiedRound(ctx, cert, d, false)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(headers))
	var bad []int
	var again []*protocol.Header
	for i := range headers {
		o, err := r.Unmask(i)
		if err != nil || !try(i, o) {
			bad, again = append(bad, i), append(again, headers[i])
		}
	}
	if len(bad) == 0 {
		return errs, nil
	}
	if d, err = protocol.NewDecryption(cert, again); err == nil {
		r, err = k.verifiedRound(ctx, cert, d, true)
	}
	for j, i := range bad {
		errs[i] = err
		if err == nil {
			errs[i] = k.openProven(r, j, func(o protocol.Opened) bool { return try(i, o) })
		}
	}
	return errs, nil
}

// openProven opens an object with values that are proven right: what does not open
// now is the object's fault.
func (k *Keyset) openProven(r *protocol.VerifiedDecryptRound, j int, try func(protocol.Opened) bool) error {
	o, err := r.Unmask(j)
	if err != nil || !try(o) {
		return ErrAuthentication
	}
	return nil
}

func (k *Keyset) verifiedRound(ctx context.Context, cert *protocol.Certificate, d *protocol.Decryption, proofs bool) (*protocol.VerifiedDecryptRound, error) {
	start := func(q dprf.Set) (*protocol.VerifiedDecryptRound, error) { return d.VerifiedRound(q, proofs) }
	request := func(r *protocol.VerifiedDecryptRound, _ int) []byte { return r.Request() }
	return newOperation(k.c, cert.Params(), cert.T, start, request).run(ctx)
}

func asError(d *protocol.DisputeError) error {
	if d == nil {
		return nil
	}
	return d
}

// notServed decides what an object is whose secret no quorum gives: when nodes were
// out of reach it may be theirs, else it is the object's fault.
func (k *Keyset) notServed(cert *protocol.Certificate, served int, results []NodeResult) error {
	down := 0
	for _, r := range results {
		if r.Err != nil {
			down++
		}
	}
	if served < cert.T && down > cert.N-cert.T {
		return &QuorumError{Kind: ErrQuorum, Need: cert.T, Have: cert.N - down, Nodes: results}
	}
	return ErrAuthentication
}
