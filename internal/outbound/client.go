package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Options say what a client may reach, and how long and how much it takes. The
// zero value is ready to use: it reaches public addresses over TLS, follows no
// redirect, and gives up after 10 s or 64 KiB.
type Options struct {
	// Version is the program's, for the header User-Agent: ringi/VERSION. Empty
	// is ringi alone.
	Version string
	// Allow are further targets: networks (10.1.0.0/16), addresses (10.1.2.3)
	// and host names (hooks.internal; each name for itself). They may be reached
	// on any port and without TLS. A name does not allow link-local addresses,
	// where clouds keep credentials: those need to be allowed as such.
	Allow []string
	// Proxy is the URL of an HTTP proxy (http or https) that everything goes
	// through; empty is none. The environment's proxy is never used. A proxy
	// resolves names itself, so what is behind them is its own to check: here
	// names of local networks and addresses are refused.
	Proxy string
	// Timeout bounds a whole exchange with the answer's body; 0 is 10 s.
	Timeout time.Duration
	// MaxBytes bounds an answer's body; 0 is 64 KiB. Beyond it reading is
	// [ErrTooLarge]: nothing is cut silently.
	MaxBytes int64
	// Redirects is how many redirects are followed, each checked like the first
	// address, and none from https to http. 0 follows none: the answer with the
	// status 3xx is given back.
	Redirects int
	// Roots are the certificate authorities that are trusted; nil means the
	// system's.
	Roots *x509.CertPool
	// Resolver finds addresses; nil means the system's.
	Resolver *net.Resolver
}

// ErrRefused is in the error of a request to what must not be reached.
var ErrRefused = errors.New("target refused")

// ErrTooLarge is the error of reading an answer beyond its bound.
var ErrTooLarge = errors.New("answer too large")

const (
	defaultTimeout  = 10 * time.Second
	defaultMaxBytes = 64 << 10
	maxHeaderBytes  = 64 << 10
)

// New makes a client. It is safe for goroutines and keeps no cookies. Its errors
// hold the address that was asked for, as those of every http.Client do: log
// [Bare] of them, as an address may hold a secret.
func New(o Options) (*http.Client, error) {
	allowed, err := readAllow(o.Allow)
	if err != nil {
		return nil, fmt.Errorf("make outbound client: %w", err)
	}
	var proxy *url.URL
	if o.Proxy != "" {
		if proxy, err = readProxy(o.Proxy); err != nil {
			return nil, fmt.Errorf("make outbound client: %w", err)
		}
	}
	if o.Timeout < 0 || o.MaxBytes < 0 || o.Redirects < 0 {
		return nil, errors.New("make outbound client: a bound below zero")
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	agent := "ringi"
	if o.Version != "" {
		agent += "/" + o.Version
	}
	g := &guard{
		allowed: allowed, proxied: proxy != nil, agent: agent, max: o.MaxBytes,
		secure: transport(o, proxy, allowed, false), plain: transport(o, proxy, allowed, true),
	}
	return &http.Client{Transport: g, Timeout: o.Timeout, CheckRedirect: redirects(o.Redirects)}, nil
}

// transport makes the way of one scheme: who dials knows whether TLS follows.
func transport(o Options, proxy *url.URL, allowed *allowance, plain bool) *http.Transport {
	t := &http.Transport{
		TLSClientConfig:        &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // what is read is what came
		MaxIdleConnsPerHost:    2,
		MaxIdleConns:           50,
		MaxConnsPerHost:        16,
		IdleConnTimeout:        30 * time.Second,
		TLSHandshakeTimeout:    o.Timeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	if proxy != nil {
		// The proxy is the operator's own, wherever it is.
		t.Proxy = http.ProxyURL(proxy)
		t.DialContext = (&net.Dialer{Timeout: o.Timeout, Resolver: o.Resolver}).DialContext
		return t
	}
	t.DialContext = dialer{allowed: allowed, plain: plain, timeout: o.Timeout, resolver: o.Resolver}.dial
	return t
}

func readProxy(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("proxy: not a URL") // the parser's error would show a password
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("proxy: say http://HOST:PORT or https://HOST:PORT")
	}
	return u, nil
}

func redirects(most int) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		switch {
		case most == 0:
			return http.ErrUseLastResponse
		case len(via) > most:
			return fmt.Errorf("%w: more than %d redirects", ErrRefused, most)
		case via[len(via)-1].URL.Scheme == "https" && next.URL.Scheme != "https":
			return fmt.Errorf("%w: a redirect from https to %s", ErrRefused, next.URL.Scheme)
		}
		return nil
	}
}

// Bare is an error of a client without the address that was asked for.
func Bare(err error) error {
	for {
		u, ok := errors.AsType[*url.Error](err)
		if !ok {
			return err
		}
		err = u.Err
	}
}
