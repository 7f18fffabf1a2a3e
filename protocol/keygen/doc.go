// Package keygen makes the keys of an epoch without a dealer (docs/spec.md
// section 10). It is one member's side of it, as a state machine without I/O or
// clock: the caller carries statements and reveals between members, and stores
// the state when told to.
//
//	proposer   proposal: the terms, signed
//	member i   commit:   a commitment to a random contribution for every key it will hold
//	           -- all n commits in hand, the same for both sides --
//	member i   reveal:   its contributions to the keys shared with j, to j only
//	member i   check:    a key-check value per key
//	           -- all checks in hand and equal; keys stored --
//	member i   certify:  its signature on the epoch certificate
//	           -- all n signatures: the certificate is complete, the epoch active --
//
// An attempt ends with the complete certificate or with the abandon statements of
// all members. Who holds the certificate never signs abandon; who signed abandon
// never accepts that certificate and never certifies. So two attempts at one epoch
// can never both end in keys.
package keygen
