package protocol

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/binary"
	"math/big"
	"testing"

	circl "github.com/cloudflare/circl/sign/bls"
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/gtank/ristretto255"

	"github.com/seed-a893640b/tae/dprf"
	"github.com/seed-a893640b/tae/internal/secret"
	"github.com/seed-a893640b/tae/sig/bls"
)

// TAE3 a second time, from docs/spec.md alone: integers for scalars, the groups of the
// libraries, and nothing of this package or of dprf and sig/bls.

var ref3Q, _ = new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)

func ref3Reverse(b []byte) []byte {
	out := make([]byte, len(b))
	for i := range b {
		out[len(b)-1-i] = b[i]
	}
	return out
}

// ref3LE is a scalar as 32 bytes, little endian.
func ref3LE(x *big.Int) []byte {
	return ref3Reverse(new(big.Int).Mod(x, ref3Q).FillBytes(make([]byte, 32)))
}

func ref3Int(le []byte) *big.Int { return new(big.Int).SetBytes(ref3Reverse(le)) }

func ref3Scalar(x *big.Int) *ristretto255.Scalar {
	s := ristretto255.NewScalar()
	if err := s.Decode(ref3LE(x)); err != nil {
		panic(err)
	}
	return s
}

func ref3Mul(x *big.Int, p *ristretto255.Element) *ristretto255.Element {
	return ristretto255.NewElement().ScalarMult(ref3Scalar(x), p)
}

func ref3Base(x *big.Int) *ristretto255.Element {
	return ristretto255.NewElement().ScalarBaseMult(ref3Scalar(x))
}

func ref3Point(b []byte) *ristretto255.Element {
	p := ristretto255.NewElement()
	if err := p.Decode(b); err != nil {
		return nil
	}
	return p
}

func ref3Sum(points ...*ristretto255.Element) *ristretto255.Element {
	sum := ristretto255.NewElement()
	for _, p := range points {
		sum.Add(sum, p)
	}
	return sum
}

// ref3Hash is hash_to_ristretto255 of RFC 9380.
func ref3Hash(x []byte) *ristretto255.Element {
	dst := "tae/v1/ddh-ristretto255_XMD:SHA-512_R255MAP_RO_"
	prime := append([]byte(dst), byte(len(dst)))
	b0 := sha512.Sum512(bytes.Join([][]byte{make([]byte, 128), x, {0, 64, 0}, prime}, nil))
	b1 := sha512.Sum512(bytes.Join([][]byte{b0[:], {1}, prime}, nil))
	return ristretto255.NewElement().FromUniformBytes(b1[:])
}

func ref3Delta(n int) *big.Int {
	d := big.NewInt(1)
	for i := 2; i < n && n <= 16; i++ {
		d.Mul(d, big.NewInt(int64(i)))
	}
	return d
}

// ref3Lagrange is the coefficient of i at zero, modulo an order.
func ref3Lagrange(q []int, i int, order *big.Int) *big.Int {
	num, den := big.NewInt(1), big.NewInt(1)
	for _, j := range q {
		if j != i {
			num.Mul(num, big.NewInt(int64(j)))
			den.Mul(den, big.NewInt(int64(j-i)))
		}
	}
	den.ModInverse(den.Mod(den, order), order)
	return num.Mod(num.Mul(num, den), order)
}

// ref3Own is what a node multiplies by: its share over Delta.
func ref3Own(share *big.Int, n int) *big.Int {
	v := new(big.Int).ModInverse(ref3Delta(n), ref3Q)
	return v.Mod(v.Mul(v, share), ref3Q)
}

func ref3Combine(n int, q []int, values []*ristretto255.Element) *ristretto255.Element {
	sum := ristretto255.NewElement()
	for k, i := range q {
		c := ref3Lagrange(q, i, ref3Q)
		sum.Add(sum, ref3Mul(c.Mul(c, ref3Delta(n)), values[k]))
	}
	return sum
}

// ref3Rules are rules of proofs that controls switch off.
type ref3Rules struct {
	plainNonce bool // the nonce is the system's randomness alone
	noSeed     bool // the challenge does not hash the seed
	equal      bool // all weights are 1
}

// ref3Statement is what a proof is about.
type ref3Statement struct {
	op         int
	keyset     []byte
	suite      int
	epoch      int
	generation int
	node       int
	public     []byte
	positions  []int
	ids        [][]byte
	values     [][]byte
}

func (s *ref3Statement) seed() []byte {
	f := [][]byte{{byte(s.op)}, s.keyset, {byte(s.suite)}, refU16(s.epoch), refU32(s.generation), {byte(s.node)}, s.public, refU32(len(s.ids))}
	for i := range s.ids {
		f = append(f, refU16(s.positions[i]), s.ids[i])
	}
	h := refH("tae/v1/ddh/statement", append(f, s.values...)...)
	return h[:]
}

func (s *ref3Statement) composites(rules ref3Rules) (seed []byte, a, b *ristretto255.Element) {
	seed = s.seed()
	a, b = ristretto255.NewElement(), ristretto255.NewElement()
	for i := range s.ids {
		w := big.NewInt(1)
		if i > 0 && !rules.equal {
			h := refH("tae/v1/ddh/weight", seed, refU32(i))
			w = ref3Int(h[:16])
		}
		v := ref3Point(s.values[i])
		if v == nil {
			return nil, nil, nil
		}
		a.Add(a, ref3Mul(w, ref3Hash(s.ids[i])))
		b.Add(b, ref3Mul(w, v))
	}
	return seed, a, b
}

func ref3Wide(label string, fields ...[]byte) *big.Int {
	lo := refH(label, append([][]byte{{0}}, fields...)...)
	hi := refH(label, append([][]byte{{1}}, fields...)...)
	return new(big.Int).Mod(ref3Int(append(lo[:], hi[:]...)), ref3Q)
}

func ref3Challenge(rules ref3Rules, seed []byte, points ...*ristretto255.Element) *big.Int {
	if rules.noSeed {
		seed = make([]byte, 32)
	}
	fields := [][]byte{seed}
	for _, p := range points {
		fields = append(fields, p.Encode(nil))
	}
	return ref3Wide("tae/v1/ddh/challenge", fields...)
}

// prove makes the proof with own, the share over Delta.
func (s *ref3Statement) prove(rules ref3Rules, own *big.Int, system []byte) []byte {
	seed, a, b := s.composites(rules)
	r := ref3Wide("tae/v1/ddh/nonce", ref3LE(own), system, seed, a.Encode(nil), b.Encode(nil))
	if rules.plainNonce {
		r = ref3Int(append(bytes.Clone(system), make([]byte, 32)...))
	}
	c := ref3Challenge(rules, seed, a, b, ref3Base(r), ref3Mul(r, a))
	z := new(big.Int).Mul(c, own)
	return append(ref3LE(c), ref3LE(z.Sub(r, z))...)
}

func (s *ref3Statement) verify(rules ref3Rules, proof []byte) bool {
	seed, a, b := s.composites(rules)
	c, z := ref3Int(proof[:32]), ref3Int(proof[32:])
	if a == nil || c.Cmp(ref3Q) >= 0 || z.Cmp(ref3Q) >= 0 {
		return false
	}
	t1 := ref3Sum(ref3Base(z), ref3Mul(c, ref3Point(s.public)))
	t2 := ref3Sum(ref3Mul(z, a), ref3Mul(c, b))
	return ref3Challenge(rules, seed, a, b, t1, t2).Cmp(c) == 0
}

func ref3Leaf(x []byte) []byte { h := refH("tae/v1/leaf", []byte{1}, x); return h[:] }

func ref3Left(n int) int {
	k := 1
	for 2*k < n {
		k *= 2
	}
	return k
}

// ref3Tree is the root of leaves and the path of one.
func ref3Tree(leaves [][]byte, index int) (root []byte, path [][]byte) {
	if len(leaves) == 1 {
		return leaves[0], nil
	}
	k := ref3Left(len(leaves))
	l, lp := ref3Tree(leaves[:k], index)
	r, rp := ref3Tree(leaves[k:], index-k)
	h := refH("tae/v1/node", l, r)
	if index < k {
		return h[:], append(lp, r)
	}
	return h[:], append(rp, l)
}

// ref3Root follows a path; ok is false when it has another length than index and count
// say.
func ref3Root(leaf []byte, index, count int, path []byte) (root []byte, ok bool) {
	if count == 1 {
		return leaf, len(path) == 0
	}
	if len(path) < 32 {
		return nil, false
	}
	rest, last := path[:len(path)-32], path[len(path)-32:]
	k := ref3Left(count)
	if index < k {
		sub, ok := ref3Root(leaf, index, k, rest)
		h := refH("tae/v1/node", sub, last)
		return h[:], ok
	}
	sub, ok := ref3Root(leaf, index-k, count-k, rest)
	h := refH("tae/v1/node", last, sub)
	return h[:], ok
}

func ref3Signed(keyset []byte, epoch, count int, root []byte) []byte {
	h := refH("tae/v1/tae3-batch", keyset, []byte{3}, refU16(epoch), refU16(count), root)
	return h[:]
}

func ref3Sign(key *big.Int, message []byte) []byte {
	h, err := bls12381.HashToG1(message, []byte("BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"))
	if err != nil {
		panic(err)
	}
	h.ScalarMultiplication(&h, key)
	b := h.Bytes()
	return b[:]
}

func ref3CombineSignatures(q []int, partials [][]byte) []byte {
	var sum bls12381.G1Affine
	for k, i := range q {
		var p bls12381.G1Affine
		if _, err := p.SetBytes(partials[k]); err != nil {
			panic(err)
		}
		p.ScalarMultiplication(&p, ref3Lagrange(q, i, fr.Modulus()))
		sum.Add(&sum, &p)
	}
	b := sum.Bytes()
	return b[:]
}

// ref3VerifySignature is circl's.
func ref3VerifySignature(public, message, signature []byte) bool {
	key := new(circl.PublicKey[circl.KeyG2SigG1])
	return key.UnmarshalBinary(public) == nil && circl.Verify(key, message, signature)
}

func ref3Rho(m *ristretto255.Element) []byte {
	h := refH("tae/v1/rho", m.Encode(nil))
	return h[:30]
}

// ref3Open decrypts an object whose value Y is known: the reader of sections 6.3 and 7.
// public is Z_0, or nil to leave the signature unchecked.
func ref3Open(rules refRules, public []byte, y *ristretto255.Element, object, aad []byte) (m, j []byte, err error) {
	params, rest := object[:30], object[30:]
	epoch, x0 := int(binary.BigEndian.Uint16(rest)), rest[2:34]
	index, count := int(binary.BigEndian.Uint16(rest[69:])), int(binary.BigEndian.Uint16(rest[71:]))
	steps := 0
	for i, n := index, count; n > 1; steps++ {
		if k := ref3Left(n); i < k {
			n = k
		} else {
			i, n = i-k, n-k
		}
	}
	signature, path := rest[73:121], rest[121:121+32*steps]
	rest = rest[121+32*steps:]
	root, ok := ref3Root(ref3Leaf(x0), index, count, path)
	if public != nil && (!ok || !ref3VerifySignature(public, ref3Signed(params[14:30], epoch, count, root), signature)) {
		return nil, nil, errRef
	}
	e := ref3Point(rest[:32])
	if e == nil {
		return nil, nil, errRef
	}
	rho, body := ref3Rho(e.Subtract(e, y)), rest[32:]
	check := func(j, r, hb []byte) bool {
		ctx := refSession{params[14:30], 3, j, r}.contextWith(rules)
		return rules.noX0 || bytes.Equal(x0, refX(ctx, refCommit(rules, rho, 0, hb, params, aad)))
	}
	if Kind(params[11]) != KindMessage {
		return refOpenStream(rules, Kind(params[11]), rho, x0, body, check)
	}
	if len(body) < 64 {
		return nil, nil, errRef
	}
	p := refXOR(body, refKeystream(rho, len(body)))
	hb := refH("tae/v1/body", body)
	if !check(p[:32], p[32:64], hb[:]) {
		return nil, nil, errRef
	}
	return p[64:], p[:32], nil
}

// A cluster3 is a TAE3 keyset whose secret polynomials the test knows.
type cluster3 struct {
	*testCluster
	f, g    []*big.Int // coefficients of the two keys
	private []ed25519.PrivateKey
}

func at(poly []*big.Int, i int, order *big.Int) *big.Int {
	v := new(big.Int)
	for k := len(poly) - 1; k >= 0; k-- {
		v.Mul(v, big.NewInt(int64(i)))
		v.Add(v, poly[k])
		v.Mod(v, order)
	}
	return v
}

func (c *cluster3) share(node int) *big.Int    { return at(c.f, node, ref3Q) }
func (c *cluster3) sigShare(node int) *big.Int { return at(c.g, node, fr.Modulus()) }
func (c *cluster3) own(node int) *big.Int      { return ref3Own(c.share(node), c.cert.N) }

// value is what a node answers, y the function's value.
func (c *cluster3) value(node int, x []byte) *ristretto255.Element {
	return ref3Mul(c.own(node), ref3Hash(x))
}
func (c *cluster3) y(x []byte) *ristretto255.Element { return ref3Mul(c.f[0], ref3Hash(x)) }

func (c *cluster3) epoch(node int) *Epoch { return c.servers[node].keysets[c.cert.Keyset].Active }

// fixedCluster3 is the same in every run; name tells clusters apart.
func fixedCluster3(t testing.TB, n, th int, name string) *cluster3 {
	t.Helper()
	client := ed25519.NewKeyFromSeed(fixed("client"))
	c := &cluster3{testCluster: &testCluster{author: &Author{Key: ClientKey(client.Public().(ed25519.PublicKey))}, private: client}}
	for k := range th {
		c.f = append(c.f, new(big.Int).Mod(new(big.Int).SetBytes(append(fixed("tae3 %s f %d", name, k), fixed("low")...)), ref3Q))
		c.g = append(c.g, new(big.Int).Mod(new(big.Int).SetBytes(append(fixed("tae3 %s g %d", name, k), fixed("low")...)), fr.Modulus()))
	}
	cert := &Certificate{Terms: Terms{Keyset: KeysetID(fixed("keyset %s", name)), Name: "vectors", Suite: SuiteTAE3, N: n, T: th,
		Modes: ModesOf(ModeSealed), Limits: Limits{MaxBatch: MaxBatchLimit, ObjectsLog2: 36}, Version: 1, Epoch: 1, Attempt: 1, Generation: 1}}
	for i := 1; i <= n; i++ {
		c.private = append(c.private, ed25519.NewKeyFromSeed(fixed("node %d", i)))
		cert.Members = append(cert.Members, [32]byte(c.private[i-1].Public().(ed25519.PublicKey)))
	}
	c.setKeys(cert)
	return c.serve(t, cert)
}

// setKeys puts the public polynomials into a certificate.
func (c *cluster3) setKeys(cert *Certificate) {
	cert.KeyPoly, cert.SigPoly = nil, nil
	_, _, _, g2 := bls12381.Generators()
	for k := range c.f {
		cert.KeyPoly = append(cert.KeyPoly, [dprf.ElementSize]byte(ref3Base(c.f[k]).Encode(nil)))
		var p bls12381.G2Affine
		p.ScalarMultiplication(&g2, c.g[k])
		cert.SigPoly = append(cert.SigPoly, [bls.PublicKeySize]byte(p.Bytes()))
	}
}

// serve signs a certificate and makes servers that hold its shares.
func (c *cluster3) serve(t testing.TB, cert *Certificate) *cluster3 {
	t.Helper()
	o := &cluster3{&testCluster{author: c.author, private: c.testCluster.private, cert: cert}, c.f, c.g, c.private}
	cert.Signatures, cert.public = nil, nil
	for _, p := range c.private {
		cert.Signatures = append(cert.Signatures, cert.Sign(p))
	}
	if err := cert.Prepare(); err != nil {
		t.Fatal(err)
	}
	o.servers = make([]*Server, cert.N+1)
	for node := 1; node <= cert.N; node++ {
		o.servers[node] = o.server3(t, node, allowAll)
	}
	return o
}

func (c *cluster3) server3(t testing.TB, node int, gate Gate) *Server {
	t.Helper()
	share, err := dprf.NewDDHShare(c.cert.Params(), node, secret.New(ref3LE(c.share(node))))
	if err != nil {
		t.Fatal(err)
	}
	key, err := bls.NewKeyShare(secret.New(c.sigShare(node).FillBytes(make([]byte, 32))))
	if err != nil {
		t.Fatal(err)
	}
	e := &Epoch{Certificate: c.cert, Encoded: c.cert.Append(nil), State: EpochActive,
		TAE3: &TAE3Epoch{Share: share, SigKey: key, NodeKey: c.private[node-1]}}
	if c.cert.N <= 5 || node == c.cert.N { // slow for many
		if err := c.cert.CheckShares(share, key); err != nil {
			t.Fatal(err)
		}
	}
	return NewServer(node, gate, map[KeysetID]*ServedKeyset{c.cert.Keyset: {Active: e, Epochs: map[uint16]*Epoch{c.cert.Epoch: e}}})
}

// twin3 has the same keys under a certificate that differs in one thing.
func (c *cluster3) twin3(t testing.TB, change func(*Certificate)) *cluster3 {
	t.Helper()
	cert := *c.cert
	change(&cert)
	return c.serve(t, &cert)
}

// make3 encrypts with given secrets.
func (c *cluster3) make3(t testing.TB, b, seed *[32]byte, messages ...Message) (*Encryption, [][]byte) {
	t.Helper()
	e := encryptMessages(c.cert, c.author, messages, b, seed)
	c.run3(t, e)
	return e, e.Objects()
}

func (c *cluster3) run3(t testing.TB, e *Encryption) {
	t.Helper()
	r, err := e.VerifiedRound(0)
	if err != nil {
		t.Fatal(err)
	}
	for node := 1; node <= c.cert.T; node++ {
		r.Extend(dprf.SetOf(node))
		if err := r.Add(node, c.servers[node].Handle(c.caller(), r.Request(node))); err != nil {
			t.Fatal(err)
		}
	}
	if !r.Done() {
		t.Fatal("not done")
	}
}

// stream3 makes a file or pipe from given secrets.
func (c *cluster3) stream3(t testing.TB, kind Kind, m, aad []byte, b, seed *[32]byte) ([]byte, *Stream) {
	t.Helper()
	var body bytes.Buffer
	var s *Stream
	var err error
	if kind == KindFile {
		s, err = newFile(c.cert, c.author, aad, &body, b, seed)
	} else {
		s = newPipe(c.cert, c.author, aad, b, seed)
		c.run3(t, s.Encryption)
		err = s.StartBody(&body)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err = s.Write(m); err != nil {
		t.Fatal(err)
	}
	if kind == KindFile {
		err = s.FinishBody()
		c.run3(t, s.Encryption)
	} else {
		err = s.EndPipe(c.testCluster.private)
	}
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.Clone(s.Header()), body.Bytes()...), s
}

// opened3At is an object's header with what Y makes of it.
func openedWith(h *Header, y *ristretto255.Element) (Opened, bool) {
	e := ref3Point(h.Masked[:])
	if e == nil {
		return Opened{}, false
	}
	o := Opened{h: h}
	copy(o.secret[:], ref3Rho(e.Subtract(e, y)))
	return o, true
}
