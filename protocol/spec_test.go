package protocol

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
)

// What follows is the scheme written a second time from docs/spec.md alone, with
// nothing of this package or of dprf in it: the vectors are checked against it, and
// games use it as the party that knows all keys.

func refH(label string, fields ...[]byte) [32]byte {
	in := append([]byte{byte(len(label))}, label...)
	return sha256.Sum256(append(in, bytes.Join(fields, nil)...))
}

func refU16(v int) []byte    { return binary.BigEndian.AppendUint16(nil, uint16(v)) }
func refU32(v int) []byte    { return binary.BigEndian.AppendUint32(nil, uint32(v)) }
func refU64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }
func refVar(x []byte) []byte { return append(refU64(uint64(len(x))), x...) }

func refXOR(a, b []byte) []byte {
	out := bytes.Clone(a)
	for i := range out {
		out[i] ^= b[i]
	}
	return out
}

// refSets lists the sets D of n-t+1 nodes in lexicographic order.
func refSets(n, t int) (sets [][]int) {
	var grow func(set []int, from int)
	grow = func(set []int, from int) {
		if len(set) == n-t+1 {
			sets = append(sets, slices.Clone(set))
			return
		}
		for i := from; i <= n; i++ {
			grow(append(set, i), i+1)
		}
	}
	grow(nil, 1)
	return sets
}

// refAssign is the rule of section 4.1; it returns the node per key.
func refAssign(sets [][]int, q []int) []int {
	inQ := func(d []int) (in []int) {
		for _, i := range d {
			if slices.Contains(q, i) {
				in = append(in, i)
			}
		}
		return in
	}
	order := make([]int, len(sets))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(inQ(sets[a])) - len(inQ(sets[b])) })
	owner, load := make([]int, len(sets)), map[int]int{}
	for _, k := range order {
		in := inQ(sets[k])
		owner[k] = slices.MinFunc(in, func(a, b int) int { return load[a] - load[b] })
		load[owner[k]]++
	}
	return owner
}

func refDerive(key []byte, label string) []byte {
	out, err := hkdf.Key(sha256.New, key, nil, label, 32)
	if err != nil {
		panic(err)
	}
	return out
}

// refM is CBC-MAC over B(kind, slot, counter) and the two halves of x.
func refM(key []byte, kind, slot, counter int, x []byte) []byte {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	in := slices.Concat([]byte{byte(kind)}, refU16(slot), refU32(counter), make([]byte, 9), x)
	state := make([]byte, 16)
	for len(in) > 0 {
		state = refXOR(state, in[:16])
		block.Encrypt(state, state)
		in = in[16:]
	}
	return state
}

func refMask(key, x []byte) []byte {
	mask := refDerive(key, "tae/v1/dprf/mask")
	return append(refM(mask, 1, 0, 0, x), refM(mask, 1, 0, 1, x)...)
}

func refTag(key []byte, mode int, x []byte) []byte {
	return refM(refDerive(key, "tae/v1/dprf/tag"), mode, 0, 0, x)
}

// refF is the XOR over all keys.
func refF(keys [][]byte, x []byte) []byte {
	sum := make([]byte, 32)
	for _, k := range keys {
		sum = refXOR(sum, refMask(k, x))
	}
	return sum
}

func refTags(keys [][]byte, mode int, x []byte) (all []byte) {
	for _, k := range keys {
		all = append(all, refTag(k, mode, x)...)
	}
	return all
}

func refOpenings(b []byte, n int) (s, c [][]byte, r []byte) {
	for k := 1; k <= n; k++ {
		sk := refH("tae/v1/open-secret", b, []byte{byte(k)})
		ck := refH("tae/v1/open", []byte{byte(k)}, sk[:])
		s, c = append(s, sk[:]), append(c, ck[:])
	}
	rh := refH("tae/v1/openings", []byte{byte(n)}, bytes.Join(c, nil))
	return s, c, rh[:]
}

func refCTR(key []byte, n int) []byte {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	out := make([]byte, n)
	cipher.NewCTR(block, make([]byte, 16)).XORKeyStream(out, out)
	return out
}

// refKeystream is the keystream of a message's body of n bytes.
func refKeystream(rho []byte, n int) []byte {
	if n > 128 {
		key := refH("tae/v1/body-key", rho)
		return refCTR(key[:], n)
	}
	var out []byte
	for i := 0; len(out) < n; i++ {
		pad := refH("tae/v1/pad", rho, refU32(i))
		out = append(out, pad[:]...)
	}
	return out[:n]
}

// refRules are rules of the reader and of identities that controls switch off: each
// field removes one.
type refRules struct {
	noJ, noR, noKeyset          bool // left out of the session's context
	noAAD, noParams             bool // left out of the commitment
	noBody                      bool // the body left out of the commitment
	noBorn, noTags, noSignature bool // not checked by a reader
	noX0                        bool // not compared by a reader
}

// refSession names what an identity is made from.
type refSession struct {
	keyset []byte
	suite  int
	j, r   []byte
}

func (s *refSession) context() []byte { return s.contextWith(refRules{}) }

func (s refSession) contextWith(rules refRules) []byte {
	if rules.noJ {
		s.j = make([]byte, 32)
	}
	if rules.noR {
		s.r = make([]byte, 32)
	}
	if rules.noKeyset {
		s.keyset = make([]byte, 16)
	}
	h := refH("tae/v1/session", s.keyset, []byte{byte(s.suite)}, s.j, s.r)
	return h[:]
}

func refAD(params, aad []byte) []byte {
	h := refH("tae/v1/aad", params, refVar(aad))
	return h[:]
}

func refW(rho []byte, born int, hb, ad []byte) []byte {
	h := refH("tae/v1/fresh", rho, refU16(born), hb, ad)
	return h[:]
}

func refX(ctx, w []byte) []byte {
	h := refH("tae/v1/enc", ctx, w)
	return h[:]
}

var errRef = errors.New("does not verify")

// refCommit is w for a given body hash.
func refCommit(rules refRules, rho []byte, born int, hb, params, aad []byte) []byte {
	if rules.noAAD {
		aad = nil
	}
	if rules.noParams {
		params = make([]byte, 30)
	}
	if rules.noBody {
		hb = make([]byte, 32)
	}
	return refW(rho, born, hb, refAD(params, aad))
}

func refOpen(keys [][]byte, object, aad []byte) (m, j []byte, err error) {
	return refOpenWith(refRules{}, keys, object, aad)
}

// refOpenWith decrypts an object with all keys of its epoch: the whole reader of
// sections 6.3 and 7. The header's form is taken to be right.
func refOpenWith(rules refRules, keys [][]byte, object, aad []byte) (m, j []byte, err error) {
	params, rest := object[:30], object[30:]
	epoch, x0, flag, src, idSrc := binary.BigEndian.Uint16(rest), rest[2:34], rest[34], rest[35:37], rest[37:69]
	count := int(binary.BigEndian.Uint16(rest[69:]))
	tags, rest := rest[71:71+16*count], rest[71+16*count:]
	maskedValue, body := rest[:32], rest[32:]
	id := x0
	if flag == 1 {
		h := refH("tae/v1/moved", params[14:30], params[9:10], x0, src, idSrc)
		id = h[:]
	}
	if !rules.noTags && !bytes.Equal(tags, refTags(keys, int(params[10]), id)) {
		return nil, nil, errRef
	}
	secret := refXOR(maskedValue, refF(keys, id))
	rho, born := secret[:30], binary.BigEndian.Uint16(secret[30:])
	check := func(j, r, hb []byte) bool {
		ctx := refSession{params[14:30], int(params[9]), j, r}.contextWith(rules)
		fresh := rules.noBorn || flag == 0 && born == epoch || flag == 1 && born >= 1 && born <= binary.BigEndian.Uint16(src)
		return fresh && (rules.noX0 || bytes.Equal(x0, refX(ctx, refCommit(rules, rho, int(born), hb, params, aad))))
	}
	if Kind(params[11]) == KindMessage {
		p := refXOR(body, refKeystream(rho, len(body)))
		hb := refH("tae/v1/body", body)
		if !check(p[:32], p[32:64], hb[:]) {
			return nil, nil, errRef
		}
		return p[64:], p[:32], nil
	}
	return refOpenStream(rules, Kind(params[11]), rho, x0, body, check)
}

func refOpenStream(rules refRules, kind Kind, rho, x0, body []byte, check func(j, r, hb []byte) bool) (m, j []byte, err error) {
	commitment := refH("tae/v1/commit", rho)
	if !bytes.Equal(commitment[:], body[:32]) {
		return nil, nil, errRef
	}
	key := refH("tae/v1/stream-key", rho)
	block, _ := aes.NewCipher(key[:])
	gcm, _ := cipher.NewGCM(block)
	lastMin := 16 + 1
	if kind == KindPipe {
		lastMin = 16 + 64
	}
	var stream, last []byte
	chunks, before := body[32:], body[:32]
	for n := uint64(0); ; n++ {
		final := len(chunks) < 65536+16+lastMin
		size := 65536 + 16
		if final {
			size = len(chunks)
		}
		nonce := slices.Concat(make([]byte, 3), refU64(n), []byte{0})
		if final {
			nonce[11] = 1
		}
		p, err := gcm.Open(nil, nonce, chunks[:size], nil)
		if err != nil {
			return nil, nil, errRef
		}
		if final {
			last = p
			break
		}
		stream = append(stream, p...)
		chunks = chunks[size:]
		before = body[:len(before)+size]
	}
	hb := refH("tae/v1/body", body)
	if kind == KindPipe {
		hb = refH("tae/v1/pipe", commitment[:])
		end := len(last) - 64
		bodyHash, restHash := refH("tae/v1/pipe-body", before), refH("tae/v1/pipe-rest", last[:end])
		digest := refH("tae/v1/pipe-end", x0, bodyHash[:], restHash[:])
		stream = append(stream, last[:end]...)
		message := slices.Concat([]byte("\x0ftae/v1/pipe-end"), digest[:])
		if !rules.noSignature && !ed25519.Verify(stream[:32], message, last[end:]) {
			return nil, nil, errRef
		}
	} else {
		stream = append(stream, last...)
	}
	if !check(stream[:32], stream[32:64], hb[:]) {
		return nil, nil, errRef
	}
	return stream[64:], stream[:32], nil
}
