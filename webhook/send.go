package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/ringi-dev/ringi/internal/outbound"
)

// From the table to the receivers.

// claim is how long a message belongs to who sends it: after that, a process
// that was killed meanwhile has surely not recorded it, and it is sent again.
const claim = 15 * time.Second

// sendTime bounds one try, whatever the client allows. It is well within claim.
const sendTime = 12 * time.Second

// delivery is a message on its way to one endpoint.
type delivery struct {
	id       string
	typ      Type
	body     string
	attempts int // begun before this one
	due      int64
}

// send begins to send what is due, as far as there is room. One endpoint never
// waits for another, and no message for an older one that failed.
func (b *Outbox) send(ctx context.Context) error {
	due, err := b.due(ctx)
	if err != nil {
		return fmt.Errorf("look for messages: %w", err)
	}
	for _, name := range due {
		b.mu.Lock()
		room := b.o.AtOnce - b.flying[name]
		b.mu.Unlock()
		if room <= 0 || b.endpoints[name] == nil {
			continue
		}
		list, err := b.dueFor(ctx, name, room)
		if err != nil {
			return fmt.Errorf("look for messages to %s: %w", name, err)
		}
		for _, d := range list {
			mine, err := b.claim(ctx, name, d)
			if err != nil {
				return fmt.Errorf("claim message %s: %w", d.id, err)
			}
			if mine {
				b.fly(ctx, name, d)
			}
		}
	}
	return nil
}

// fly sends in the background.
func (b *Outbox) fly(ctx context.Context, name string, d delivery) {
	b.mu.Lock()
	b.flying[name]++
	b.mu.Unlock()
	b.wg.Go(func() {
		defer b.ring()
		defer func() {
			b.mu.Lock()
			b.flying[name]--
			b.mu.Unlock()
		}()
		b.deliver(context.WithoutCancel(ctx), b.endpoints[name], d)
	})
}

// due lists the endpoints that something is due for.
func (b *Outbox) due(ctx context.Context) ([]string, error) {
	var names []string
	err := b.t.list(ctx, func(scan func(...any) error) error {
		var name string
		err := scan(&name)
		names = append(names, name)
		return err
	}, `SELECT name FROM webhook_endpoints AS e WHERE space = ? AND disabled_at = 0 AND EXISTS
		(SELECT 1 FROM webhook_deliveries AS d WHERE d.space = e.space AND d.endpoint = e.name AND d.state = 'waiting' AND d.due_at <= ?) ORDER BY name`,
		b.o.Space, b.now())
	return names, err
}

func (b *Outbox) dueFor(ctx context.Context, name string, most int) ([]delivery, error) {
	var out []delivery
	err := b.t.list(ctx, func(scan func(...any) error) error {
		var d delivery
		err := scan(&d.id, &d.typ, &d.body, &d.attempts, &d.due)
		out = append(out, d)
		return err
	}, `SELECT id, type, body, attempts, due_at FROM webhook_deliveries
		WHERE space = ? AND endpoint = ? AND state = 'waiting' AND due_at <= ? ORDER BY due_at LIMIT ?`, b.o.Space, name, b.now(), most)
	return out, err
}

// claim counts a try, and moves the message out of others' sight; false where
// somebody was first.
func (b *Outbox) claim(ctx context.Context, name string, d delivery) (mine bool, err error) {
	err = b.t.change(ctx, func(tx *tx) error {
		n, err := tx.changed(`UPDATE webhook_deliveries SET attempts = attempts + 1, due_at = ?
			WHERE space = ? AND endpoint = ? AND id = ? AND state = 'waiting' AND due_at = ?`,
			b.now()+claim.Microseconds(), b.o.Space, name, d.id, d.due)
		mine = n == 1
		return err
	})
	return mine, err
}

// deliver makes one try and records how it went.
func (b *Outbox) deliver(ctx context.Context, e *Endpoint, d delivery) {
	begun := time.Now()
	status, err := b.post(ctx, e, d.id, []byte(d.body))
	log := b.o.Logger.With("endpoint", e.Name, "message", d.id, "type", d.typ, "attempt", d.attempts+1)
	end, recErr := b.record(ctx, e.Name, d, status, err)
	if recErr != nil {
		log.Error("record webhook: it will be sent again", "error", recErr)
		return
	}
	switch {
	case err == nil:
		log.Debug("webhook delivered", "status", status, "took", time.Since(begun).Round(time.Millisecond))
	case status == http.StatusGone:
		log.Error("webhook endpoint disabled: it answered 410")
	case end.IsZero():
		log.Error("webhook given up", "error", err)
	default:
		log.Warn("webhook failed", "error", err, "again", end)
	}
}

// post sends a message. Only a status of 2xx is no error; of the answer nothing
// but the status is looked at.
func (b *Outbox) post(ctx context.Context, e *Endpoint, id string, body []byte) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("the address is none")
	}
	r.Header.Set("Content-Type", "application/json")
	Sign(r.Header, e.Secrets, id, b.o.Now(), body)
	res, err := b.o.Client.Do(r)
	if err != nil {
		if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
			return 0, errors.New("no answer in time")
		}
		return 0, cut(outbound.Bare(err))
	}
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return res.StatusCode, fmt.Errorf("status %d", res.StatusCode)
	}
	// A short answer is read so that the connection can be used again.
	io.CopyN(io.Discard, res.Body, 4<<10)
	return res.StatusCode, nil
}

// cut bounds what is kept of an error.
func cut(err error) error {
	if text := err.Error(); len(text) > 300 {
		return errors.New(text[:300])
	}
	return err
}

// record ends a message, or says when the next try is: zero for never.
func (b *Outbox) record(ctx context.Context, name string, d delivery, status int, failed error) (next time.Time, err error) {
	state, why := "delivered", ""
	now := b.o.Now()
	due, ended := int64(0), now.UnixMicro()
	if failed != nil {
		state, why = "dead", failed.Error()
		if pause, more := wait(d.attempts + 1); more && status != http.StatusGone {
			next = now.Add(pause)
			state, due, ended = "waiting", next.UnixMicro(), 0
		}
	}
	return next, b.t.change(ctx, func(tx *tx) error {
		// Only who has the claim records: not one that slept past it.
		_, err := tx.changed(`UPDATE webhook_deliveries SET state = ?, due_at = ?, ended_at = ?, status = ?, error = ?
			WHERE space = ? AND endpoint = ? AND id = ? AND state = 'waiting' AND attempts = ?`,
			state, due, ended, status, why, b.o.Space, name, d.id, d.attempts+1)
		if err != nil || status != http.StatusGone {
			return err
		}
		if err := tx.exec(`UPDATE webhook_endpoints SET disabled_at = ?, disabled_why = ? WHERE space = ? AND name = ?`,
			now.UnixMicro(), "it answered 410", b.o.Space, name); err != nil {
			return err
		}
		_, err = b.bury(tx, name, "the endpoint is disabled: it answered 410")
		return err
	})
}

// prune takes away the rows of what ended long ago.
func (b *Outbox) prune(ctx context.Context) error {
	return b.t.change(ctx, func(tx *tx) error {
		for state, keep := range map[string]time.Duration{"delivered": b.o.KeepDelivered, "dead": b.o.KeepDead} {
			if err := tx.exec(`DELETE FROM webhook_deliveries WHERE space = ? AND state = ? AND ended_at < ?`,
				b.o.Space, state, b.o.Now().Add(-keep).UnixMicro()); err != nil {
				return fmt.Errorf("clear old messages: %w", err)
			}
		}
		return nil
	})
}
