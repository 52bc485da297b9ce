package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
	_ "time/tzdata" // people's zones: the image has none

	"github.com/ringi-dev/ringi/inbox"
	"github.com/ringi-dev/ringi/internal/outbound"
	"github.com/ringi-dev/ringi/notify"
)

// The files of what people are told.
const (
	notifyFile  = "notify.db"
	pushKeyName = "push.key"
)

// notices is what the server reaches people by, open.
type notices struct {
	db         *sql.DB
	book       *notify.Book
	channels   map[notify.Channel]notify.Notifier
	pushKey    string
	dispatcher *notify.Dispatcher
}

func (n *notices) close() error { return n.db.Close() }

// openNotices opens the book and makes the channels of a configuration.
func (e *env) openNotices(ctx context.Context, c *config, data string, warn func(string, error)) (_ *notices, err error) {
	path := filepath.Join(data, notifyFile)
	if err := makeSecret(path, nil); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make %s: %w", path, err)
	}
	f, err := openGuarded(path, onlyOursRead)
	if err != nil {
		return nil, fmt.Errorf("open book of notices: %w", err)
	}
	f.Close()
	n := &notices{channels: map[notify.Channel]notify.Notifier{}}
	if n.db, err = sql.Open("sqlite", "file:"+path+"?"+notify.SQLiteParams); err != nil {
		return nil, fmt.Errorf("open book of notices: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if n.book, err = notify.Open(ctx, n.db, notify.BookOptions{}); err != nil {
		return nil, err
	}
	if err := n.addMail(c); err != nil {
		return nil, fmt.Errorf("notify.smtp: %w", err)
	}
	if err := n.addNtfy(c); err != nil {
		return nil, fmt.Errorf("notify.ntfy: %w", err)
	}
	if err := e.addPush(n, c, data, warn); err != nil {
		return nil, fmt.Errorf("notify.push: %w", err)
	}
	return n, nil
}

func (n *notices) addMail(c *config) error {
	s := c.Notify.SMTP
	if s.Addr == "" {
		return nil
	}
	password, err := secretText(s.PasswordFile)
	if err != nil {
		return err
	}
	m, err := notify.NewMail(notify.MailOptions{Addr: s.Addr, TLS: notify.MailTLS(s.TLS), User: s.User, Password: password, From: s.From})
	if err != nil {
		return err
	}
	n.channels[notify.ChannelMail] = m
	return nil
}

func (n *notices) addNtfy(c *config) error {
	if c.Notify.Ntfy.URL == "" {
		return nil
	}
	token, err := secretText(c.Notify.Ntfy.TokenFile)
	if err != nil {
		return err
	}
	// The operator names this server, which may well be his own.
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{ResponseHeaderTimeout: 10 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t, err := notify.NewNtfy(notify.NtfyOptions{URL: c.Notify.Ntfy.URL, Token: token, Client: client})
	if err != nil {
		return err
	}
	n.channels[notify.ChannelNtfy] = t
	return nil
}

// secretText is a file's one line; "" for no file.
func secretText(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := readGuarded(path, onlyOursRead)
	if err != nil {
		return "", err
	}
	line := strings.TrimRight(string(text), "\r\n")
	if line == "" || strings.ContainsAny(line, "\r\n") {
		return "", fmt.Errorf("read %s: it holds no single line", path)
	}
	return line, nil
}

// addPush reads the push key, and makes it where it is missing. Where nothing
// says where it is to be, and it cannot be kept, there is no web push.
func (e *env) addPush(n *notices, c *config, data string, warn func(string, error)) error {
	if c.Notify.Push.Use == "off" {
		return nil
	}
	key, err := pushKeyAt(e.pushKeyFile(c, data))
	if err != nil && c.Notify.Push.KeyFile == "" {
		warn("no web push: its key cannot be kept; set notify.push.key_file, or notify.push.use: off", err)
		return nil
	}
	if err != nil {
		return err
	}
	// Where a browser's push service is, the browser says: public addresses alone (S-35).
	client, err := outbound.New(c.outboundOptions())
	if err != nil {
		return err
	}
	p, err := notify.NewPush(notify.PushOptions{Key: key, Contact: c.Notify.Push.Contact, Client: client})
	if err != nil {
		return err
	}
	n.channels[notify.ChannelPush], n.pushKey = p, p.PublicKey()
	return nil
}

func (e *env) pushKeyFile(c *config, data string) string {
	if c.Notify.Push.KeyFile != "" {
		return c.Notify.Push.KeyFile
	}
	if beside, err := e.keyFile(c); err == nil && filepath.Dir(beside) != e.getenv("CREDENTIALS_DIRECTORY") {
		return filepath.Join(filepath.Dir(beside), pushKeyName)
	}
	return filepath.Join(data, pushKeyName)
}

// pushKeyAt reads a key. Of two servers that begin at once the second reads the
// first one's.
func pushKeyAt(path string) (*notify.PushKey, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		_, text, err := notify.NewPushKey()
		if err != nil {
			return nil, err
		}
		if err := makeSecret(path, text); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make push key: %w", err)
		}
	}
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		text, err := readGuarded(path, onlyOursRead)
		if err != nil {
			return nil, fmt.Errorf("read push key: %w", err)
		}
		key, err := notify.ParsePushKey(text)
		if err == nil || time.Since(begun) > time.Second {
			return key, err
		}
	}
}

// dispatch makes what tells people of the server's requests.
func (n *notices) dispatch(s *server, url string) error {
	escalations := map[string]notify.Escalation{}
	for _, a := range s.agents {
		escalations[a.config.Name] = a.config.escalation()
	}
	var err error
	n.dispatcher, err = notify.New(notify.Options{Book: n.book, Store: s.store, Service: s.engine, Directory: s.people.Directory, Channels: n.channels,
		PublicURL: url, Escalations: escalations, Logger: s.log})
	return err
}

// inbox is what the pages need; nil where there is no way to reach anybody.
func (n *notices) inbox() *inbox.Notices {
	if len(n.channels) == 0 {
		return nil
	}
	return &inbox.Notices{Book: n.book, PushKey: n.pushKey, Try: n.dispatcher.Try,
		Mail: n.dispatcher.Has(notify.ChannelMail), Ntfy: n.dispatcher.Has(notify.ChannelNtfy)}
}
