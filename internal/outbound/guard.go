package outbound

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
)

// guard is the way of every request: it refuses what an address alone shows to
// be wrong, and bounds what comes back.
type guard struct {
	allowed       *allowance
	proxied       bool
	agent         string
	max           int64
	secure, plain *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := g.check(r); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	r = r.Clone(r.Context()) // a round tripper changes no request
	r.Header.Set("User-Agent", g.agent)
	r.Header.Del("Cookie")
	way := g.secure
	if r.URL.Scheme == "http" {
		way = g.plain
	}
	res, err := way.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	res.Body = &bounded{body: res.Body, left: g.max}
	return res, nil
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (g *guard) CloseIdleConnections() {
	g.secure.CloseIdleConnections()
	g.plain.CloseIdleConnections()
}

// check refuses an address before anything is looked up. Which addresses a name
// stands for shows when one is dialled; behind a proxy nobody dials here, and
// the name itself must do.
func (g *guard) check(r *http.Request) error {
	u := r.URL
	plain := u.Scheme == "http"
	switch {
	case u.Scheme != "https" && !plain:
		return fmt.Errorf("%w: scheme %q", ErrRefused, u.Scheme)
	case u.User != nil:
		return fmt.Errorf("%w: an address with a user", ErrRefused)
	}
	host, err := hostName(u.Hostname())
	if err != nil {
		return err
	}
	port := u.Port()
	if port == "" {
		port = "443"
		if plain {
			port = "80"
		}
	}
	addr, err := netip.ParseAddr(host)
	if literal := err == nil; literal {
		return g.allowed.mayConnect("", addr, port, plain)
	}
	if !g.proxied || g.allowed.host(host) {
		return nil
	}
	if isLocalName(host) {
		return fmt.Errorf("%w: %s is a name of a local network", ErrRefused, host)
	}
	return mayUse(host, port, plain)
}

// hostName is a host as it is compared: in lower case, without the final dot.
// What other software could read as an address in an odd form (127.1,
// 0x7f000001; WHATWG URL, "ends in a number") is refused.
func hostName(host string) (string, error) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" {
		return "", fmt.Errorf("%w: no host", ErrRefused)
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return "", fmt.Errorf("%w: an address with a zone", ErrRefused)
		}
		return host, nil
	}
	for _, c := range []byte(host) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_') {
			return "", fmt.Errorf("%w: host %q is not of letters, digits, dots and hyphens: say it in its xn-- form", ErrRefused, host)
		}
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" || last[0] >= '0' && last[0] <= '9' {
		return "", fmt.Errorf("%w: host %q ends in a number, and is no address", ErrRefused, host)
	}
	return host, nil
}

// isLocalName reports whether a name is one that the public name system does
// not have (RFC 6761, RFC 6762, RFC 9476 and ICANN's .internal), or has no dot.
func isLocalName(host string) bool {
	if !strings.Contains(host, ".") {
		return true
	}
	for _, tld := range []string{"localhost", "local", "internal", "intranet", "private", "corp", "home", "lan", "localdomain", "home.arpa", "alt", "test", "invalid", "onion"} {
		if strings.HasSuffix(host, "."+tld) {
			return true
		}
	}
	return false
}

// bounded is a body that fails when more comes than it may.
type bounded struct {
	body io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one more shows that there is more
	}
	n, err := b.body.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, ErrTooLarge
	}
	return n, err
}

// Close implements io.Closer.
func (b *bounded) Close() error { return b.body.Close() }
