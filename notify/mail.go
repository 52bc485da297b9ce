package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"slices"
	"strings"
	"time"
)

// MailTLS says how a mail server is spoken to.
type MailTLS string

// The ways.
const (
	StartTLS    MailTLS = "starttls" // RFC 3207, port 587; the zero value means it too
	ImplicitTLS MailTLS = "tls"      // RFC 8314, port 465
	// PlainText is for a server on this machine alone; it never gets a password.
	PlainText MailTLS = "none"
)

// MailOptions say which server takes mail, and from whom it comes. Addr and
// From must be given.
type MailOptions struct {
	// Addr is host and port.
	Addr string
	TLS  MailTLS
	// RootCAs, in Config, and the rest of it are for tests and private
	// authorities; nil means the system's. The server name is always Addr's host.
	Config *tls.Config
	// User and Password log in; empty User: no login.
	User, Password string
	// From is the sender: a bare address, or one with a name.
	From string
	// Now is the clock of the Date header; nil means time.Now.
	Now func() time.Time
}

// Mail sends notices by mail.
//
// It stands on net/smtp, which is frozen but kept: what is sent has one fixed
// form, and no library is needed to make it.
type Mail struct {
	o    MailOptions
	host string
	from *mail.Address
}

// NewMail makes the channel. It connects to nothing yet.
func NewMail(o MailOptions) (*Mail, error) {
	host, port, err := net.SplitHostPort(o.Addr)
	if err != nil || host == "" || port == "" {
		return nil, fmt.Errorf("make mail: %q is not of the form HOST:PORT", o.Addr)
	}
	if o.TLS == "" {
		o.TLS = StartTLS
	}
	local := host == "localhost"
	if ip := net.ParseIP(host); ip != nil {
		local = ip.IsLoopback()
	}
	switch {
	case !slices.Contains([]MailTLS{StartTLS, ImplicitTLS, PlainText}, o.TLS):
		return nil, fmt.Errorf("make mail: unknown way %q: say starttls, tls or none", o.TLS)
	case o.TLS == PlainText && !local:
		return nil, errors.New("make mail: without TLS only a server on this machine is spoken to")
	case o.TLS == PlainText && o.User != "":
		return nil, errors.New("make mail: a password is not sent without TLS")
	case (o.User == "") != (o.Password == ""):
		return nil, errors.New("make mail: user and password belong together")
	}
	from, err := mail.ParseAddress(o.From)
	if err != nil || checkMail(from.Address) != nil {
		return nil, fmt.Errorf("make mail: sender %q is no mail address", o.From)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Mail{o: o, host: host, from: from}, nil
}

// Notify implements [Notifier].
func (m *Mail) Notify(ctx context.Context, n Notice) error {
	if err := checkMail(n.To.Mail); err != nil {
		return fmt.Errorf("%w: not a mail address", ErrRefused)
	}
	text, err := m.message(n)
	if err != nil {
		return err
	}
	c, end, err := m.dial(ctx)
	if err != nil {
		return err
	}
	defer end()
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"log in", func() error { return m.login(c) }},
		{"name sender", func() error { return c.Mail(m.from.Address) }},
		{"name recipient", func() error { return c.Rcpt(n.To.Mail) }},
		{"send message", func() error { return data(c, text) }},
	} {
		if err := step.do(); err != nil {
			return smtpError(step.what, err)
		}
	}
	_ = c.Quit() // the server has taken the message: what it says now changes nothing
	return nil
}

// dial connects. The whole talk ends with ctx: net/smtp knows no contexts.
func (m *Mail) dial(ctx context.Context) (*smtp.Client, func(), error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", m.o.Addr)
	if err != nil {
		return nil, nil, smtpError("connect", err)
	}
	if end, ok := ctx.Deadline(); ok {
		conn.SetDeadline(end)
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	end := func() { stop(); conn.Close() }
	talk := conn
	if m.o.TLS == ImplicitTLS {
		talk = tls.Client(conn, m.tls())
	}
	c, err := smtp.NewClient(talk, m.host)
	if err != nil {
		end()
		return nil, nil, smtpError("greet", err)
	}
	if err := c.Hello(m.hello()); err != nil {
		end()
		return nil, nil, smtpError("greet", err)
	}
	if m.o.TLS == StartTLS {
		// A server that does not offer it may be somebody in between: no fallback.
		if err := c.StartTLS(m.tls()); err != nil {
			end()
			return nil, nil, smtpError("begin TLS", err)
		}
	}
	return c, end, nil
}

func (m *Mail) tls() *tls.Config {
	c := &tls.Config{}
	if m.o.Config != nil {
		c = m.o.Config.Clone()
	}
	c.ServerName, c.MinVersion = m.host, max(c.MinVersion, tls.VersionTLS12)
	return c
}

// hello is the name that the sender greets with: its domain, which tells
// nothing of this machine.
func (m *Mail) hello() string {
	_, domain, _ := strings.Cut(m.from.Address, "@")
	return domain
}

// login takes PLAIN (RFC 4616), or LOGIN where a server has only that.
func (m *Mail) login(c *smtp.Client) error {
	if m.o.User == "" {
		return nil
	}
	_, offered := c.Extension("AUTH")
	ways := strings.Fields(strings.ToUpper(offered))
	if !slices.Contains(ways, "PLAIN") && slices.Contains(ways, "LOGIN") {
		return c.Auth(&loginAuth{user: m.o.User, password: m.o.Password})
	}
	return c.Auth(smtp.PlainAuth("", m.o.User, m.o.Password, m.host))
}

// loginAuth is the LOGIN mechanism (draft-murchison-sasl-login), which some
// servers have alone.
type loginAuth struct{ user, password string }

// Start implements smtp.Auth.
func (a *loginAuth) Start(s *smtp.ServerInfo) (string, []byte, error) {
	if !s.TLS {
		return "", nil, errors.New("a password is not sent without TLS")
	}
	return "LOGIN", nil, nil
}

// Next implements smtp.Auth.
func (a *loginAuth) Next(asked []byte, more bool) ([]byte, error) {
	if !more {
		return nil, nil
	}
	if strings.HasPrefix(strings.ToLower(string(asked)), "user") {
		return []byte(a.user), nil
	}
	return []byte(a.password), nil
}

func data(c *smtp.Client, text []byte) error {
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	return w.Close()
}

// smtpError is an error without what the server said: that may hold addresses.
// A code of 5xx is for good, where it is about this message or its recipient;
// who cannot log in or connect may later.
func smtpError(what string, err error) error {
	reply, ok := errors.AsType[*textproto.Error](err)
	switch {
	case !ok && errors.Is(err, io.EOF):
		return fmt.Errorf("mail: %s: the server hung up", what)
	case !ok:
		var op *net.OpError
		if errors.As(err, &op) && op.Err != nil {
			return fmt.Errorf("mail: %s: %w", what, op.Err)
		}
		return fmt.Errorf("mail: %s: %w", what, err)
	case reply.Code/100 == 5 && (what == "name recipient" || what == "send message"):
		return fmt.Errorf("mail: %s: the server says %d: %w", what, reply.Code, ErrRefused)
	}
	return fmt.Errorf("mail: %s: the server says %d", what, reply.Code)
}
