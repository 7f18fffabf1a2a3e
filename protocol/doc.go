// Package protocol is the threshold authenticated encryption itself, without a
// network, a clock or a goroutine: the formats of objects, requests, answers and
// certificates, what a node answers (Server), and what a client makes of the
// answers (Encryption, Decryption).
//
//	client                                   node i of the quorum Q
//	  draw b, rho; body C; w
//	  -- encrypt: Q, c_1..c_n, s_i, w's  -->   check c_i; x = H(keyset, j, R, w)
//	  <-- masks of "dec" and tags of x   --    for the keys assigned to i
//	  e = (rho, born) XOR all masks
//
//	  -- decrypt: Q, (id, tags)'s        -->   verify every tag that i can
//	  <-- masks of "dec" of id           --
//	  rho, born; open C; recompute w, x, id and compare
//
// docs/spec.md fixes every byte; section numbers in comments are its own.
//
// Constant time: comparisons of tags, commitments and identities. Not constant
// time: anything that depends only on lengths, headers and public structure.
package protocol
