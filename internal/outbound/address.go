package outbound

import "net/netip"

// registry are the special-purpose blocks that are not globally reachable, or of
// which the registries do not say that they are (iana-ipv4-special-registry,
// iana-ipv6-special-registry), and multicast. Exceptions in a block are few and
// no servers: they are refused with it.
var registry = []struct {
	block netip.Prefix
	what  string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},                      // RFC 791
	{netip.MustParsePrefix("10.0.0.0/8"), "private use"},                      // RFC 1918
	{netip.MustParsePrefix("100.64.0.0/10"), "shared address space"},          // RFC 6598
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},                        // RFC 1122
	{netip.MustParsePrefix("169.254.0.0/16"), "link local"},                   // RFC 3927
	{netip.MustParsePrefix("172.16.0.0/12"), "private use"},                   // RFC 1918
	{netip.MustParsePrefix("192.0.0.0/24"), "protocol assignments"},           // RFC 6890
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},                  // RFC 5737
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relays"},                  // RFC 7526
	{netip.MustParsePrefix("192.168.0.0/16"), "private use"},                  // RFC 1918
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},                  // RFC 2544
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},               // RFC 5737
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},                // RFC 5737
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},                       // RFC 5771
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved, broadcast"},             // RFC 1112, RFC 919
	{netip.MustParsePrefix("::1/128"), "loopback"},                            // RFC 4291
	{netip.MustParsePrefix("fc00::/7"), "unique local"},                       // RFC 4193
	{netip.MustParsePrefix("fe80::/10"), "link local"},                        // RFC 4291
	{netip.MustParsePrefix("ff00::/8"), "multicast"},                          // RFC 4291
	{netip.MustParsePrefix("2001::/23"), "protocol assignments, Teredo"},      // RFC 2928, RFC 4380
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},                 // RFC 3849
	{netip.MustParsePrefix("2002::/16"), "6to4"},                              // RFC 3056, RFC 7526
	{netip.MustParsePrefix("3fff::/20"), "documentation"},                     // RFC 9637
	{netip.MustParsePrefix("64:ff9b:1::/48"), "translation within a network"}, // RFC 8215
	{netip.MustParsePrefix("100::/64"), "discard only"},                       // RFC 6666
	{netip.MustParsePrefix("5f00::/16"), "segment identifiers"},               // RFC 9602
	{netip.MustParsePrefix("fec0::/10"), "site local"},                        // RFC 3879
	{netip.MustParsePrefix("::/96"), "IPv4 compatible"},                       // RFC 4291
}

// global is all that IANA has given out as global unicast (RFC 4291, 2.4).
var global = netip.MustParsePrefix("2000::/3")

// nat64 is the well-known prefix behind which a translator reaches IPv4 (RFC
// 6052): in a network of IPv6 alone every public IPv4 server is there.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// unwrap is the address of IPv4 that one of IPv6 stands for (mapped, RFC 4291;
// behind a translator, RFC 6052), or the address itself.
func unwrap(addr netip.Addr) netip.Addr {
	addr = addr.Unmap()
	if nat64.Contains(addr) {
		b := addr.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return addr
}

// special says what an unwrapped address is for, where it is not globally
// reachable; "" where it is.
func special(addr netip.Addr) string {
	if !addr.IsValid() {
		return "no address"
	}
	for _, r := range registry {
		if r.block.Contains(addr) {
			return r.what
		}
	}
	if addr.Is6() && !global.Contains(addr) {
		return "not given out"
	}
	return ""
}
