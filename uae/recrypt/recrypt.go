// Package recrypt is the updatable encryption of Everspaugh, Paterson,
// Ristenpart and Scott, "Key Rotation for Authenticated Encryption" (CRYPTO
// 2017), called ReCrypt there: a key-homomorphic pseudorandom function from
// Diffie-Hellman, F(x, i) = x*H(i), in the group ristretto255 (RFC 9496).
//
// It is the slow baseline of the three: one scalar multiplication per 30 bytes
// in every operation. In return the number of updates has no bound and an
// updated ciphertext has exactly the distribution of a fresh one.
//
// Guarantees, in the paper's terms: confidentiality (ciphertexts of any age look
// alike even to a holder of tokens), unbounded updates, and integrity of the
// message in the weak sense: the storage must not re-encrypt what it was not
// asked to. Whoever can have chosen bodies re-encrypted under a token learns
// the difference of the keys from the answers, and can forge (ePrint 2020/222,
// section 5.4); a test shows the attack.
//
// Not constant time: how often the encoding of a block is retried depends on
// the message, so the time of an encryption shows a sum over all blocks of
// geometric variables that the message determines. Everything that touches a
// key is constant time.
package recrypt

import (
	"crypto/rand"
	"fmt"
	"math"
	"slices"

	"github.com/gtank/ristretto255"

	"github.com/seed-a893640b/tae/uae"
	"github.com/seed-a893640b/tae/uae/internal/frame"
)

const (
	// HeaderSize is the length of every header in bytes.
	HeaderSize = frame.Overhead + plainSize

	// TokenSize is the length of every token in bytes.
	TokenSize = frame.TokenOverhead + HeaderSize + partSize

	// BlockSize is the number of message bytes in one group element.
	BlockSize = 30

	// MaxMessage is the largest message in bytes, on machines with 64 bits.
	MaxMessage = 1 << 40

	limit = min(MaxMessage, math.MaxInt/2)

	shareSize = 32
	pointSize = 32
	plainSize = 32 + pointSize
	partSize  = 32 + 32
)

// A Scheme is ReCrypt. It has no parameters and holds no state.
type Scheme struct{}

var (
	_ uae.Scheme   = (*Scheme)(nil)
	_ uae.Streamer = (*Scheme)(nil)
)

// New returns the scheme.
func New() *Scheme { return new(Scheme) }

// KeyGen implements uae.Scheme.
func (*Scheme) KeyGen() uae.Key { return uae.NewKey(uae.ReCrypt, 0) }

// HeaderSize is the constant HeaderSize.
func (*Scheme) HeaderSize() int { return HeaderSize }

// CiphertextSize is the length in bytes of the ciphertext of n bytes, of any
// age: HeaderSize + 32 + 32 * ceil(n/30).
func (*Scheme) CiphertextSize(n int) int { return HeaderSize + bodySize(n) }

func bodySize(n int) int { return shareSize + pointSize*blocks(n) }

func blocks(n int) int { return (n + BlockSize - 1) / BlockSize }

// random is what Encrypt and ReKeyGen draw: the two shares of a key, or of a
// change of it, and a salt.
type random struct {
	x, y *ristretto255.Scalar
	salt [frame.SaltSize]byte
}

func draw() *random {
	var b [128 + frame.SaltSize]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	defer clear(b[:])
	return expand(&b)
}

func expand(b *[128 + frame.SaltSize]byte) *random {
	r := &random{
		x: ristretto255.NewScalar().FromUniformBytes(b[:64]),
		y: ristretto255.NewScalar().FromUniformBytes(b[64:128]),
	}
	copy(r.salt[:], b[128:])
	return r
}

// state is the secret content of a header: chi = x + y, where y is in the body,
// and tau = h(m) + F(x, 0). A key without the body gives neither x nor h(m).
type state struct {
	chi *ristretto255.Scalar
	tau *ristretto255.Element
}

func (st state) header(dst, key []byte, length uint64, salt *[frame.SaltSize]byte) []byte {
	var buf [plainSize]byte
	plain := st.tau.Encode(st.chi.Encode(buf[:0]))
	p := frame.Prefix{Scheme: uae.ReCrypt, Length: length}
	dst = frame.SealHeader(dst, key, salt, p, plain)
	clear(buf[:])
	return dst
}

func parse(header []byte) (frame.Prefix, error) {
	p, err := frame.ParsePrefix(header, HeaderSize, uae.ReCrypt, 0)
	if err == nil && p.Length > limit {
		err = fmt.Errorf("%w header: message length", uae.ErrFormat)
	}
	return p, err
}

func open(k uae.Key, header []byte) (state, frame.Prefix, error) {
	key, err := k.ExposeRoot(uae.ReCrypt, 0)
	if err != nil {
		return state{}, frame.Prefix{}, err
	}
	p, err := parse(header)
	if err != nil {
		return state{}, p, err
	}
	var buf [plainSize]byte
	plain, err := frame.OpenHeader(buf[:0], key, header)
	if err != nil {
		return state{}, p, err
	}
	st := state{ristretto255.NewScalar(), ristretto255.NewElement()}
	if st.chi.Decode(plain[:32]) != nil || st.tau.Decode(plain[32:]) != nil {
		return state{}, p, uae.ErrOpen // no honest owner makes such a header
	}
	clear(buf[:])
	return st, p, nil
}

// split parses a whole ciphertext and checks its length.
func split(ciphertext []byte) (header, body []byte, p frame.Prefix, err error) {
	header = ciphertext[:min(len(ciphertext), HeaderSize)]
	if p, err = parse(header); err != nil {
		return nil, nil, p, err
	}
	if len(ciphertext) != HeaderSize+bodySize(int(p.Length)) {
		return nil, nil, p, fmt.Errorf("%w ciphertext: length", uae.ErrFormat)
	}
	return header, ciphertext[HeaderSize:], p, nil
}

// Remaining implements uae.Scheme: it returns -1 for an authentic header.
func (*Scheme) Remaining(k uae.Key, header []byte) (int, error) {
	if _, _, err := open(k, header); err != nil {
		return 0, err
	}
	return -1, nil
}

// Encrypt implements uae.Scheme. It fails only for a foreign key or a message
// of more than MaxMessage bytes.
func (s *Scheme) Encrypt(dst []byte, k uae.Key, m, aad []byte) ([]byte, error) {
	return s.encrypt(dst, k, m, aad, draw())
}

func (s *Scheme) encrypt(dst []byte, k uae.Key, m, aad []byte, r *random) ([]byte, error) {
	key, err := k.ExposeRoot(uae.ReCrypt, 0)
	if err != nil {
		return nil, err
	}
	if uint64(len(m)) > limit {
		return nil, fmt.Errorf("uae/recrypt: message longer than %d bytes", uint64(limit))
	}
	at := len(dst)
	dst = slices.Grow(dst, s.CiphertextSize(len(m)))[:at+s.CiphertextSize(len(m))]
	body := dst[at+HeaderSize:]
	r.y.Encode(body[:0])
	encryptBlocks(body[shareSize:], m, r.x, 1)
	h := newMessageHash(aad)
	_, _ = h.Write(m)
	seal(h, r).header(dst[at:at], key, uint64(len(m)), &r.salt)
	return dst, nil
}

// ReKeyGen implements uae.Scheme. The token holds the new header and the change
// of either share.
func (s *Scheme) ReKeyGen(k1, k2 uae.Key, header []byte) ([]byte, error) {
	return s.reKeyGen(k1, k2, header, draw())
}

func (s *Scheme) reKeyGen(k1, k2 uae.Key, header []byte, r *random) ([]byte, error) {
	key2, err := k2.ExposeRoot(uae.ReCrypt, 0)
	if err != nil {
		return nil, err
	}
	st, p, err := open(k1, header)
	if err != nil {
		return nil, err
	}
	st.chi.Add(st.chi, r.x)
	st.chi.Add(st.chi, r.y)
	st.tau.Add(st.tau, prf(r.x, 0))
	var buf [HeaderSize]byte
	next := st.header(buf[:0], key2, p.Length, &r.salt)
	return frame.AppendToken(make([]byte, 0, TokenSize), header, next, func(b []byte) []byte {
		return r.y.Encode(r.x.Encode(b))
	}), nil
}

type token struct {
	frame.Token
	x, y *ristretto255.Scalar
}

func parseToken(b []byte) (token, error) {
	t, err := frame.ParseToken(b, HeaderSize, partSize, uae.ReCrypt, 0)
	if err != nil {
		return token{}, err
	}
	if _, err := parse(t.Header); err != nil {
		return token{}, err
	}
	out := token{t, ristretto255.NewScalar(), ristretto255.NewScalar()}
	if out.x.Decode(t.Part[:32]) != nil || out.y.Decode(t.Part[32:]) != nil {
		return token{}, fmt.Errorf("%w token: scalar", uae.ErrFormat)
	}
	return out, nil
}

// ReEncrypt implements uae.Scheme. It verifies the form of token and ciphertext,
// every group element included, and that they belong together. In place, an
// error about an element leaves the ciphertext partly updated and of no use.
func (s *Scheme) ReEncrypt(dst, tok, ciphertext []byte) ([]byte, error) {
	t, err := parseToken(tok)
	if err != nil {
		return nil, err
	}
	header, body, _, err := split(ciphertext)
	if err != nil {
		return nil, err
	}
	if err := t.Check(header); err != nil {
		return nil, err
	}
	at := len(dst)
	dst = slices.Grow(dst, len(ciphertext))[:at+len(ciphertext)]
	out := dst[at+HeaderSize:]
	if err := t.share(out, body); err != nil {
		return nil, err
	}
	if !updateBlocks(out[shareSize:], body[shareSize:], t.x, 1) {
		return nil, fmt.Errorf("%w body: not a group element", uae.ErrFormat)
	}
	copy(dst[at:], t.Header)
	return dst, nil
}

// share moves the share y at the start of a body.
func (t token) share(out, body []byte) error {
	y := ristretto255.NewScalar()
	if y.Decode(body[:shareSize]) != nil {
		return fmt.Errorf("%w body: not a scalar", uae.ErrFormat)
	}
	y.Add(y, t.y).Encode(out[:0])
	return nil
}

// Decrypt implements uae.Scheme.
func (s *Scheme) Decrypt(dst []byte, k uae.Key, ciphertext, aad []byte) ([]byte, error) {
	header, body, p, err := split(ciphertext)
	if err != nil {
		return nil, err
	}
	x := ristretto255.NewScalar()
	if x.Decode(body[:shareSize]) != nil {
		return nil, fmt.Errorf("%w body: not a scalar", uae.ErrFormat)
	}
	st, _, err := open(k, header)
	if err != nil {
		return nil, err
	}
	x.Subtract(st.chi, x)
	at, n := len(dst), int(p.Length)
	dst = slices.Grow(dst, BlockSize*blocks(n))
	m := dst[at : at+BlockSize*blocks(n)]
	elements, padding := decryptBlocks(m, body[shareSize:], x, n)
	h := newMessageHash(aad)
	_, _ = h.Write(m[:n])
	match := tag(h, x).Equal(st.tau) == 1
	if !elements {
		clear(m)
		return nil, fmt.Errorf("%w body: not a group element", uae.ErrFormat)
	}
	if !padding || !match {
		clear(m)
		return nil, uae.ErrOpen
	}
	return dst[:at+n], nil
}
