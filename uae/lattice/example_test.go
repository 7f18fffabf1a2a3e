package lattice_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/seed-a893640b/tae/uae/lattice"
)

func Example() {
	scheme, err := lattice.New(lattice.R60)
	if err != nil {
		panic(err)
	}
	oldKey, newKey := scheme.KeyGen(), scheme.KeyGen()

	// Encryption and update also work on streams, the header apart.
	var body, newBody bytes.Buffer
	header, err := scheme.EncryptStream(&body, oldKey, strings.NewReader("total: 12"), nil)
	if err != nil {
		panic(err)
	}
	token, err := scheme.ReKeyGen(oldKey, newKey, header)
	if err != nil {
		panic(err)
	}
	newHeader, err := scheme.ReEncryptStream(&newBody, token, header, &body)
	if err != nil {
		panic(err)
	}

	stored := append(newHeader, newBody.Bytes()...)
	message, err := scheme.Decrypt(nil, newKey, stored, nil)
	left, _ := scheme.Remaining(newKey, newHeader)
	fmt.Printf("%s, %v, %d updates left\n", message, err, left)
	// Output: total: 12, <nil>, 999 updates left
}
