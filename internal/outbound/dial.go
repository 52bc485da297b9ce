package outbound

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// dialer connects for one scheme.
type dialer struct {
	allowed  *allowance
	plain    bool
	timeout  time.Duration
	resolver *net.Resolver
}

// dial connects to what a name stands for. Each address is checked when it is
// connected to, not when it is looked up: between the two a name can change.
func (d dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if host, err = hostName(host); err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		host = ""
	}
	n := net.Dialer{Timeout: d.timeout, Resolver: d.resolver,
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			return d.mayConnect(host, network, address)
		}}
	return n.DialContext(ctx, network, address)
}

func (d dialer) mayConnect(host, network, address string) error {
	if network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%w: network %s", ErrRefused, network)
	}
	ip, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return d.allowed.mayConnect(host, addr, port, d.plain)
}
