package outbound

import (
	"fmt"
	"net/netip"
	"slices"
)

// allowance is what an operator allows beyond what everybody may reach.
type allowance struct {
	networks []netip.Prefix
	hosts    []string
}

// CheckAllow refuses a list that [New] would refuse as Options.Allow.
func CheckAllow(list []string) error {
	_, err := readAllow(list)
	return err
}

func readAllow(list []string) (*allowance, error) {
	a := &allowance{}
	for _, text := range list {
		if p, err := netip.ParsePrefix(text); err == nil {
			if p.Bits() == 0 {
				return nil, fmt.Errorf("allow: %q is everything", text)
			}
			if p.Addr().Is4In6() {
				return nil, fmt.Errorf("allow: write %q as a network of IPv4", text)
			}
			a.networks = append(a.networks, p.Masked())
			continue
		}
		if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
			addr = addr.Unmap()
			a.networks = append(a.networks, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		host, err := hostName(text)
		if err != nil {
			return nil, fmt.Errorf("allow: %q is no network, address or host name", text)
		}
		a.hosts = append(a.hosts, host)
	}
	return a, nil
}

func (a *allowance) host(host string) bool { return slices.Contains(a.hosts, host) }

// mayConnect is the rule: may this address be connected to, for a host that was
// named (empty for an address that was named itself)?
func (a *allowance) mayConnect(host string, addr netip.Addr, port string, plain bool) error {
	if addr.Zone() != "" {
		return fmt.Errorf("%w: %s has a zone", ErrRefused, addr)
	}
	inner := unwrap(addr)
	for _, p := range a.networks {
		if p.Contains(inner) || p.Contains(addr) {
			return nil
		}
	}
	named := host != "" && a.host(host)
	switch what := special(inner); {
	case what == "":
	case named && !inner.IsLinkLocalUnicast() && !inner.IsMulticast() && !inner.IsUnspecified():
	case host == "":
		return fmt.Errorf("%w: %s is not reachable from everywhere (%s)", ErrRefused, addr, what)
	default:
		return fmt.Errorf("%w: %s is at %s, which is not reachable from everywhere (%s)", ErrRefused, host, addr, what)
	}
	if named {
		return nil
	}
	if host == "" {
		host = addr.String()
	}
	return mayUse(host, port, plain)
}

// mayUse refuses what needs to be allowed by name or network.
func mayUse(host, port string, plain bool) error {
	if plain {
		return fmt.Errorf("%w: http to %s without TLS is not allowed", ErrRefused, host)
	}
	if port != "443" && port != "80" {
		return fmt.Errorf("%w: port %s of %s is not allowed", ErrRefused, port, host)
	}
	return nil
}
