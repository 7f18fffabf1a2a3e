// Package client is the SDK: it encrypts and decrypts through a quorum of nodes.
// No node sees a plaintext or learns a key, and any t of the n nodes can serve an
// operation.
//
//	c, err := client.Open(ctx, client.WithConfigFile("client.yaml"))
//	defer c.Close()
//	k := c.Keyset("default")
//	ct, err := k.Encrypt(ctx, plaintext, aad)
//	pt, err := k.Decrypt(ctx, ct, aad)
//
// Messages of at most MaxMessage bytes go through Encrypt and Decrypt, many at once
// through EncryptBatch and DecryptBatch in one round trip, and data of any length
// through EncryptFile, EncryptWriter and DecryptReader in constant memory.
//
// Guarantees. Decryption returns the plaintext that was encrypted with the same
// associated data, or an error; never both. A node that lies can make an operation
// fail, never return a wrong plaintext. Every failure lists what each node said.
//
// Non-guarantees. The length of a message is not hidden. A stream releases chunks
// before its end is verified: what DecryptReader released is to be thrown away
// unless it ends with io.EOF. t colluding nodes and a client that may decrypt can
// read everything that the client may.
package client
