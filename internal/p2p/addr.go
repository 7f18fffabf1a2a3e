package p2p

import (
	"fmt"

	ma "github.com/multiformats/go-multiaddr"
)

// CheckAddrs checks that addresses are multiaddrs without an identity, and that one of
// them is of a transport in use, so that a mistake shows before a host starts.
func CheckAddrs(addrs []string, useQUIC bool) error {
	usable := false
	for _, a := range addrs {
		m, err := ma.NewMultiaddr(a)
		if err != nil {
			return fmt.Errorf("%w: address %q is not a multiaddr such as /dns4/n1.example/tcp/7700: %w", ErrConfig, a, err)
		}
		if _, err := m.ValueForProtocol(ma.P_P2P); err == nil {
			return fmt.Errorf("%w: address %q must not contain /p2p", ErrConfig, a)
		}
		_, last := ma.SplitLast(m)
		usable = usable || last.Code() == ma.P_TCP || last.Code() == ma.P_QUIC_V1 && useQUIC
	}
	if !usable {
		return fmt.Errorf("%w: no address of a transport in use: /tcp/PORT, or /udp/PORT/quic-v1 with quic: true", ErrConfig)
	}
	return nil
}
