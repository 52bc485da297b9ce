package outbound

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// zone is a name server (RFC 1035) of A records, whose names may change at any
// moment.
type zone struct {
	mu    sync.Mutex
	addrs map[string][]netip.Addr
	conn  net.PacketConn
}

// names is a resolver of pairs of a name and its address.
func names(t *testing.T, pairs ...string) *net.Resolver {
	z := newZone(t)
	for i := 0; i < len(pairs); i += 2 {
		z.set(pairs[i], pairs[i+1])
	}
	return z.resolver()
}

func newZone(t *testing.T) *zone {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	z := &zone{addrs: map[string][]netip.Addr{}, conn: conn}
	t.Cleanup(func() { conn.Close() })
	go z.serve()
	return z
}

func (z *zone) set(name string, addrs ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.addrs[name] = nil
	for _, a := range addrs {
		z.addrs[name] = append(z.addrs[name], netip.MustParseAddr(a))
	}
}

func (z *zone) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", z.conn.LocalAddr().String())
	}}
}

func (z *zone) serve() {
	buf := make([]byte, 1500)
	for {
		n, from, err := z.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if answer := z.answer(buf[:n]); answer != nil {
			z.conn.WriteTo(answer, from)
		}
	}
}

func (z *zone) answer(q []byte) []byte {
	var labels []string
	i := 12
	for i < len(q) && q[i] != 0 {
		labels = append(labels, string(q[i+1:i+1+int(q[i])]))
		i += 1 + int(q[i])
	}
	end := i + 5 // root, type, class
	if end > len(q) {
		return nil
	}
	kind := binary.BigEndian.Uint16(q[i+1:])
	z.mu.Lock()
	addrs := z.addrs[strings.ToLower(strings.Join(labels, "."))]
	z.mu.Unlock()
	if kind != 1 {
		addrs = nil // no AAAA
	}
	out := append([]byte(nil), q[:end]...)
	binary.BigEndian.PutUint16(out[2:], 0x8180) // an answer, recursion available
	binary.BigEndian.PutUint16(out[6:], uint16(len(addrs)))
	binary.BigEndian.PutUint16(out[8:], 0)
	binary.BigEndian.PutUint16(out[10:], 0)
	for _, a := range addrs {
		b := a.As4()
		out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		out = append(out, b[:]...)
	}
	return out
}
