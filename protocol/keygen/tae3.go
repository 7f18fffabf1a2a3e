package keygen

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/protocol"
	"github.com/seed-a893640b/tae/protocol/dkg"
	"github.com/seed-a893640b/tae/sig"
	"github.com/seed-a893640b/tae/sig/bls"
)

// The keys of a TAE3 epoch are made by package dkg, whose payloads travel as
// statements. The run is a function of the seed and of what the others said, all of
// which is stored before this member says anything new: after a crash it cannot say
// something else.

// phaseOf maps the statements that carry payloads of dkg.
var phaseOf = map[Kind]dkg.Phase{GroupKeys: dkg.PhaseKeys, Deals: dkg.PhaseDeals, Responses: dkg.PhaseResponses, Justifications: dkg.PhaseJustifications}

func (a *Attempt) startRun() error {
	run, err := dkg.New(dkg.Params{N: a.terms.N, T: a.terms.T, Self: a.self, Session: a.session.Proposal}, secret.Copy(a.seed.Expose()))
	if err != nil {
		return err
	}
	a.run = run
	a.sayRun()
	return nil
}

// feed gives a statement's payload to the run.
func (a *Attempt) feed(s *Statement) error {
	if a.run == nil {
		return nil
	}
	err := a.run.Add(phaseOf[s.Kind], s.Sender, s.Payload)
	var f *dkg.Fault
	if errors.As(err, &f) {
		return a.blame(f.Node, f.Reason)
	}
	return err
}

// sayRun signs what the run has to say and has not said yet.
func (a *Attempt) sayRun() (said bool) {
	for kind := GroupKeys; kind <= Justifications; kind++ {
		if payload := a.run.Say(phaseOf[kind]); payload != nil && a.statements[kind][a.self] == nil && a.fault == nil {
			a.say(kind, payload)
			said = true
		}
	}
	return said
}

func (a *Attempt) checkForm3(s *Statement) error {
	bad := false
	switch s.Kind {
	case Commit:
		bad = true
	case Certify:
		bad = len(s.Payload) != sig.Size
	case Abandon:
		bad = len(s.Payload) != 0
	case Check:
		p, err := dkg.ParsePublic(s.Payload)
		bad = err != nil || p.T() != a.terms.T
	default:
		bad = !a.tae3() && s.Kind >= GroupKeys
	}
	if bad {
		return a.blame(s.Sender, fmt.Sprintf("signed a malformed %v", s.Kind))
	}
	return nil
}

// makeKeys3 takes the run's result.
func (a *Attempt) makeKeys3() error {
	if a.run.Phase() != dkg.PhaseDone {
		return nil
	}
	result, err := a.run.Result()
	if err != nil {
		var f *dkg.Fault
		if errors.As(err, &f) {
			return a.blame(f.Node, f.Reason)
		}
		return err
	}
	a.keys = []secret.Bytes{result.Share, result.BLSShare}
	a.say(Check, result.Public.Append(nil))
	a.phase = AwaitChecks
	return nil
}

// certificate3 is the unsigned certificate with the public polynomials of a check.
func (a *Attempt) certificate3(check []byte) (*protocol.Certificate, error) {
	p, err := dkg.ParsePublic(check)
	if err != nil {
		return nil, err
	}
	c := &protocol.Certificate{Terms: *a.terms, KeyPoly: p.DDH, SigPoly: p.BLS}
	return c, c.Prepare()
}

// makeCertificate3 compares the members' public polynomials.
func (a *Attempt) makeCertificate3() error {
	own := a.statements[Check][a.self].Payload
	for _, s := range a.statements[Check][1:] {
		if !bytes.Equal(s.Payload, own) {
			return a.blame(0, fmt.Sprintf("node %d has other public polynomials than this node: one of the two is wrong, or a member showed two things", s.Sender))
		}
	}
	cert, err := a.certificate3(own)
	if err != nil {
		return err
	}
	a.cert = cert
	signature := cert.Sign(a.key)
	a.say(Certify, signature[:])
	a.phase = AwaitCertificates
	return nil
}

func (a *Attempt) restoreCertificate3() error {
	own := a.statements[Check][a.self]
	if own == nil {
		return errState
	}
	cert, err := a.certificate3(own.Payload)
	if err != nil {
		return err
	}
	a.cert = cert
	if !cert.VerifyMember(a.self, a.statements[Certify][a.self].Payload) {
		return errState
	}
	return a.checkKeys3()
}

// Shares are the shares of a TAE3 epoch, ready for use.
func (a *Attempt) Shares() (*dprf.DDHShare, *bls.KeyShare, error) {
	if len(a.keys) != 2 {
		return nil, nil, ErrKeyCheck
	}
	share, err := dprf.NewDDHShare(a.terms.Params(), a.self, a.keys[0])
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrKeyCheck, err)
	}
	key, err := bls.NewKeyShare(a.keys[1])
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrKeyCheck, err)
	}
	return share, key, nil
}

// checkKeys3 checks the stored shares against the public polynomials.
func (a *Attempt) checkKeys3() error {
	share, key, err := a.Shares()
	if err != nil {
		return err
	}
	if err := a.cert.CheckShares(share, key); err != nil {
		return fmt.Errorf("%w: %w", ErrKeyCheck, err)
	}
	return nil
}
