package protocol

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"

	"github.com/seed-a893640b/tae/internal/labelhash"
)

const (
	labelSeedOpenings = "tae/v1/seed/openings"
	labelSeedMessages = "tae/v1/seed/messages"
	labelSeedStream   = "tae/v1/seed/stream"
)

// An Author is the client on whose behalf objects are encrypted.
type Author struct {
	Key ClientKey
	// KeyHash is a hash of the client's private key where that is readable, else
	// zero. It hedges against a broken random number generator (section 8.2).
	KeyHash [32]byte
	// Counter differs for every request of one process.
	Counter uint64
}

// seed starts a hedged seed: with good system randomness it is uniform, and with a
// bad one two requests still get different secrets as long as anything in them
// differs.
func (a *Author) seed(label string) labelhash.Hash {
	var system [32]byte
	defer clear(system[:])
	_, _ = rand.Read(system[:]) // never fails: crypto/rand stops the program instead
	return labelhash.New(label).Fixed(system[:]).Fixed(a.KeyHash[:]).Fixed(a.Key[:]).Uint64(a.Counter)
}

func seedStream(seed *[32]byte) cipher.Stream {
	block, err := aes.NewCipher(seed[:])
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return cipher.NewCTR(block, make([]byte, aes.BlockSize))
}

// expand fills the secrets with the AES-256-CTR keystream of the seed.
func expand(seed *[32]byte, secrets []Rho) {
	ctr := seedStream(seed)
	for i := range secrets {
		clear(secrets[i][:])
		ctr.XORKeyStream(secrets[i][:], secrets[i][:])
	}
}
