package p2p

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
)

func (l *link) fail(kind error, addr string, detail error) *Error {
	return &Error{Node: l.peer.Index, Name: l.peer.Name, Addr: addr, Kind: kind, Detail: detail}
}

// dialError turns libp2p's account of a failed dial into one line about one node.
func (l *link) dialError(err error) *Error {
	var dial *swarm.DialError
	if errors.Is(err, swarm.ErrNoGoodAddresses) {
		err = errors.New("no address of it resolves")
	}
	if !errors.As(err, &dial) || len(dial.DialErrors) == 0 {
		return l.fail(ErrUnreachable, strings.Join(l.peer.Addrs, ", "), err)
	}
	var causes []string
	for i := range dial.DialErrors {
		te := &dial.DialErrors[i]
		if id, ok := presented(te.Cause); ok {
			return l.fail(ErrIdentity, te.Address.String(),
				fmt.Errorf("presented identity %s, configuration says %s", identity(id), identity(l.id)))
		}
		causes = append(causes, te.Cause.Error())
	}
	addr := dial.DialErrors[0].Address.String()
	if len(causes) == 1 {
		return l.fail(ErrUnreachable, addr, dial.DialErrors[0].Cause)
	}
	return l.fail(ErrUnreachable, strings.Join(l.peer.Addrs, ", "), errors.New(strings.Join(causes, "; ")))
}

// presented returns the identity that a peer proved instead of the expected one.
func presented(err error) (peer.ID, bool) {
	var mismatch sec.ErrPeerIDMismatch
	if errors.As(err, &mismatch) {
		return mismatch.Actual, true
	}
	return "", false
}

// openError explains a stream that failed right after the handshake. The side
// that accepts checks the key after the dialler's handshake is complete, so that
// its refusal arrives as a connection that ends.
func (l *link) openError(addr string, err error) *Error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, network.ErrReset) || errors.Is(err, syscall.ECONNRESET) {
		return l.fail(ErrRefused, addr, fmt.Errorf("%w after the handshake: either this host's key, %s, is not in its configuration, or it has as many connections of this key as it allows (%v)",
			ErrUnreachable, identity(l.host.swarm.LocalPeer()), err))
	}
	return l.fail(ErrUnreachable, addr, err)
}

// identity writes a peer's Ed25519 public key in hex, as configuration files do.
func identity(id peer.ID) string {
	key, err := rawKey(id)
	if err != nil {
		return id.String()
	}
	return hex.EncodeToString(key[:])
}
