package sig

import (
	"crypto/ed25519"
	"encoding/hex"
	"testing"
)

func TestSignVerify(t *testing.T) {
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	other, _, _ := ed25519.GenerateKey(nil)
	d := [32]byte{1}
	s := Sign(key, "a", d)
	if !Verify(pub, "a", d, s[:]) {
		t.Error("good signature refused")
	}
	if Verify(pub, "b", d, s[:]) || Verify(pub, "a", [32]byte{2}, s[:]) || Verify(other, "a", d, s[:]) || Verify(pub, "a", d, s[:63]) || Verify(pub[:31], "a", d, s[:]) {
		t.Error("label, digest, key or length is not bound")
	}
}

// The eight points of small order and a non-canonical encoding (y = p+1 is 1).
func TestBadPublicKeysAreRefused(t *testing.T) {
	for _, h := range []string{
		"0100000000000000000000000000000000000000000000000000000000000000",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0000000000000000000000000000000000000000000000000000000000000080",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"0200000000000000000000000000000000000000000000000000000000000000",
	} {
		key, _ := hex.DecodeString(h)
		if CheckPublicKey(key) == nil {
			t.Errorf("%s accepted", h)
		}
	}
}
