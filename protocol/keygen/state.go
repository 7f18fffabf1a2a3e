package keygen

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/protocol"
)

const stateVersion = 1

// Marshal encodes what a member must still know after a crash (section 11.2): the
// terms, its own statements, and by phase its seed, all commits that it reveals for,
// its keys, the certificate or all abandon statements. It is secret.
func (a *Attempt) Marshal() secret.Bytes {
	c := cryptobyte.NewBuilder(nil)
	c.AddUint8(stateVersion)
	phase := a.phase
	revealing := phase == AwaitReveals || phase == AwaitChecks
	if revealing {
		phase = AwaitCommits // the rest is made again from what the others say again
	}
	c.AddUint8(uint8(phase))
	addVar(c, a.terms.Append(nil))
	seed := a.seed.Expose()
	keys := a.keys
	if phase == Complete {
		seed = nil
	}
	if phase == AwaitCommits {
		keys = nil
	}
	addVar(c, seed)
	c.AddUint16(uint16(len(keys)))
	for _, k := range keys {
		c.AddBytes(k.Expose())
	}
	var cert []byte
	if phase == Complete {
		cert = a.cert.Append(nil)
	}
	addVar(c, cert)
	var keep []*Statement
	for _, s := range a.Statements() {
		if phase != Complete && (s.Sender == a.self || s.Kind == Proposal || s.Kind == Abandon ||
			revealing && s.Kind == Commit || phase == AwaitCommits && s.Kind >= GroupKeys || phase == AwaitCertificates && s.Kind == Check) {
			keep = append(keep, s)
		}
	}
	return secret.New(AppendStatements(c.BytesOrPanic(), keep))
}

func addVar(c *cryptobyte.Builder, b []byte) {
	c.AddUint32(uint32(len(b)))
	c.AddBytes(b)
}

func readVar(s *cryptobyte.String) (out []byte, ok bool) {
	var n uint32
	ok = s.ReadUint32(&n) && uint64(n) <= uint64(len(*s)) && s.ReadBytes(&out, int(n))
	return out, ok
}

var errState = errors.New("keygen: malformed state")

// Restore rebuilds an attempt from Marshal's bytes and checks it: keys must match
// the certificate's key-check values.
func Restore(state secret.Bytes, self int, key ed25519.PrivateKey) (*Attempt, error) {
	s := cryptobyte.String(state.Expose())
	var version, phase uint8
	if !s.ReadUint8(&version) || !s.ReadUint8(&phase) {
		return nil, errState
	}
	if version != stateVersion {
		return nil, fmt.Errorf("keygen: state of version %d, this program reads version %d", version, stateVersion)
	}
	encoded, ok := readVar(&s)
	if !ok {
		return nil, errState
	}
	terms, err := protocol.ParseTerms(encoded)
	if err != nil {
		return nil, err
	}
	a := newAttempt(terms, self, key)
	if self < 1 || self > terms.N || terms.Members[self-1] != [32]byte(a.publicKey()) {
		return nil, errors.New("keygen: the stored terms name another key for this node")
	}
	a.phase = Phase(phase)
	if err := a.restore(&s); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *Attempt) restore(s *cryptobyte.String) error {
	seed, ok1 := readVar(s)
	var count uint16
	ok2 := s.ReadUint16(&count)
	for range count {
		var k []byte
		ok2 = ok2 && s.ReadBytes(&k, dprf.KeySize)
		a.keys = append(a.keys, secret.Copy(k))
	}
	cert, ok3 := readVar(s)
	list, ok4 := ReadStatements(s)
	if !ok1 || !ok2 || !ok3 || !ok4 || !s.Empty() {
		return errState
	}
	a.seed = secret.Copy(seed)
	if a.tae3() && a.phase == AwaitCommits {
		if err := a.startRun(); err != nil {
			return err
		}
	}
	for _, st := range list {
		if _, err := a.Add(st); err != nil {
			return err
		}
	}
	switch a.phase {
	case AwaitCommits, AwaitCertificates, Abandoning:
		if len(seed) != 32 || a.statements[Commit][a.self] == nil && a.statements[GroupKeys][a.self] == nil {
			return errState
		}
	case Complete, Abandoned:
	default:
		return errState
	}
	if a.phase == AwaitCertificates {
		return a.restoreCertificate()
	}
	if a.phase == Complete {
		c, err := protocol.ParseCertificate(cert)
		if err != nil {
			return err
		}
		a.cert = c
		if IDOf(&c.Terms) != IDOf(a.terms) || c.Terms.Digest() != a.session.Proposal {
			return errState
		}
		return a.checkKeys()
	}
	return nil
}

// restoreCertificate rebuilds the unsigned certificate from the key checks of all
// members, which were stored with the keys.
func (a *Attempt) restoreCertificate() error {
	if a.statements[Certify][a.self] == nil {
		return errState
	}
	if a.tae3() {
		return a.restoreCertificate3()
	}
	cert := &protocol.Certificate{Terms: *a.terms, Checks: make([][32]byte, a.layout.Keys())}
	for node := 1; node <= a.terms.N; node++ {
		st := a.statements[Check][node]
		if st == nil {
			return errState
		}
		for i, key := range a.layout.HeldBy(node) {
			cert.Checks[key] = [32]byte(st.Payload[32+32*i:])
		}
	}
	a.cert = cert
	if !cert.VerifyMember(a.self, a.statements[Certify][a.self].Payload) {
		return errState
	}
	return a.checkKeys()
}

// ErrKeyCheck reports stored keys that are not those of the certificate.
var ErrKeyCheck = errors.New("keygen: stored keys do not match the epoch certificate")

func (a *Attempt) checkKeys() error {
	if a.tae3() {
		return a.checkKeys3()
	}
	held := a.layout.HeldBy(a.self)
	if len(a.keys) != len(held) {
		return ErrKeyCheck
	}
	for i, key := range held {
		if a.session.KeyCheck(a.layout.Set(key), a.keys[i]) != a.cert.Checks[key] {
			return fmt.Errorf("%w: key of nodes %v", ErrKeyCheck, a.layout.Set(key))
		}
	}
	return nil
}
