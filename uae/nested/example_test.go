package nested_test

import (
	"fmt"

	"github.com/seed-a893640b/tae/uae/nested"
)

func Example() {
	scheme, err := nested.New(20) // at most 20 updates of each ciphertext
	if err != nil {
		panic(err)
	}
	oldKey, newKey := scheme.KeyGen(), scheme.KeyGen()
	aad := []byte("invoice 7")

	stored, err := scheme.Encrypt(nil, oldKey, []byte("total: 12"), aad)
	if err != nil {
		panic(err)
	}

	// The owner needs the header only, the storage needs no key.
	token, err := scheme.ReKeyGen(oldKey, newKey, stored[:scheme.HeaderSize()])
	if err != nil {
		panic(err)
	}
	if stored, err = scheme.ReEncrypt(stored[:0], token, stored); err != nil {
		panic(err)
	}

	message, err := scheme.Decrypt(nil, newKey, stored, aad)
	fmt.Printf("%s, %v\n", message, err)
	_, err = scheme.Decrypt(nil, oldKey, stored, aad)
	fmt.Println(err)
	// Output:
	// total: 12, <nil>
	// uae: cannot open ciphertext
}
