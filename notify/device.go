package notify

import (
	"context"
	"crypto/ecdh"
	"database/sql"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/sqltable"
)

// Device is a browser that takes web push: what PushSubscription.toJSON gives
// (W3C Push API, section 8). Endpoint and Auth are secrets: who has them may
// send to it.
type Device struct {
	ID   string
	Name string
	// Endpoint is the push service's address for this browser.
	Endpoint string
	// P256DH is the browser's public key, a point of P-256, uncompressed; Auth 16
	// random bytes of its. Both base64url without padding (RFC 8291).
	P256DH, Auth string
	CreatedAt    time.Time
}

// Check refuses a device that nothing can be sent to. Whether the endpoint may
// be reached is for the client that sends to see.
func (d Device) Check() error {
	u, err := url.Parse(d.Endpoint)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" || len(d.Endpoint) > 2048:
		return fmt.Errorf("%w: the endpoint is no https address", ErrSettings)
	case len(d.Name) > 200:
		return fmt.Errorf("%w: the name is too long", ErrSettings)
	}
	if _, _, err := d.keys(); err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	return nil
}

func (d Device) keys() (*ecdh.PublicKey, []byte, error) {
	point, err := unbase64(d.P256DH)
	if err != nil {
		return nil, nil, fmt.Errorf("p256dh is not base64url")
	}
	public, err := ecdh.P256().NewPublicKey(point)
	if err != nil {
		return nil, nil, fmt.Errorf("p256dh is no point of P-256")
	}
	auth, err := unbase64(d.Auth)
	if err != nil || len(auth) != 16 {
		return nil, nil, fmt.Errorf("auth is not 16 bytes in base64url")
	}
	return public, auth, nil
}

// unbase64 reads base64url, padded or not: browsers give either.
func unbase64(s string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
}

// maxDevices is how many browsers a person may have; the oldest goes.
const maxDevices = 20

// AddDevice keeps a browser of a person's. The same endpoint again takes the
// place of the one before, whoever had it: a browser is in one person's hands.
//
// Errors: [ErrSettings].
func (b *Book) AddDevice(ctx context.Context, user string, d Device) error {
	if err := d.Check(); err != nil {
		return err
	}
	return b.change(ctx, func(tx *tx) error {
		if err := tx.exec(`DELETE FROM notify_devices WHERE space = ? AND endpoint = ?`, b.o.Space, d.Endpoint); err != nil {
			return err
		}
		if err := tx.exec(`INSERT INTO notify_devices (space, id, user_id, name, endpoint, p256dh, auth, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			b.o.Space, ringi.NewID("dev_", tx.now), user, d.Name, d.Endpoint, d.P256DH, d.Auth, sqltable.Micros(tx.now)); err != nil {
			return err
		}
		return tx.exec(`DELETE FROM notify_devices WHERE space = ? AND user_id = ? AND id NOT IN
			(SELECT id FROM notify_devices WHERE space = ? AND user_id = ? ORDER BY created_at DESC, id DESC LIMIT ?)`,
			b.o.Space, user, b.o.Space, user, maxDevices)
	})
}

// RemoveDevice forgets a browser of a person's. One that is not his, or not
// there, is not touched.
func (b *Book) RemoveDevice(ctx context.Context, user, id string) error {
	return b.change(ctx, func(tx *tx) error {
		return tx.exec(`DELETE FROM notify_devices WHERE space = ? AND user_id = ? AND id = ?`, b.o.Space, user, id)
	})
}

// Devices lists a person's browsers, oldest first.
func (b *Book) Devices(ctx context.Context, user string) ([]Device, error) {
	var out []Device
	err := b.list(ctx, func(rows *sql.Rows) error {
		var d Device
		var made int64
		if err := rows.Scan(&d.ID, &d.Name, &d.Endpoint, &d.P256DH, &d.Auth, &made); err != nil {
			return err
		}
		d.CreatedAt = sqltable.Time(made)
		out = append(out, d)
		return nil
	}, `SELECT id, name, endpoint, p256dh, auth, created_at FROM notify_devices WHERE space = ? AND user_id = ? ORDER BY created_at, id`, b.o.Space, user)
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	return out, nil
}
