package outbound

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// receiver is a server on loopback, with a certificate of its own.
func receiver(t *testing.T, h http.HandlerFunc) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return s, pool
}

func client(t *testing.T, o Options) *http.Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestS35_LoopbackIsRefusedAndMayBeAllowed(t *testing.T) {
	var came atomic.Int64
	s, pool := receiver(t, func(http.ResponseWriter, *http.Request) { came.Add(1) })
	_, err := client(t, Options{Roots: pool}).Get(s.URL)
	if !errors.Is(err, ErrRefused) || came.Load() != 0 {
		t.Fatalf("loopback: %v, %d requests came", err, came.Load())
	}
	res, err := client(t, Options{Roots: pool, Allow: []string{"127.0.0.1"}}).Get(s.URL)
	if err != nil || came.Load() != 1 {
		t.Fatalf("allowed: %v, %d requests came", err, came.Load())
	}
	res.Body.Close()
}

// The environment's proxy is never used: it would see what must not be seen, and
// hide the address from the check.
func TestS35_EnvironmentProxyIsNotUsed(t *testing.T) {
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	s, pool := receiver(t, func(http.ResponseWriter, *http.Request) {})
	res, err := client(t, Options{Roots: pool, Allow: []string{"127.0.0.0/8"}}).Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if _, err := client(t, Options{Roots: pool}).Get("https://127.0.0.1:9/"); !errors.Is(err, ErrRefused) {
		t.Errorf("loopback with a proxy in the environment: %v", err)
	}
	// Go's own client asks it for this name; ours looks the name up itself.
	if _, err := client(t, Options{Resolver: names(t, "hooks.example.org", "127.0.0.1")}).Get("https://hooks.example.org/"); !errors.Is(err, ErrRefused) {
		t.Errorf("a name of loopback with a proxy in the environment: %v", err)
	}
	if asked.Load() != 0 {
		t.Errorf("the environment's proxy was asked %d times", asked.Load())
	}
}

func TestS35_ConfiguredProxyIsAskedForPublicNamesOnly(t *testing.T) {
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Method + " " + r.Host)
		w.WriteHeader(http.StatusTeapot) // no tunnel
	}))
	defer proxy.Close()
	c := client(t, Options{Proxy: proxy.URL, Allow: []string{"allowed.internal"}})
	for u, want := range map[string]string{
		"https://hooks.example.org/":     "CONNECT hooks.example.org:443",
		"https://allowed.internal:8443/": "CONNECT allowed.internal:8443",
		"http://allowed.internal:8080/":  "GET allowed.internal:8080",
		"https://localhost/":             "",
		"https://127.0.0.1/":             "",
		"https://db.internal/":           "",
		"http://hooks.example.org/":      "",
		"https://hooks.example.org:25/":  "",
	} {
		asked.Store("")
		res, err := c.Get(u)
		if err == nil {
			res.Body.Close()
		}
		if asked.Load() != want || want == "" && !errors.Is(err, ErrRefused) {
			t.Errorf("%s: the proxy was asked %q, want %q (%v)", u, asked.Load(), want, err)
		}
	}
	for _, bad := range []string{"proxy:3128", "socks5://proxy:1080", "http://", "http://u:geheim\x7f@p"} {
		if _, err := New(Options{Proxy: bad}); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("proxy %q: %v", bad, err)
		}
	}
}

func TestS35_Redirects(t *testing.T) {
	var secret atomic.Int64
	inside, _ := receiver(t, func(http.ResponseWriter, *http.Request) { secret.Add(1) })
	insideURL, _ := url.Parse(inside.URL)
	s, pool := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/in":
			http.Redirect(w, r, "https://localhost:"+insideURL.Port()+"/", http.StatusFound)
		case "/plain":
			http.Redirect(w, r, "http://"+r.Host+"/end", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/once":
			http.Redirect(w, r, "/end", http.StatusFound)
		}
	})
	pool.AddCert(inside.Certificate())
	allow := []string{"hooks.example.com"}
	o := Options{Roots: pool, Allow: allow, Resolver: names(t, "hooks.example.com", "127.0.0.1", "localhost", "127.0.0.1")}
	base := "https://hooks.example.com:" + port(t, s.URL)
	get := func(c *http.Client, path string) (int, error) {
		r, _ := http.NewRequest(http.MethodGet, base+path, nil)
		res, err := c.Do(r)
		if err != nil {
			return 0, err
		}
		defer res.Body.Close()
		return res.StatusCode, nil
	}
	// The test's certificate is for example.com and its names below.
	if code, err := get(client(t, o), "/in"); code != 302 || err != nil {
		t.Errorf("without redirects: %d, %v", code, err)
	}
	o.Redirects = 3
	c := client(t, o)
	if code, err := get(c, "/once"); code != 200 || err != nil {
		t.Errorf("one redirect: %d, %v", code, err)
	}
	for _, path := range []string{"/in", "/plain", "/loop"} {
		if _, err := get(c, path); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if secret.Load() != 0 {
		t.Error("a redirect led to loopback")
	}
}

// A name that stands for a public address when it is looked up first and for
// loopback when it is dialled (DNS rebinding) leads nowhere.
func TestS35_NameChangesBetweenLookUpAndDial(t *testing.T) {
	zone := newZone(t)
	zone.set("turns.example.org", "93.184.216.34")
	addrs, err := zone.resolver().LookupNetIP(t.Context(), "ip4", "turns.example.org")
	if err != nil || len(addrs) != 1 || addrs[0].String() != "93.184.216.34" {
		t.Fatalf("look-up: %v, %v", addrs, err)
	}
	zone.set("turns.example.org", "127.0.0.1")
	c := client(t, Options{Resolver: zone.resolver()})
	if _, err := c.Get("https://turns.example.org/"); !errors.Is(err, ErrRefused) {
		t.Errorf("after the change: %v", err)
	}
	// One public address among others saves none of them.
	zone.set("turns.example.org", "127.0.0.1", "169.254.169.254", "10.0.0.1")
	if _, err := c.Get("https://turns.example.org/"); !errors.Is(err, ErrRefused) {
		t.Errorf("several: %v", err)
	}
}

func TestS35_AnswersAreBounded(t *testing.T) {
	s, pool := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/exact":
			w.Write(bytes.Repeat([]byte("a"), 1000))
		case "/huge":
			for range 1000 {
				if _, err := w.Write(make([]byte, 10_000)); err != nil {
					return
				}
			}
		case "/head":
			w.Header().Set("X-Long", strings.Repeat("a", 1<<20))
		case "/hang":
			<-r.Context().Done()
			panic(http.ErrAbortHandler) // an answer now might come just before the client has gone
		case "/drip":
			for r.Context().Err() == nil {
				fmt.Fprint(w, ".")
				http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}
	})
	c := client(t, Options{Roots: pool, Allow: []string{"127.0.0.1"}, MaxBytes: 1000, Timeout: 90 * time.Second})
	read := func(path string) (int, error) {
		res, err := c.Get(s.URL + path)
		if err != nil {
			return 0, err
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		return len(b), err
	}
	if n, err := read("/exact"); n != 1000 || err != nil {
		t.Errorf("exactly the bound: %d bytes, %v", n, err)
	}
	if n, err := read("/huge"); n != 1000 || !errors.Is(err, ErrTooLarge) {
		t.Errorf("huge: %d bytes, %v", n, err)
	}
	if _, err := read("/head"); err == nil {
		t.Error("a huge header was taken")
	}
	c = client(t, Options{Roots: pool, Allow: []string{"127.0.0.1"}, MaxBytes: 1000, Timeout: 300 * time.Millisecond})
	for _, path := range []string{"/hang", "/drip"} {
		begun := time.Now()
		_, err := read(path)
		var late net.Error
		if !(errors.As(err, &late) && late.Timeout() || errors.Is(err, context.DeadlineExceeded)) || time.Since(begun) > 30*time.Second {
			t.Errorf("%s: %v after %v", path, err, time.Since(begun))
		}
	}
}

func TestS35_NoCookiesAndAName(t *testing.T) {
	var head http.Header
	s, pool := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		head = r.Header.Clone()
		http.SetCookie(w, &http.Cookie{Name: "track", Value: "1"})
	})
	c := client(t, Options{Roots: pool, Allow: []string{"127.0.0.1"}, Version: "1.2.3"})
	for range 2 {
		r, _ := http.NewRequest(http.MethodGet, s.URL, nil)
		r.Header.Set("Cookie", "a=b")
		r.Header.Set("User-Agent", "else")
		res, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if r.Header.Get("User-Agent") != "else" {
			t.Error("the caller's request was changed")
		}
	}
	if head.Get("Cookie") != "" || head.Get("User-Agent") != "ringi/1.2.3" {
		t.Errorf("cookie %q, agent %q", head.Get("Cookie"), head.Get("User-Agent"))
	}
}

func TestCertificatesAreChecked(t *testing.T) {
	s, _ := receiver(t, func(http.ResponseWriter, *http.Request) {})
	var unknown x509.UnknownAuthorityError
	if _, err := client(t, Options{Allow: []string{"127.0.0.1"}}).Get(s.URL); !errors.As(err, &unknown) {
		t.Errorf("an unknown authority: %v", err)
	}
}

func TestBareHoldsNoAddress(t *testing.T) {
	_, err := client(t, Options{}).Get("https://127.0.0.1/hook?token=geheim")
	if err == nil || !strings.Contains(err.Error(), "geheim") {
		t.Fatalf("the test's premise: %v", err)
	}
	if bare := Bare(err); strings.Contains(bare.Error(), "geheim") || !errors.Is(bare, ErrRefused) {
		t.Errorf("bare: %v", bare)
	}
	if plain := errors.New("else"); Bare(plain) != plain {
		t.Error("another error is changed")
	}
}

func port(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}
