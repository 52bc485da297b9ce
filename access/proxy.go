package access

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the addresses of proxies in front of the server, whose forwarded
// headers count. The zero value trusts nobody.
type Proxies []netip.Prefix

// Addr returns the address of who sends r: the peer's, or where that is a
// trusted proxy, the last address of X-Forwarded-For that is none. What cannot
// be read is the zero Addr, which is an address like any other for [Limiter].
func (p Proxies) Addr(r *http.Request) netip.Addr {
	addr := peer(r)
	if !p.trusts(addr) {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		hop = strings.TrimSpace(hop)
		if hop == "" {
			continue
		}
		next, err := parseAddr(hop)
		if err != nil {
			return addr // the last one that is known
		}
		addr = next
		if !p.trusts(addr) {
			return addr
		}
	}
	return addr
}

// TLS reports whether who sends r speaks TLS, with us or with a trusted proxy
// that says so in X-Forwarded-Proto.
func (p Proxies) TLS(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	proto := r.Header.Values("X-Forwarded-Proto")
	return len(proto) == 1 && strings.EqualFold(strings.TrimSpace(proto[0]), "https") && p.trusts(peer(r))
}

func (p Proxies) trusts(addr netip.Addr) bool {
	return addr.IsValid() && slices.ContainsFunc(p, func(n netip.Prefix) bool { return n.Contains(addr) })
}

func peer(r *http.Request) netip.Addr {
	addr, err := parseAddr(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return addr
}

// parseAddr reads an address, with or without a port, as one of IPv4 where it
// maps one.
func parseAddr(s string) (netip.Addr, error) {
	if with, err := netip.ParseAddrPort(s); err == nil {
		return with.Addr().Unmap().WithZone(""), nil
	}
	addr, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return addr.Unmap().WithZone(""), err
}
