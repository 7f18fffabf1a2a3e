// Package dprf holds the distributed pseudorandom functions that the cluster
// evaluates. The replicated symmetric one (suite TAE1, docs/spec.md section 4) is
// that of Naor, Pinkas and Reingold (EUROCRYPT 1999) as used by DiSE (Agrawal,
// Mohassel, Mukherjee, Rindal, CCS 2018) and ParaDiSE (INDOCRYPT 2022): for every
// set D of n-t+1 nodes there is one key, held by exactly its members, and
//
//	F(x) = XOR over all D of PRF(k_D, x).
//
// Any t nodes hold all keys; t-1 nodes miss the key of their complement.
//
// Evaluation is constant time where the processor has AES instructions; without
// them Go's AES uses tables and is not. Layouts, sets and assignments are public.
// The package does no I/O and starts no goroutine.
package dprf
