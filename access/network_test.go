package access

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestNetworks(t *testing.T) {
	for text, want := range map[string]Network{
		"127.0.0.1": Loopback, "127.8.9.1": Loopback, "::1": Loopback, "::ffff:127.0.0.1": Loopback,
		"10.0.0.1": Private, "172.16.3.4": Private, "192.168.1.1": Private, "fd00::1": Private, "fe80::1%eth0": Private, "169.254.1.1": Private,
		"172.32.0.1": Public, "8.8.8.8": Public, "2001:db8::1": Public, "100.64.0.1": Public, "0.0.0.0": Public,
	} {
		addr, err := parseAddr(text)
		if err != nil || networkOf(addr) != want {
			t.Errorf("%s is %q, want %q (%v)", text, networkOf(addr), want, err)
		}
	}
	if got := networkOf(netip.Addr{}); got != "" {
		t.Errorf("no address is %q", got)
	}
}

// The network is that of who asks, not of the proxy before him; a header of his
// own makes him no nearer.
func TestNetworkOfARequest(t *testing.T) {
	h := newHouse(t, Options{})
	h.add(t, "ana", RoleApprover)
	_, secret := h.enterAs(t, "local:ana")
	for _, tt := range []struct {
		peer, forwarded string
		want            string
	}{
		{"127.0.0.1:5", "", "inbox:loopback"},
		{"203.0.113.9:5", "", "inbox:public"},
		{"203.0.113.9:5", "127.0.0.1", "inbox:public"},
		{"10.1.1.1:5", "192.168.4.4", "inbox:private"},
		{"10.1.1.1:5", "127.0.0.1, 198.51.100.7", "inbox:public"},
		{"made up", "", "inbox"},
	} {
		a, err := NewAuthenticator(h.Directory, AuthOptions{Proxies: Proxies{netip.MustParsePrefix("10.1.1.1/32")}})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.AddCookie(&http.Cookie{Name: CookieName, Value: secret})
		r.RemoteAddr = tt.peer
		if tt.forwarded != "" {
			r.Header.Set("X-Forwarded-For", tt.forwarded)
		}
		w, err := a.FromRequest(r)
		if err != nil || w.Channel("inbox") != tt.want {
			t.Errorf("%s for %q: %q, want %q (%v)", tt.peer, tt.forwarded, w.Channel("inbox"), tt.want, err)
		}
		if fresh, err := h.Recheck(ctx, w); err != nil || fresh.Network != w.Network {
			t.Errorf("%s anew: %q, %v", tt.peer, fresh.Network, err)
		}
	}
}
