package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// PushOptions say how web push is sent. Key and Client must be given.
type PushOptions struct {
	// Key says who sends.
	Key *PushKey
	// Contact is a mailto: or https: address at which the operator of a push
	// service reaches the sender (RFC 8292, section 2.1).
	Contact string
	// Client sends. Endpoints are what browsers say they are, so it must be one
	// that reaches public addresses alone, and follows no redirect (S-35).
	Client *http.Client
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Push sends notices to browsers (RFC 8030), encrypted for each (RFC 8291).
//
// It is written here, over the standard library's curves and ciphers: two
// hundred lines that the RFC's own example checks, against a library that could
// not be given the example's salt and key.
type Push struct{ o PushOptions }

// NewPush makes the channel.
func NewPush(o PushOptions) (*Push, error) {
	if o.Key == nil || o.Client == nil {
		return nil, errors.New("make web push: key and client must be given")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Push{o}, nil
}

// PublicKey is what a browser subscribes with: applicationServerKey.
func (p *Push) PublicKey() string { return p.o.Key.Public() }

// pushMessage is what the service worker gets.
type pushMessage struct {
	Title string `json:"title"`
	Body  string `json:"body"`
	URL   string `json:"url"`
	Tag   string `json:"tag"`
}

// pushTTL is how long a push service keeps a message for a browser that is off.
const pushTTL = 24 * time.Hour

// Notify implements [Notifier].
func (p *Push) Notify(ctx context.Context, n Notice) error {
	d := n.To.Device
	if err := d.Check(); err != nil {
		return fmt.Errorf("%w: not a device", ErrRefused)
	}
	text, err := json.Marshal(pushMessage{n.Title(), n.Body(), n.Link, n.Tag})
	if err != nil {
		return fmt.Errorf("write push: %w", err)
	}
	body, err := encryptPush(d, text)
	if err != nil {
		return fmt.Errorf("encrypt push: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.Endpoint, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("write push: %w", bare(err))
	}
	auth, err := p.o.Key.authorization(req.URL, p.o.Contact, p.o.Now())
	if err != nil {
		return fmt.Errorf("sign push: %w", err)
	}
	ttl := pushTTL
	if left := n.Expires.Sub(p.o.Now()); !n.Expires.IsZero() && left < ttl {
		ttl = max(left, time.Minute)
	}
	req.Header.Set("Authorization", auth)
	req.Header.Set("Content-Encoding", "aes128gcm")
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("TTL", strconv.Itoa(int(ttl.Seconds())))
	req.Header.Set("Urgency", map[bool]string{true: "high", false: "normal"}[n.Urgent])
	return post("push service", p.o.Client, req)
}
