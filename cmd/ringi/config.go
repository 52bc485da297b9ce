package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// config is what ringi serve is told: by its file, then the environment, then
// flags. The zero value of a field means the default of its row in settings.
type config struct {
	// file is where it was read from; empty where there is none.
	file string

	Listen         string   `yaml:"listen"`
	Data           string   `yaml:"data"`
	KeyFile        string   `yaml:"key_file"`
	PublicURL      string   `yaml:"public_url"`
	Hosts          []string `yaml:"hosts"`
	TrustedProxies []string `yaml:"trusted_proxies"`
	TLS            struct {
		CertFile string `yaml:"cert_file"`
		KeyFile  string `yaml:"key_file"`
	} `yaml:"tls"`
	Log struct {
		Level  string `yaml:"level"`
		Format string `yaml:"format"`
	} `yaml:"log"`
	Decide string `yaml:"decide"`
	Worker struct {
		AtOnce whole    `yaml:"at_once"`
		Grace  duration `yaml:"grace"`
	} `yaml:"worker"`
	Outbound struct {
		Allow []string `yaml:"allow"`
		Proxy string   `yaml:"proxy"`
	} `yaml:"outbound"`
	Login    loginConfig     `yaml:"login"`
	Notify   notifyConfig    `yaml:"notify"`
	Chat     chatConfig      `yaml:"chat"`
	Webhooks []webhookConfig `yaml:"webhooks"`
	Agents   []agentConfig   `yaml:"agents"`

	// What the texts above mean, once checked.
	proxies []netip.Prefix
	public  *url.URL // nil for none
}

// setting is one row of the table that file, environment, flags and
// docs/config.md share.
type setting struct {
	key  string // in the file; its dots are levels
	flag string // without the dashes
	def  string // as docs/config.md says it
	what string
	set  func(*config, string) error
}

// env is the variable's name: RINGI_ and the key, in capitals.
func (s setting) env() string {
	return "RINGI_" + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// usage is the flag's line in --help: the first sentence, without marks.
func (s setting) usage() string {
	first, _, _ := strings.Cut(s.what, ". ")
	return strings.ReplaceAll(fmt.Sprintf("%s (default %s)", first, s.def), "`", "")
}

// textAt makes the set of a setting that is a text.
func textAt(at func(*config) *string) func(*config, string) error {
	return func(c *config, v string) error {
		*at(c) = v
		return nil
	}
}

// listAt makes the set of a setting that is several texts, comma separated.
func listAt(at func(*config) *[]string) func(*config, string) error {
	return func(c *config, v string) error {
		*at(c) = nil
		for _, one := range strings.Split(v, ",") {
			if one = strings.TrimSpace(one); one != "" {
				*at(c) = append(*at(c), one)
			}
		}
		return nil
	}
}

// settings is the one table of the server's settings.
var settings = slices.Concat([]setting{
	{"listen", "listen", defaultListen, "address and port to listen at. Beyond this machine (S-32) it needs TLS or a trusted proxy, and `decide: server`",
		textAt(func(c *config) *string { return &c.Listen })},
	{"data", "data", "`$STATE_DIRECTORY`, or `ringi` in the user's state folder", "folder of the store and of all else that the server keeps: mode 0700, its own user's",
		textAt(func(c *config) *string { return &c.Data })},
	{"key_file", "key-file", "`ringi.key` in `$CREDENTIALS_DIRECTORY`, or in `ringi` in the user's configuration folder", "file of the key that signs requests and decisions; made with a new store. Keep it outside the data folder: a copy of one is then not a copy of both. `TOOL_APPROVAL_SECRET` takes its place",
		textAt(func(c *config) *string { return &c.KeyFile })},
	{"public_url", "public-url", "none", "where people reach the server, for links: `https://ringi.example.org`",
		textAt(func(c *config) *string { return &c.PublicURL })},
	{"hosts", "hosts", "none", "further host names that are served, comma separated in variable and flag. Served are also that of `public_url` and, at a loopback address, `localhost`, `ringi.localhost`, `127.0.0.1` and `[::1]`; any other gets 421",
		listAt(func(c *config) *[]string { return &c.Hosts })},
	{"trusted_proxies", "trusted-proxies", "none", "addresses or networks (`10.0.0.7`, `10.1.0.0/24`) whose forwarded headers count, comma separated in variable and flag",
		listAt(func(c *config) *[]string { return &c.TrustedProxies })},
	{"tls.cert_file", "tls-cert-file", "none", "certificate chain, PEM",
		textAt(func(c *config) *string { return &c.TLS.CertFile })},
	{"tls.key_file", "tls-key-file", "none", "its private key, PEM, readable by the server alone",
		textAt(func(c *config) *string { return &c.TLS.KeyFile })},
	{"log.level", "log-level", "info", "`debug`, `info`, `warn` or `error`",
		textAt(func(c *config) *string { return &c.Log.Level })},
	{"log.format", "log-format", "text", "`text` or `json`, on standard error",
		textAt(func(c *config) *string { return &c.Log.Format })},
	{"decide", "decide", "anywhere", "where people decide: `server`, each with a login of his own, and the command line is refused on the store (S-10); or `anywhere`, also on the command line by who may read the key",
		textAt(func(c *config) *string { return &c.Decide })},
	{"worker.at_once", "worker-at-once", "16", "how many runs go on at once",
		func(c *config, v string) error { return c.Worker.AtOnce.parse(v) }},
	{"worker.grace", "worker-grace", "30s", "how long calls in flight may take when the server is to stop",
		func(c *config, v string) error { return c.Worker.Grace.parse(v) }},
	{"outbound.allow", "outbound-allow", "none", "networks, addresses and host names, comma separated in variable and flag, that the server's own requests may reach although they are not public (S-35), on any port and without TLS: `10.1.0.0/16`, `hooks.internal`. A name allows no link-local address",
		listAt(func(c *config) *[]string { return &c.Outbound.Allow })},
	{"outbound.proxy", "outbound-proxy", "none", "HTTP proxy that the server's own requests go through: `http://proxy.internal:3128`. Those of the environment (`HTTPS_PROXY`) are never used",
		textAt(func(c *config) *string { return &c.Outbound.Proxy })},
}, notifySettings, chatSettings)

const defaultListen = "127.0.0.1:7464"

// check refuses what makes no sense or is not safe, and fills in what follows
// from the rest.
func (c *config) check() error {
	if c.Listen == "" {
		c.Listen = defaultListen
	}
	c.loginDefaults()
	for _, one := range []struct {
		key   string
		value *string
		known []string // the first is the default
	}{
		{"log.level", &c.Log.Level, []string{"info", "debug", "warn", "error"}},
		{"log.format", &c.Log.Format, []string{"text", "json"}},
		{"decide", &c.Decide, []string{decideAnywhere, decideServer}},
	} {
		if *one.value == "" {
			*one.value = one.known[0]
		}
		if !slices.Contains(one.known, *one.value) {
			return fmt.Errorf("%s: unknown value %q: say %s", one.key, *one.value, strings.Join(one.known, ", "))
		}
	}
	if c.Worker.Grace.never {
		return errors.New("worker.grace: it has an end")
	}
	for _, step := range []func() error{c.checkURL, c.checkProxies, c.checkTLS, c.checkListen, c.checkOutbound, c.checkWebhooks, c.checkNotify, c.checkChat, c.checkAgents, c.checkLogin} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// The values of decide, which are those of the store's flag too.
const (
	decideServer   = "server"
	decideAnywhere = "anywhere"
)

func (c *config) checkURL() error {
	for _, h := range c.Hosts {
		if h == "" || strings.ContainsAny(h, "/@ *") {
			return fmt.Errorf("hosts: %q is not a host name", h)
		}
	}
	if c.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil {
		return fmt.Errorf("public_url: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return fmt.Errorf("public_url: %q is not of the form https://HOST", c.PublicURL)
	}
	u.Path = ""
	c.public = u
	return nil
}

func (c *config) checkProxies() error {
	c.proxies = nil
	for _, text := range c.TrustedProxies {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			var a netip.Addr
			if a, err = netip.ParseAddr(text); err == nil {
				p = netip.PrefixFrom(a, a.BitLen())
			}
		}
		switch {
		case err != nil:
			return fmt.Errorf("trusted_proxies: %q is neither an address nor a network", text)
		case p.Bits() == 0:
			return fmt.Errorf("trusted_proxies: %q is everybody", text)
		}
		c.proxies = append(c.proxies, p.Masked())
	}
	return nil
}

func (c *config) checkTLS() error {
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		return errors.New("tls: cert_file and key_file belong together")
	}
	return nil
}

// tls reports whether the server speaks TLS itself.
func (c *config) tls() bool { return c.TLS.CertFile != "" }

// checkListen refuses to listen where others come, but with TLS or behind a
// named proxy, and with logins of people's own (S-32).
func (c *config) checkListen() error {
	_, port, err := net.SplitHostPort(c.Listen)
	if err != nil || port == "" {
		return fmt.Errorf("listen: %q is not of the form ADDRESS:PORT", c.Listen)
	}
	if c.loopback() {
		return nil
	}
	if !c.tls() && len(c.proxies) == 0 {
		return fmt.Errorf("listen: %s is reached from beyond this machine: set tls.cert_file and tls.key_file, or trusted_proxies", c.Listen)
	}
	if c.Decide != decideServer {
		return fmt.Errorf("listen: %s is reached from beyond this machine: set decide: server, so that each person has a login of his own", c.Listen)
	}
	return nil
}

// loopback reports whether only this machine reaches the server. A name counts
// where it is localhost's alone.
func (c *config) loopback() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return false
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().IsLoopback()
	}
	return host == "localhost"
}

// hosts are the host names that are served, without ports.
func (c *config) hosts() []string {
	var out []string
	if c.loopback() {
		out = append(out, "localhost", "ringi.localhost", "127.0.0.1", "::1")
	}
	if c.public != nil {
		out = append(out, strings.ToLower(c.public.Hostname()))
	}
	for _, h := range c.Hosts {
		out = append(out, strings.ToLower(strings.Trim(h, "[]")))
	}
	return out
}

// grace is how long calls in flight may take at the end.
func (c *config) grace() time.Duration {
	if c.Worker.Grace.d == 0 {
		return 30 * time.Second
	}
	return c.Worker.Grace.d
}
