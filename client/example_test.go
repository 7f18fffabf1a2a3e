package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/seed-a893640b/tae/client"
)

func Example() {
	ctx := context.Background()
	c, err := client.Open(ctx, client.WithConfigFile("client.yaml"))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	orders := c.Keyset("orders")
	object, err := orders.Encrypt(ctx, []byte("4 pallets to Lyon"), []byte("order 1234"))
	if err != nil {
		log.Fatal(err)
	}
	plaintext, err := orders.Decrypt(ctx, object, []byte("order 1234"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", plaintext)
}

// A batch is one round trip; each item has a result of its own.
func ExampleKeyset_EncryptBatch() {
	ctx := context.Background()
	c, err := client.Open(ctx, client.WithConfigFile("client.yaml"))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	results, err := c.Keyset("orders").EncryptBatch(ctx, []client.Item{{Data: []byte("first")}, {Data: []byte("second"), AAD: []byte("row 2")}})
	if err != nil {
		log.Fatal(err) // the whole batch failed, for example for want of a quorum
	}
	for i, r := range results {
		fmt.Println(i, len(r.Data), r.Err)
	}
}

// What a stream releases counts only when it ends with io.EOF.
func ExampleKeyset_DecryptReader() {
	ctx := context.Background()
	c, err := client.Open(ctx, client.WithConfigFile("client.yaml"))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	in, err := os.Open("backup.tae")
	if err != nil {
		log.Fatal(err)
	}
	defer in.Close()
	r, err := c.Keyset("backups").DecryptReader(ctx, in, nil)
	if err != nil {
		log.Fatal(err)
	}
	out, err := os.CreateTemp("", "backup")
	if err != nil {
		log.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, r); err != nil {
		os.Remove(out.Name()) // cut off or altered: nothing of it may be used
		log.Fatal(err)
	}
}

// Errors say what kind they are, whether to try again, and what each node said.
func ExampleRetryable() {
	ctx := context.Background()
	c, err := client.Open(ctx, client.WithConfigFile("client.yaml"))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	_, err = c.Keyset("orders").Decrypt(ctx, []byte("..."), nil)
	var quorum *client.QuorumError
	switch {
	case errors.Is(err, client.ErrAuthentication):
		fmt.Println("altered, or other associated data")
	case errors.As(err, &quorum):
		for _, node := range quorum.Nodes {
			fmt.Println(node.Name, node.Err)
		}
	}
	fmt.Println("try again:", client.Retryable(err))
}
