package labelhash

import (
	"crypto/sha256"
	"testing"
)

func TestEncoding(t *testing.T) {
	got := New("ab").Byte(1).Uint16(2).Uint32(3).Var([]byte("xyz")).Fixed([]byte{9}).Sum()
	want := sha256.Sum256([]byte("\x02ab\x01\x00\x02\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x03xyz\x09"))
	if got != want {
		t.Errorf("got %x want %x", got, want)
	}
}

func TestFieldsDoNotRunTogether(t *testing.T) {
	if New("l").Var([]byte("ab")).Var([]byte("c")).Sum() == New("l").Var([]byte("a")).Var([]byte("bc")).Sum() {
		t.Error("two splits of the same bytes hash alike")
	}
	if New("l").Var([]byte("a")).Sum() == New("la").Sum() {
		t.Error("label and field run together")
	}
}
