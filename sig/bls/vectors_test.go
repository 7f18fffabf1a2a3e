package bls

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"os"
	"testing"

	circl "github.com/cloudflare/circl/sign/bls"
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/seed-a893640b/tae/internal/secret"
)

type unhex []byte

func (u *unhex) UnmarshalText(b []byte) (err error) {
	*u, err = hex.DecodeString(string(b))
	return err
}

func vectors(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

// Hashing to G1, RFC 9380 appendix J.9.1. It has its own tag; ours is that of the
// signature scheme.
func TestRFC9380(t *testing.T) {
	var v struct {
		DST     string
		Vectors []struct {
			Msg  string
			X, Y unhex
		}
	}
	vectors(t, "rfc9380-j91.json", &v)
	if len(v.Vectors) != 5 {
		t.Fatal("vectors are missing")
	}
	for _, x := range v.Vectors {
		p, err := bls12381.HashToG1([]byte(x.Msg), []byte(v.DST))
		if err != nil {
			t.Fatal(err)
		}
		px, py := p.X.Bytes(), p.Y.Bytes()
		if !bytes.Equal(px[:], x.X) || !bytes.Equal(py[:], x.Y) {
			t.Errorf("%q: (%x, %x)", x.Msg, px, py)
		}
		ours, _ := hashToG1([]byte(x.Msg))
		want, _ := bls12381.HashToG1([]byte(x.Msg), []byte("BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"))
		if !ours.Equal(&want) || ours.Equal(&p) {
			t.Errorf("%q: hashed under another tag", x.Msg)
		}
	}
}

// keyGen is KeyGen of the IETF draft, as the reference implementation had it: without
// hashing the salt first.
func keyGen(t *testing.T, seed []byte) secret.Bytes {
	t.Helper()
	okm, err := hkdf.Key(sha256.New, append(bytes.Clone(seed), 0), []byte("BLS-SIG-KEYGEN-SALT-"), string([]byte{0, 48}), 48)
	if err != nil {
		t.Fatal(err)
	}
	k := new(big.Int).SetBytes(okm)
	return secret.New(k.Mod(k, fr.Modulus()).FillBytes(make([]byte, 32)))
}

// Signatures of the reference implementation of the ciphersuite: ours are the same
// bytes, and each verifies under the key.
func TestReferenceSignatures(t *testing.T) {
	var v struct {
		Vectors []struct{ Msg, Seed, Sig unhex }
	}
	vectors(t, "sig_g1_basic_P256.json", &v)
	if len(v.Vectors) != 5 {
		t.Fatal("vectors are missing")
	}
	for i, x := range v.Vectors {
		k, err := NewKeyShare(keyGen(t, x.Seed))
		if err != nil {
			t.Fatal(err)
		}
		s, err := k.Sign(x.Msg)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Bytes(); !bytes.Equal(got[:], x.Sig) {
			t.Errorf("vector %d: signature %x", i, got)
		}
		public := k.Public()
		pub, err := ParsePublicKey(public[:])
		if err != nil {
			t.Fatal(err)
		}
		published, err := ParseSignature(x.Sig)
		if err != nil || !pub.Verify(x.Msg, published) || pub.Verify(append(x.Msg, 0), published) {
			t.Errorf("vector %d: the published signature does not verify: %v", i, err)
		}
	}
}

// An independent implementation accepts our combined signatures under our public key,
// and we accept its signatures.
func TestAgainstCircl(t *testing.T) {
	pub, shares := deal(t, 5, 3)
	b := pub.Bytes()
	theirs := new(circl.PublicKey[circl.KeyG2SigG1])
	if err := theirs.UnmarshalBinary(b[:]); err != nil || !theirs.Validate() {
		t.Fatal("circl refuses our public key:", err)
	}
	m := []byte("a message of a batch")
	for _, q := range [][]int{{1, 2, 3}, {5, 1, 4}, {2, 3, 4, 5}} {
		s := sign(t, shares, q, m).Bytes()
		if !circl.Verify(theirs, m, s[:]) {
			t.Errorf("quorum %v: circl refuses our combined signature", q)
		}
		if circl.Verify(theirs, []byte("another"), s[:]) {
			t.Error("control: circl accepts any message")
		}
	}
	two := sign(t, shares, []int{1, 2}, m).Bytes()
	if circl.Verify(theirs, m, two[:]) {
		t.Error("circl accepts what two of three signed")
	}
	for i := 1; i <= 5; i++ { // partial signatures too
		public := shares[i].Public()
		key := new(circl.PublicKey[circl.KeyG2SigG1])
		if err := key.UnmarshalBinary(public[:]); err != nil {
			t.Fatal(err)
		}
		s, _ := shares[i].Sign(m)
		if e := s.Bytes(); !circl.Verify(key, m, e[:]) {
			t.Errorf("circl refuses the partial signature of node %d", i)
		}
	}

	private, err := circl.KeyGen[circl.KeyG2SigG1](bytes.Repeat([]byte{7}, 32), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	encoded, _ := private.PublicKey().MarshalBinary()
	ours, err := ParsePublicKey(encoded)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSignature(circl.Sign(private, m))
	if err != nil || !ours.Verify(m, s) {
		t.Error("circl's signature does not verify:", err)
	}
}

// The key group's scalars do what integers modulo the order do, and every other
// encoding is refused.
func TestKeyGroupAgainstIntegers(t *testing.T) {
	g, q := KeyGroup{}, fr.Modulus()
	num := func(s interface{ MarshalBinary() ([]byte, error) }) *big.Int {
		b, _ := s.MarshalBinary()
		return new(big.Int).SetBytes(b)
	}
	for range 100 {
		a, b := g.Scalar().Pick(g.RandomStream()), g.Scalar().Pick(g.RandomStream())
		x, y := num(a), num(b)
		for what, c := range map[string][2]*big.Int{
			"a+b": {num(g.Scalar().Add(a, b)), new(big.Int).Add(x, y)},
			"a-b": {num(g.Scalar().Sub(a, b)), new(big.Int).Sub(x, y)},
			"ab":  {num(g.Scalar().Mul(a, b)), new(big.Int).Mul(x, y)},
			"a/b": {num(g.Scalar().Div(a, b)), new(big.Int).Mul(x, new(big.Int).ModInverse(y, q))},
			"-a":  {num(g.Scalar().Neg(a)), new(big.Int).Neg(x)},
		} {
			if c[0].Cmp(c[1].Mod(c[1], q)) != 0 {
				t.Error(what, "is wrong")
			}
		}
	}
	for range 5 {
		a, b := g.Scalar().Pick(g.RandomStream()), g.Scalar().Pick(g.RandomStream())
		p := g.Point().Pick(g.RandomStream())
		if !g.Point().Mul(g.Scalar().Add(a, b), p).Equal(g.Point().Add(g.Point().Mul(a, p), g.Point().Mul(b, p))) ||
			!g.Point().Mul(a, nil).Equal(g.Point().Mul(a, g.Point().Base())) || !g.Point().Sub(p, p).Equal(g.Point().Null()) {
			t.Error("multiplication is not linear")
		}
		enc, _ := p.MarshalBinary()
		for _, bad := range [][]byte{enc[:95], append(bytes.Clone(enc), 0), flip(enc, 0x80), flip(enc, 0x40)} {
			if g.Point().UnmarshalBinary(bad) == nil {
				t.Errorf("%x is accepted", bad)
			}
		}
	}
	order := q.FillBytes(make([]byte, 32))
	if g.Scalar().UnmarshalBinary(order) == nil {
		t.Error("the order is accepted as a scalar")
	}
}

func flip(b []byte, bit byte) []byte { b = bytes.Clone(b); b[0] ^= bit; return b }
