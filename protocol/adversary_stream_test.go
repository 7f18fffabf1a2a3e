package protocol

import (
	"bytes"
	"crypto/aes"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"slices"
	"testing"

	"github.com/seed-a893640b/tae/dprf"
)

// rewritePipe is what somebody who may decrypt can do with a pipe: it knows the
// secret, j and R, and writes another body under them, with the right commitments
// and its own signature.
func (c *testCluster) rewritePipe(t testing.TB, object, aad []byte) []byte {
	t.Helper()
	h, body, err := ParseHeader(object)
	if err != nil {
		t.Fatal(err)
	}
	secret := refXOR(h.Masked[:], refF(c.rawKeys(), h.Source.X0[:]))
	r, err := newBodyReader(h, (*[32]byte)(secret), bytes.NewReader(body), aad)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	rho := Rho(secret[:RhoSize])
	w, err := newBodyWriter(&out, KindPipe, &rho, &r.author, &r.r)
	if err != nil {
		t.Fatal(err)
	}
	own := ed25519.NewKeyFromSeed(fixed("decryptor"))
	if _, err := w.Write([]byte("send the money to me")); err != nil {
		t.Fatal(err)
	}
	if err := w.finishPipe(h.Source.X0, own); err != nil {
		t.Fatal(err)
	}
	return append(bytes.Clone(object[:len(object)-len(body)]), out.Bytes()...)
}

// A decryptor knows the secret of a pipe, but does not write in its author's name.
func TestGamePipeBodyIsTheAuthors(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	object := c.writeStream(t, KindPipe, []byte("pay the bill"), nil)
	forged := c.rewritePipe(t, object, nil)
	if released, _, err := c.readStream(forged, nil); !errors.Is(err, ErrAuthentication) || len(released) != 0 {
		t.Errorf("a rewritten pipe: %q, %v", released, err)
	}
	if _, _, err := refOpen(c.rawKeys(), forged, nil); err == nil {
		t.Error("the second implementation takes a rewritten pipe")
	}
	// Control: a reader that does not check the signature takes it as the author's.
	m, j, err := refOpenWith(refRules{noSignature: true}, c.rawKeys(), forged, nil)
	if err != nil || string(m) != "send the money to me" || !bytes.Equal(j, c.author.Key[:]) {
		t.Errorf("control: the attack no longer works without the rule: %q, %v", m, err)
	}
}

// Two pipes of one author do not lend each other parts or signatures.
func TestGamePipeParts(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	data := sequence(2*ChunkSize + 10)
	a, b := c.writeStream(t, KindPipe, data, nil), c.writeStream(t, KindPipe, data, nil)
	header := SealedHeaderSize(dprf.Params{N: 3, T: 2})
	chunk := ChunkSize + tagSize
	for _, cut := range []int{header, header + commitSize, header + commitSize + chunk, header + commitSize + 2*chunk} {
		mixed := append(bytes.Clone(a[:cut]), b[cut:]...)
		if released, _, err := c.readStream(mixed, nil); err == nil || !bytes.HasPrefix(data, released) {
			t.Errorf("joined at %d: %v", cut, err)
		}
	}
}

// gf is a field element of GHASH, x^0 in the highest bit of the first byte.
type gf [2]uint64

func gfOf(b []byte) gf { return gf{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])} }

func (a gf) bytes() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, a[0]), a[1])
}

func (a gf) add(b gf) gf { return gf{a[0] ^ b[0], a[1] ^ b[1]} }

func (a gf) mul(b gf) (z gf) {
	for i := range 128 {
		if a[i/64]>>(63-i%64)&1 == 1 {
			z = z.add(b)
		}
		carry := b[1] & 1
		b = gf{b[0] >> 1, b[1]>>1 | b[0]<<63}
		if carry == 1 {
			b[0] ^= 0xe1 << 56
		}
	}
	return z
}

// inverse is a^(2^128 - 2).
func (a gf) inverse() gf {
	e := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(2))
	z := gf{1 << 63, 0}
	for i := e.BitLen() - 1; i >= 0; i-- {
		z = z.mul(z)
		if e.Bit(i) == 1 {
			z = z.mul(a)
		}
	}
	return z
}

// twoKeyChunk makes one GCM ciphertext, of whole blocks, that opens under both
// keys: GHASH is linear, so one free block, the last, makes the two tags equal.
func twoKeyChunk(t testing.TB, k1, k2 [32]byte, nonce [12]byte, first []byte) []byte {
	t.Helper()
	c := append(bytes.Clone(first), make([]byte, 16)...)
	state := func(key [32]byte) (h, sum gf) {
		block, err := aes.NewCipher(key[:])
		if err != nil {
			t.Fatal(err)
		}
		hash, mask := make([]byte, 16), slices.Concat(nonce[:], refU32(1))
		block.Encrypt(hash, hash)
		block.Encrypt(mask, mask)
		h = gfOf(hash)
		for i := 0; i < len(c); i += 16 {
			sum = sum.add(gfOf(c[i:])).mul(h)
		}
		lengths := append(make([]byte, 8), refU64(uint64(8*len(c)))...)
		return h, sum.add(gfOf(lengths)).mul(h).add(gfOf(mask))
	}
	h1, tag1 := state(k1)
	h2, tag2 := state(k2)
	// A last block v adds v H^2 to each tag.
	v := tag1.add(tag2).mul(h1.mul(h1).add(h2.mul(h2)).inverse())
	copy(c[len(c)-16:], v.bytes())
	_, tag := state(k1)
	return append(c, tag.bytes()...)
}

// A malicious client makes a chunk that opens under two secrets. With a lying node
// that shifts the mask, a reader would release the second plaintext before it knows
// that the object does not verify.
func TestGameOneBodyOneSecret(t *testing.T) {
	rho1, rho2 := Rho(fixed("rho 1")[:RhoSize]), Rho(fixed("rho 2")[:RhoSize])
	k1, k2 := bodyKey(&rho1, labelStreamKey), bodyKey(&rho2, labelStreamKey)
	chunk := twoKeyChunk(t, k1, k2, chunkNonce(0, false), make([]byte, ChunkSize-16))
	var plain [2][]byte
	for i, rho := range []*Rho{&rho1, &rho2} {
		// Control: the chunk alone opens under both, to different plaintexts.
		nonce := chunkNonce(0, false)
		p, err := streamAEAD(rho).Open(nil, nonce[:], chunk, nil)
		if err != nil {
			t.Fatalf("control: the chunk does not open under secret %d: %v", i+1, err)
		}
		plain[i] = p
	}
	if bytes.Equal(plain[0], plain[1]) {
		t.Fatal("control: the same plaintext under both secrets")
	}
	commitment := bodyKey(&rho1, labelCommitKey)
	body := slices.Concat(commitment[:], chunk, make([]byte, 100))
	h := &Header{Params: Params{Suite: SuiteTAE1, Mode: ModeSealed, Kind: KindFile}, Epoch: 1}
	for i, rho := range []*Rho{&rho1, &rho2} {
		secret := masked(rho, 1)
		r, err := newBodyReader(h, &secret, bytes.NewReader(body), nil)
		if opened := err == nil; opened != (i == 0) {
			t.Errorf("secret %d: %v", i+1, err)
		}
		if r != nil && i == 0 {
			if out, err := io.ReadAll(r); err == nil || !bytes.HasPrefix(plain[0][preludeSize:], out) {
				t.Errorf("released something else: %v", err)
			}
		}
	}
	// The reader that tries several secrets after a dispute has the same check.
	o := Opened{h: h, secret: masked(&rho2, 1)}
	if o.FitsStream(commitment[:]) {
		t.Error("a secret fits another's commitment")
	}
}

// A file has one form: an empty last chunk behind whole ones is refused, even from the
// author's own hand.
func TestGameEmptyLastChunk(t *testing.T) {
	c := newTestCluster(t, 3, 2)
	var body bytes.Buffer
	s, err := NewFile(c.cert, c.author, nil, &StreamHints{}, &body)
	if err != nil {
		t.Fatal(err)
	}
	write := func(split bool) error {
		if _, err := s.Write(sequence(ChunkSize - preludeSize)); err != nil {
			t.Fatal(err)
		}
		if split { // a whole chunk that is not the last, and then nothing
			s.flush(false)
		}
		if err := errors.Join(s.FinishBody(), c.runEncrypt(s.Encryption, c.all(), false)); err != nil {
			t.Fatal(err)
		}
		_, _, err := c.readStream(append(bytes.Clone(s.Header()), body.Bytes()...), nil)
		return err
	}
	if err := write(true); !errors.Is(err, ErrAuthentication) {
		t.Errorf("an empty last chunk: %v", err)
	}
	// Control: the same data as one last chunk.
	body.Reset()
	if s, err = NewFile(c.cert, c.author, nil, &StreamHints{}, &body); err != nil {
		t.Fatal(err)
	}
	if err := write(false); err != nil {
		t.Error(err)
	}
}
