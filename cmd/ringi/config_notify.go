package main

import (
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/ringi-dev/ringi/notify"
)

// notifyConfig says how people are reached. Who is reached where is his own to
// set, on the inbox's page /me.
type notifyConfig struct {
	SMTP struct {
		Addr         string `yaml:"addr"`
		TLS          string `yaml:"tls"`
		User         string `yaml:"user"`
		PasswordFile string `yaml:"password_file"`
		From         string `yaml:"from"`
	} `yaml:"smtp"`
	Ntfy struct {
		URL       string `yaml:"url"`
		TokenFile string `yaml:"token_file"`
	} `yaml:"ntfy"`
	Push struct {
		Use     string `yaml:"use"`
		KeyFile string `yaml:"key_file"`
		Contact string `yaml:"contact"`
	} `yaml:"push"`
}

// notifySettings are the rows of notifyConfig.
var notifySettings = []setting{
	{"notify.smtp.addr", "notify-smtp-addr", "none", "mail server for notices, `HOST:PORT`; without it there is no mail",
		textAt(func(c *config) *string { return &c.Notify.SMTP.Addr })},
	{"notify.smtp.tls", "notify-smtp-tls", "starttls", "`starttls`, `tls` (from the first byte on, port 465), or `none` for a server on this machine",
		textAt(func(c *config) *string { return &c.Notify.SMTP.TLS })},
	{"notify.smtp.user", "notify-smtp-user", "none", "login at the mail server; needs `password_file`",
		textAt(func(c *config) *string { return &c.Notify.SMTP.User })},
	{"notify.smtp.password_file", "notify-smtp-password-file", "none", "file that holds its password, readable by the server alone",
		textAt(func(c *config) *string { return &c.Notify.SMTP.PasswordFile })},
	{"notify.smtp.from", "notify-smtp-from", "none", "sender of mail: an address, or `Ringi <ringi@example.org>`",
		textAt(func(c *config) *string { return &c.Notify.SMTP.From })},
	{"notify.ntfy.url", "notify-ntfy-url", "none", "server of ntfy, such as `https://ntfy.sh`; without it there is no ntfy",
		textAt(func(c *config) *string { return &c.Notify.Ntfy.URL })},
	{"notify.ntfy.token_file", "notify-ntfy-token-file", "none", "file that holds an access token for it, readable by the server alone",
		textAt(func(c *config) *string { return &c.Notify.Ntfy.TokenFile })},
	{"notify.push.use", "notify-push-use", "on", "`on` or `off`: web push to browsers whose owner asks for it",
		textAt(func(c *config) *string { return &c.Notify.Push.Use })},
	{"notify.push.key_file", "notify-push-key-file", "`push.key` beside `key_file`; in the data folder where that is a credential", "file of the key that says to push services who sends; made where it is missing. Browsers are bound to it",
		textAt(func(c *config) *string { return &c.Notify.Push.KeyFile })},
	{"notify.push.contact", "notify-push-contact", "`public_url`, where it is https", "address at which a push service reaches you: `mailto:ops@example.org`, or https",
		textAt(func(c *config) *string { return &c.Notify.Push.Contact })},
}

// paths are all that name files.
func (n *notifyConfig) paths() []*string {
	return []*string{&n.SMTP.PasswordFile, &n.Ntfy.TokenFile, &n.Push.KeyFile}
}

// checkNotify refuses what cannot work; the channels check the rest when they
// are made.
func (c *config) checkNotify() error {
	n := &c.Notify
	if n.Push.Use == "" {
		n.Push.Use = "on"
	}
	switch {
	case n.SMTP.Addr == "" && (n.SMTP.TLS != "" || n.SMTP.User != "" || n.SMTP.PasswordFile != "" || n.SMTP.From != ""):
		return errors.New("notify.smtp: of which server? Set addr")
	case n.SMTP.Addr != "" && n.SMTP.From == "":
		return errors.New("notify.smtp.from: a mail has a sender")
	case (n.SMTP.User == "") != (n.SMTP.PasswordFile == ""):
		return errors.New("notify.smtp: user and password_file belong together")
	case n.Ntfy.URL == "" && n.Ntfy.TokenFile != "":
		return errors.New("notify.ntfy: of which server? Set url")
	case !slices.Contains([]string{"on", "off"}, n.Push.Use):
		return fmt.Errorf("notify.push.use: unknown value %q: say on or off", n.Push.Use)
	}
	if n.Push.Contact == "" {
		if c.public != nil && c.public.Scheme == "https" {
			n.Push.Contact = c.public.String()
		}
		return nil
	}
	if address, ok := strings.CutPrefix(n.Push.Contact, "mailto:"); ok {
		if a, err := mail.ParseAddress(address); err == nil && a.Address == address && !strings.Contains(address, "?") {
			return nil
		}
	} else if u, err := url.Parse(n.Push.Contact); err == nil && u.Scheme == "https" && u.Host != "" {
		return nil
	}
	return fmt.Errorf("notify.push.contact: %q is neither a mailto: nor an https: address", n.Push.Contact)
}

// remindConfig is when somebody is reminded: a time span, or a share of the
// expiry.
type remindConfig struct {
	duration
	percent int
}

// UnmarshalYAML takes a text such as 4h, or 50%.
func (r *remindConfig) UnmarshalYAML(n ast.Node) error {
	s, ok := n.(*ast.StringNode)
	if !ok {
		return wrong(n, "this is to be a time span such as 4h, or a share of the expiry such as 50%%")
	}
	digits, share := strings.CutSuffix(s.Value, "%")
	if !share {
		return placed(n, r.duration.parse(s.Value))
	}
	p, err := strconv.Atoi(digits)
	if err != nil || p < 1 || p > 99 {
		return wrong(n, "%q is not a share from 1%% to 99%%", s.Value)
	}
	r.percent = p
	return nil
}

// set reports whether anything is said.
func (r remindConfig) set() bool { return r.d > 0 || r.percent > 0 }

// escalation is the same for the dispatcher.
func (a *agentConfig) escalation() notify.Escalation {
	return notify.Escalation{After: a.Remind.d, Share: a.Remind.percent, Then: a.Then}
}

// handOver are the teams that the agent's requests may be handed to beside its
// deciders.
func (a *agentConfig) handOver() []string {
	if a.Then == "" {
		return nil
	}
	return []string{a.Then}
}
