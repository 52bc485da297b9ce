package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// NtfyOptions say which ntfy server is used. URL must be given.
type NtfyOptions struct {
	// URL is the server's, such as https://ntfy.sh.
	URL string
	// Token is an access token; empty: none.
	Token string
	// Client sends; nil means one that follows no redirect. It must have a time
	// limit or take that of its context.
	Client *http.Client
}

// Ntfy sends notices to topics of an ntfy server (docs.ntfy.sh/publish, "Publish
// as JSON"). Whoever knows a topic reads it, unless the server protects it.
type Ntfy struct {
	o   NtfyOptions
	url string
}

// NewNtfy makes the channel. It connects to nothing yet.
func NewNtfy(o NtfyOptions) (*Ntfy, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("make ntfy: the address is not of the form https://HOST")
	}
	if strings.ContainsAny(o.Token, "\r\n ") {
		return nil, errors.New("make ntfy: the token has spaces")
	}
	if o.Client == nil {
		o.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &Ntfy{o, strings.TrimRight(u.String(), "/") + "/"}, nil
}

// ntfyMessage is the body of a message.
type ntfyMessage struct {
	Topic    string   `json:"topic"`
	Title    string   `json:"title"`
	Message  string   `json:"message"`
	Click    string   `json:"click"`
	Priority int      `json:"priority"` // 1 to 5; 3 is the default
	Tags     []string `json:"tags,omitempty"`
}

// Notify implements [Notifier].
func (t *Ntfy) Notify(ctx context.Context, n Notice) error {
	if !topicForm.MatchString(n.To.Topic) {
		return fmt.Errorf("%w: not a topic", ErrRefused)
	}
	m := ntfyMessage{Topic: n.To.Topic, Title: n.Title(), Message: n.Body(), Click: n.Link, Priority: 3}
	if n.Urgent {
		m.Priority, m.Tags = 4, []string{"hourglass"}
	}
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write notice for ntfy: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("write notice for ntfy: %w", bare(err))
	}
	req.Header.Set("Content-Type", "application/json")
	if t.o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+t.o.Token)
	}
	return post("ntfy", t.o.Client, req)
}

// post sends a request whose answer's body is nobody's to see (S-35).
func post(to string, client *http.Client, req *http.Request) error {
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", to, bare(err))
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10) // so that the connection can be used again
	switch s := res.StatusCode; {
	case s/100 == 2:
		return nil
	case s == http.StatusRequestTimeout || s == http.StatusTooManyRequests || s/100 == 5:
		return fmt.Errorf("%s: the server says %d", to, s)
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		return fmt.Errorf("%s: the server says %d: token or keys are not taken", to, s) // an operator can mend it
	case s == http.StatusNotFound || s == http.StatusGone:
		return fmt.Errorf("%s: the server says %d: %w", to, s, ErrGone)
	default:
		return fmt.Errorf("%s: the server says %d: %w", to, s, ErrRefused)
	}
}
