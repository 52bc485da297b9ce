package access

import "net/netip"

// Network is a class of addresses: how far from the server somebody sat. The
// address itself is nobody's business afterwards, and is not kept.
type Network string

// The networks. An address that cannot be read is none of them: the zero value.
const (
	Loopback Network = "loopback" // the server's own machine
	Private  Network = "private"  // RFC 1918 and 4193, and link-local addresses
	Public   Network = "public"   // any other
)

func networkOf(addr netip.Addr) Network {
	switch {
	case !addr.IsValid():
		return ""
	case addr.IsLoopback():
		return Loopback
	case addr.IsPrivate(), addr.IsLinkLocalUnicast():
		return Private
	}
	return Public
}

// Channel is [ringi.Decision.Channel] for what w decides over a channel of that
// name: "inbox:private" from a private network.
func (w Who) Channel(name string) string {
	if w.Network == "" {
		return name
	}
	return name + ":" + string(w.Network)
}
