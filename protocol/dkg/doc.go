// Package dkg makes the two distributed keys of a public-key keyset's epoch without
// a dealer: a secret of ristretto255 and one of BLS12-381 with its public key in G2.
// It is one member's side, a state machine without I/O, clock or randomness of its
// own. It also shares the keys again, among the same or other members (NewReshare),
// and repairs a lost share (Repair).
//
// It runs kyber's Pedersen key generation, whose deals, responses and justifications
// travel as payloads of statements that their senders sign with their node keys and
// that everybody sees:
//
//	PhaseKeys            a fresh key pair per group, for this ceremony only, and the
//	                     hash of the dealer's two public polynomials
//	PhaseDeals           the dealer's public polynomials and a sealed share for every
//	                     receiver
//	PhaseResponses       per dealer and group an approval or a complaint
//	PhaseJustifications  from dealers about whom a member complains: the secrets that
//	                     open the seals in question
//
// All dealers must deal: nobody is left out silently. A run ends in a Result or in a
// Fault, which names the member that is proven to have lied, or nobody where the
// members may have been shown different things. The hash in the first phase fixes
// every polynomial before any is seen: nobody chooses its own to steer the key.
//
// A complaint always ends the run, with a name. The dealer opens its seal with the
// secret of the ephemeral key, and everybody sees what the receiver saw: a bad share
// names the dealer and a good one the receiver, and so does a dealer that cannot open
// its own seal. An honest dealer thereby shows a share only to those whom a dishonest
// receiver would show it anyway. The dealer opens, not the receiver: a receiver that
// proved its complaint with the point that opens the seal could be made to open
// another dealer's seal, whose ephemeral key the liar had copied.
//
// # What is not left to kyber
//
// kyber takes the threshold from the deal and approves it whatever the number of
// coefficients: with a longer polynomial t shares do not reconstruct. Key generation then
// fails without a name, and a reshare panics on a shorter one. It verifies a
// justification against the polynomial that the justification itself brings, does not
// verify its signature, and goes on with the share of the bad deal. It panics on a
// nonce of another length and on a deal without a share. So everything is checked here
// before kyber sees it: polynomials are public and have t coefficients, and a sealed
// share must decrypt to exactly the bytes that kyber's dealer would have sealed for
// these coefficients. kyber never sees a complaint. Its responses are not sent: an
// approval is under the signature of the payload, which names by digest all that it
// approves. The public polynomials are computed a second time and compared.
//
// # Encodings
//
// Integers are big endian. Every payload starts with a header
//
//	u8 version = 1 | u8 phase | session 32 | u8 sender
//
// and has exactly one encoding. G is ristretto255 (scalar 32 bytes, point 32, Schnorr
// signature 64), then BLS12-381 G2 (32, 96, 128). Points and scalars are canonical,
// points in the subgroup. "seen" is the list of the digests
// H("tae/v1/dkg/payload"; [payload]) of the payloads of the phase before, in the order
// of their senders: of all members (keys), of all dealers (deals), of all receivers
// (responses).
//
//	keys            = header | for both G: ( key | signature ) | commitment 32
//	deals           = header | seen | for both G: ( u8 t | t times coefficient |
//	                  per receiver: ( ephemeral key | signature | sealed | signature ) )
//	responses       = header | seen | per dealer, for both G: u8 1 approval, 0 complaint
//	justifications  = header | seen | u16 count | count times ( u8 G | u8 receiver | secret 32 )
//	public          = u8 version = 1 | u8 t | t times 32 | t times 96
//
// A Schnorr signature is R || z with z = r + x h, h the SHA-512 of (R, key, message), as an
// integer in the group's byte order, modulo the group order. That of a key is under that
// key on H("tae/v1/dkg/group-key"; u8 G, session 32, u8 sender). The commitment of a
// dealer is H("tae/v1/dkg/commitment"; session 32, u8 sender, u8 t, coefficients of both
// G), that of others is zero.
//
// A sealed share is kyber's deal. The first signature of the dealer is on the ephemeral key E,
// the second on its index from 0 (in a reshare the old one; u32, little endian) and sealed.
// sealed is AES-256-GCM with a zero nonce of
//
//	0a 20 | session of kyber 32 | 12 24 08 | u8 2(receiver - 1) | 12 20 | share 32 |
//	18 | u8 t | t times ( 22 | u8 length | coefficient )
//
// where the session of kyber is the SHA-256 of (dealer's key, all receivers' keys,
// coefficients, u32 t in little endian), c is the SHA-256 of ("vss-dealer", dealer's key,
// "vss-verifiers", all receivers' keys), c is the additional data, and the key is 32
// bytes of HKDF-SHA256 of the point x E, for the receiver's secret x, with no salt and c
// as info.
//
// In a fresh key generation a dealer seals nothing for itself and does not respond to
// itself; in a reshare it does both when it stays. Justifications are in ascending order
// of (G, receiver); the secret is e with E = e times the generator.
package dkg
