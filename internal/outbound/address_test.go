package outbound

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// Every address and name, without anything allowed: what is reached and what
// not. Nothing is dialled: where an address is named, the rule is asked, as the
// dialler asks it.
func TestS35_Addresses(t *testing.T) {
	for _, c := range []struct {
		addr string
		may  bool
	}{
		{"8.8.8.8", true}, {"1.1.1.1", true}, {"93.184.216.34", true}, {"100.63.255.255", true}, {"100.128.0.1", true},
		{"172.15.255.255", true}, {"172.32.0.1", true}, {"192.0.1.1", true}, {"198.17.255.255", true}, {"198.20.0.0", true},
		{"223.255.255.255", true}, {"2606:4700:4700::1111", true}, {"2a00:1450:4001:81b::200e", true},
		{"::ffff:8.8.8.8", true}, {"64:ff9b::8.8.8.8", true},

		{"0.0.0.0", false}, {"0.1.2.3", false}, {"10.0.0.1", false}, {"100.64.0.1", false}, {"100.127.255.255", false},
		{"127.0.0.1", false}, {"127.255.255.254", false}, {"169.254.169.254", false}, {"169.254.0.1", false},
		{"172.16.0.1", false}, {"172.31.255.255", false}, {"192.0.0.1", false}, {"192.0.0.192", false}, {"192.0.2.1", false},
		{"192.88.99.1", false}, {"192.168.1.1", false}, {"198.18.0.1", false}, {"198.19.255.255", false}, {"198.51.100.1", false},
		{"203.0.113.1", false}, {"224.0.0.1", false}, {"239.255.255.250", false}, {"240.0.0.1", false}, {"255.255.255.255", false},
		{"::", false}, {"::1", false}, {"::7f00:1", false}, {"::ffff:127.0.0.1", false}, {"::ffff:10.0.0.1", false},
		{"::ffff:169.254.169.254", false}, {"64:ff9b::127.0.0.1", false}, {"64:ff9b::a9fe:a9fe", false}, {"64:ff9b::10.0.0.1", false},
		{"64:ff9b:1::8.8.8.8", false}, {"100::1", false}, {"2001::1", false}, {"2001:0:4136:e378:8000:63bf:3fff:fdd2", false},
		{"2001:db8::1", false}, {"2002:7f00:1::1", false}, {"2002:808:808::1", false}, {"3fff::1", false}, {"4000::1", false},
		{"5f00::1", false}, {"fc00::1", false}, {"fd00:ec2::254", false}, {"fe80::1", false}, {"fec0::1", false}, {"ff02::1", false},
		{"fe80::1%eth0", false}, {"2606:4700:4700::1111%eth0", false},
	} {
		t.Run(c.addr, func(t *testing.T) {
			addr := netip.MustParseAddr(c.addr)
			err := (&allowance{}).mayConnect("", addr, "443", false)
			if c.may != (err == nil) || err != nil && !errors.Is(err, ErrRefused) {
				t.Errorf("reached: %v, want %v (%v)", err == nil, c.may, err)
			}
			// The same as an address is dialled: the way that a name takes.
			err = dialer{allowed: &allowance{}}.mayConnect("hooks.example.org", "tcp6", "["+c.addr+"]:443")
			if c.may != (err == nil) {
				t.Errorf("by name: reached: %v, want %v (%v)", err == nil, c.may, err)
			}
		})
	}
}

// What an address shows before anything is looked up or dialled.
func TestS35_Names(t *testing.T) {
	for _, c := range []struct {
		url    string
		direct bool // may go on to a look-up
		behind bool // may go to the proxy
	}{
		{"https://hooks.example.org/x", true, true},
		{"https://HOOKS.Example.org./x", true, true},
		{"https://xn--bcher-kva.example/", true, true},
		{"https://8.8.8.8/", true, true},
		{"https://[2606:4700:4700::1111]/", true, true},
		{"https://hooks.example.org:443/", true, true},
		{"https://hooks.example.org:80/", true, true},
		// Ports, schemes and local names show at the dial where there is no proxy.
		{"https://hooks.example.org:8443/", true, false},
		{"https://hooks.example.org:22/", true, false},
		{"http://hooks.example.org/", true, false},
		{"https://localhost/", true, false},
		{"https://LOCALHOST./", true, false},
		{"https://app.localhost/", true, false},
		{"https://intranet/", true, false},
		{"https://printer.local/", true, false},
		{"https://metadata.google.internal/", true, false},
		{"https://router.home.arpa/", true, false},

		{"https://127.0.0.1/", false, false},
		{"https://[::1]/", false, false},
		{"https://[::ffff:7f00:1]/", false, false},
		{"https://169.254.169.254/latest", false, false},
		{"https://[fe80::1%25eth0]/", false, false},
		{"https://127.1/", false, false},
		{"https://2130706433/", false, false},
		{"https://0x7f000001/", false, false},
		{"https://0x7f.0.0.1/", false, false},
		{"https://0177.0.0.1/", false, false},
		{"https://127.0.0.1./", false, false},
		{"https://10.0.0.1.8/", false, false},
		{"https://bücher.example/", false, false},
		{"https://①②⑦.0.0.1/", false, false},
		{"https://8.8.8.8:8080/", false, false},
		{"http://8.8.8.8/", false, false},
		{"https://user:word@hooks.example.org/", false, false},
		{"ftp://hooks.example.org/", false, false},
		{"file:///etc/passwd", false, false},
		{"https:///nohost", false, false},
		{"https://a..b../", false, false},
	} {
		t.Run(c.url, func(t *testing.T) {
			r, err := http.NewRequest(http.MethodPost, c.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, way := range []struct {
				proxied, may bool
			}{{false, c.direct}, {true, c.behind}} {
				g := &guard{allowed: &allowance{}, proxied: way.proxied}
				if err := g.check(r); way.may != (err == nil) || err != nil && !errors.Is(err, ErrRefused) {
					t.Errorf("proxy %v: goes on: %v, want %v (%v)", way.proxied, err == nil, way.may, err)
				}
			}
		})
	}
}

func TestS35_Allow(t *testing.T) {
	a, err := readAllow([]string{"10.1.0.0/16", "192.168.7.7", "fd00:1::/32", "Hooks.Internal.", "169.254.10.10"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		host, addr string
		plain, may bool
	}{
		{"", "10.1.2.3", true, true},
		{"any.example", "10.1.2.3", true, true},
		{"", "::ffff:10.1.2.3", true, true},
		{"", "64:ff9b::10.1.2.3", false, true},
		{"", "10.2.0.1", false, false},
		{"", "192.168.7.7", false, true},
		{"", "192.168.7.8", false, false},
		{"", "fd00:1::5", false, true},
		{"", "fd00:2::5", false, false},
		{"hooks.internal", "172.16.0.9", true, true},
		{"hooks.internal", "127.0.0.1", true, true},
		{"hooks.internal", "8.8.8.8", true, true},
		{"hooks.internal", "169.254.169.254", false, false},
		{"hooks.internal", "::ffff:169.254.169.254", false, false},
		{"hooks.internal", "fe80::1", false, false},
		{"hooks.internal", "224.0.0.1", false, false},
		{"hooks.internal", "0.0.0.0", false, false},
		{"hooks.internal", "169.254.10.10", false, true},
		{"other.internal", "172.16.0.9", false, false},
		{"other.example", "8.8.8.8", true, false},
	} {
		err := a.mayConnect(c.host, netip.MustParseAddr(c.addr), "8080", c.plain)
		if c.may != (err == nil) {
			t.Errorf("%s at %s: reached %v, want %v (%v)", c.host, c.addr, err == nil, c.may, err)
		}
	}
	for _, bad := range []string{"", "0.0.0.0/0", "::/0", "10.0.0.0/33", "https://x", "a b", "*.example.org", "1.2.3", "::ffff:10.0.0.0/104", "fe80::1%eth0"} {
		if err := CheckAllow([]string{bad}); err == nil || !strings.Contains(err.Error(), "allow") {
			t.Errorf("%q: taken (%v)", bad, err)
		}
	}
}
