package notify

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// mailbox is a real SMTP server that keeps what it is sent.
type mailbox struct {
	addr  string
	roots *x509.CertPool

	mu     sync.Mutex
	list   []envelope
	logins []string
	refuse map[string]error // by command
	ways   []string
}

type envelope struct {
	from, to, text string
	tls            bool
}

// newMailbox starts a server: with implicit TLS, STARTTLS or neither.
func newMailbox(t testing.TB, way MailTLS) *mailbox {
	t.Helper()
	m := &mailbox{refuse: map[string]error{}, ways: []string{sasl.Plain, sasl.Login}}
	s := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &mailSession{m: m, c: c}, nil }))
	s.Domain, s.AllowInsecureAuth = "mail.example.org", false
	var certificate tls.Certificate
	certificate, m.roots = selfSigned(t)
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.addr = listener.Addr().String()
	switch way {
	case ImplicitTLS:
		listener = tls.NewListener(listener, config)
	case StartTLS:
		s.TLSConfig = config
	}
	go s.Serve(listener)
	t.Cleanup(func() { s.Close() })
	return m
}

func selfSigned(t testing.TB) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

func (m *mailbox) take() []envelope {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.list
	m.list = nil
	return out
}

func (m *mailbox) refusing(command string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse[command] = err
}

func (m *mailbox) refused(command string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refuse[command]
}

type mailSession struct {
	m *mailbox
	c *smtp.Conn
	e envelope
}

func (s *mailSession) AuthMechanisms() []string { return s.m.ways }

func (s *mailSession) Auth(way string) (sasl.Server, error) {
	check := func(user, password string) error {
		s.m.mu.Lock()
		defer s.m.mu.Unlock()
		s.m.logins = append(s.m.logins, way+" "+user)
		if user != "ringi" || password != "s3cret" {
			return errors.New("no")
		}
		return nil
	}
	if way == sasl.Login {
		return &loginServer{check: check}, nil
	}
	return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password) }), nil
}

func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	_, s.e.tls = s.c.TLSConnectionState()
	s.e.from = from
	return s.m.refused("mail")
}

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.e.to = to
	return s.m.refused("rcpt")
}

func (s *mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := s.m.refused("data"); err != nil {
		return err
	}
	s.e.text = string(text)
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.list = append(s.m.list, s.e)
	return nil
}

func (s *mailSession) Reset()        { s.e = envelope{} }
func (s *mailSession) Logout() error { return nil }

func sampleNotice() Notice {
	return Notice{ID: "ntc_1", Kind: Asked, Waiting: 2, Agent: "office", Risk: RiskOnce, Expires: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC),
		Link: "https://ringi.example.org/run/run_1", Settings: "https://ringi.example.org/me", To: Recipient{User: "local:ana", Name: "Ana Müller", Mail: "ana@example.org"}}
}

func TestMail(t *testing.T) {
	for _, c := range []struct {
		name  string
		way   MailTLS
		user  string
		ways  []string
		login string
	}{
		{"STARTTLS", StartTLS, "ringi", nil, "PLAIN ringi"},
		{"implicit TLS", ImplicitTLS, "ringi", nil, "PLAIN ringi"},
		{"LOGIN alone", ImplicitTLS, "ringi", []string{sasl.Login}, "LOGIN ringi"},
		{"no login", StartTLS, "", nil, ""},
		{"this machine, plain", PlainText, "", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			box := newMailbox(t, c.way)
			if c.ways != nil {
				box.ways = c.ways
			}
			o := MailOptions{Addr: box.addr, TLS: c.way, Config: &tls.Config{RootCAs: box.roots}, From: "Ringi <ringi@example.org>", User: c.user}
			if c.user != "" {
				o.Password = "s3cret"
			}
			m, err := NewMail(o)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Notify(t.Context(), sampleNotice()); err != nil {
				t.Fatal(err)
			}
			list := box.take()
			if len(list) != 1 || list[0].from != "ringi@example.org" || list[0].to != "ana@example.org" || list[0].tls != (c.way != PlainText) {
				t.Fatalf("envelopes %+v", list)
			}
			if got := strings.Join(box.logins, ","); got != c.login {
				t.Errorf("logins %q", got)
			}
			checkMessage(t, list[0].text)
		})
	}
}

// checkMessage reads a message as a mail program does.
func checkMessage(t *testing.T, text string) {
	t.Helper()
	msg, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if at, err := msg.Header.Date(); err != nil || time.Since(at).Abs() > time.Minute {
		t.Errorf("date %v %v", at, err)
	}
	to, err := msg.Header.AddressList("To")
	if err != nil || len(to) != 1 || to[0].Address != "ana@example.org" || to[0].Name != "Ana Müller" {
		t.Errorf("to %v %v", to, err)
	}
	for name, want := range map[string]string{"Subject": "2 requests need your decision", "Message-Id": "<ntc_1@example.org>", "List-Id": "Ringi <ringi.example.org>",
		"List-Unsubscribe": "<https://ringi.example.org/me>", "Auto-Submitted": "auto-generated", "Mime-Version": "1.0", "From": `"Ringi" <ringi@example.org>`} {
		if got := msg.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	kind, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatal(kind, err)
	}
	parts := multipart.NewReader(msg.Body, params["boundary"])
	var kinds []string
	for {
		p, err := parts.NextRawPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(p))
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, p.Header.Get("Content-Type"))
		for _, want := range []string{"2 requests need your decision", "Agent: office", "Risk: changes data, twice is twice", "Expires: Monday 1 June 2026, 12:00 UTC", "https://ringi.example.org/run/run_1", "https://ringi.example.org/me"} {
			if !strings.Contains(string(body), want) {
				t.Errorf("%s does not say %q:\n%s", kinds, want, body)
			}
		}
	}
	if strings.Join(kinds, " ") != "text/plain; charset=utf-8 text/html; charset=utf-8" {
		t.Errorf("parts %q", kinds)
	}
}

// What a name or a title holds ends no header's line, and is no markup.
func TestMailTakesNoInjection(t *testing.T) {
	m, err := NewMail(MailOptions{Addr: "127.0.0.1:25", TLS: PlainText, From: "ringi@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	n := sampleNotice()
	n.To.Name = "Ana\r\nBcc: eve@example.org\u2028X: y"
	n.Agent = "<script>alert(1)</script>\r\n\r\n.\r\nMAIL FROM:<x>"
	n.Link = `https://ringi.example.org/"><script>`
	n.Settings = "https://ringi.example.org/me\r\nBcc: eve@example.org"
	text, err := m.message(n)
	if err != nil {
		t.Fatal(err)
	}
	msg, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if msg.Header.Get("Bcc") != "" || msg.Header.Get("X") != "" || len(msg.Header) != 10 {
		t.Errorf("headers %v", msg.Header)
	}
	for _, l := range strings.Split(string(text), "\r\n") {
		if strings.ContainsAny(l, "\r\n") {
			t.Errorf("a bare line break in %q", l)
		}
	}
	plain, _ := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(text)))
	if _, page, _ := strings.Cut(string(plain), "text/html"); strings.Contains(page, "<script") {
		t.Errorf("markup comes through:\n%s", page)
	}
	for _, to := range []string{"ana@example.org\r\nRCPT TO:<eve@example.org>", "ana@example.org>\r\nDATA", "", "a b@example.org"} {
		n.To.Mail = to
		if err := m.Notify(t.Context(), n); !errors.Is(err, ErrRefused) {
			t.Errorf("%q: %v", to, err)
		}
	}
}

func TestMailErrors(t *testing.T) {
	box := newMailbox(t, StartTLS)
	made := func(change func(*MailOptions)) *Mail {
		o := MailOptions{Addr: box.addr, Config: &tls.Config{RootCAs: box.roots}, From: "ringi@example.org", User: "ringi", Password: "s3cret"}
		change(&o)
		m, err := NewMail(o)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	good := made(func(*MailOptions) {})
	plain := newMailbox(t, PlainText)
	hostile := func(code int) error {
		return &smtp.SMTPError{Code: code, Message: "no mailbox ana@example.org SECRET"}
	}
	for _, c := range []struct {
		name    string
		m       *Mail
		command string
		err     error
		final   bool
	}{
		{"unknown mailbox", good, "rcpt", hostile(550), true},
		{"mailbox is full now", good, "rcpt", hostile(452), false},
		{"sender is refused", good, "mail", hostile(550), false},
		{"message is refused", good, "data", hostile(554), true},
		{"try later", good, "data", hostile(451), false},
		{"wrong password", made(func(o *MailOptions) { o.Password = "wrong" }), "", nil, false},
		{"another authority", made(func(o *MailOptions) { o.Config = nil }), "", nil, false},
		{"no STARTTLS", made(func(o *MailOptions) { o.Addr, o.User, o.Password = plain.addr, "", "" }), "", nil, false},
		{"nobody listens", made(func(o *MailOptions) { o.Addr = "127.0.0.1:1" }), "", nil, false},
		{"TLS at once", made(func(o *MailOptions) { o.TLS = ImplicitTLS }), "", nil, false},
	} {
		box.refusing(c.command, c.err)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		err := c.m.Notify(ctx, sampleNotice())
		cancel()
		box.refusing(c.command, nil)
		if err == nil || errors.Is(err, ErrRefused) != c.final {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if s := err.Error(); strings.Contains(s, "ana@") || strings.Contains(s, "SECRET") || strings.Contains(s, "s3cret") {
			t.Errorf("%s tells %s", c.name, s)
		}
	}
	if n := len(box.take()) + len(plain.take()); n != 0 {
		t.Errorf("%d messages were taken", n)
	}
	for name, o := range map[string]MailOptions{
		"no port":           {Addr: "mail.example.org", From: "r@example.org"},
		"plain, far away":   {Addr: "mail.example.org:25", TLS: PlainText, From: "r@example.org"},
		"plain, a password": {Addr: "127.0.0.1:25", TLS: PlainText, From: "r@example.org", User: "u", Password: "p"},
		"half a login":      {Addr: "mail.example.org:587", From: "r@example.org", User: "u"},
		"no sender":         {Addr: "mail.example.org:587"},
		"two lines":         {Addr: "mail.example.org:587", From: "r@example.org\r\nBcc: x@example.org"},
		"unknown way":       {Addr: "mail.example.org:587", From: "r@example.org", TLS: "ssl"},
	} {
		if _, err := NewMail(o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// A server that never answers holds a sending up no longer than its time.
func TestMailEndsWithItsContext(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, way := range []MailTLS{StartTLS, ImplicitTLS} {
		m, err := NewMail(MailOptions{Addr: listener.Addr().String(), TLS: way, From: "ringi@example.org"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		begun := time.Now()
		if err := m.Notify(ctx, sampleNotice()); err == nil || time.Since(begun) > 30*time.Second {
			t.Errorf("%s: %v after %s", way, err, time.Since(begun))
		}
	}
}

// loginServer is the LOGIN mechanism's other side.
type loginServer struct {
	check func(user, password string) error
	step  int
	user  string
}

func (l *loginServer) Next(said []byte) ([]byte, bool, error) {
	l.step++
	switch l.step {
	case 1:
		return []byte("Username:"), false, nil
	case 2:
		l.user = string(said)
		return []byte("Password:"), false, nil
	}
	return nil, true, l.check(l.user, string(said))
}
