package notify

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
)

// atOnce is how many notices of a channel are sent at a time: one address that
// does not answer holds up no other.
const atOnce = 4

// deliver sends what is due on a channel until ctx is done.
func (d *Dispatcher) deliver(ctx context.Context, c Channel) {
	for {
		for d.sendDue(ctx, c) {
		}
		select {
		case <-ctx.Done():
			return
		case <-d.bells[c]:
		}
	}
}

// sendDue sends a handful; false where there was nothing, or something failed.
func (d *Dispatcher) sendDue(ctx context.Context, c Channel) bool {
	if ctx.Err() != nil {
		return false
	}
	letters, err := d.o.Book.claim(ctx, c, atOnce)
	if err != nil {
		if ctx.Err() == nil {
			d.log.Warn("read notices that are due", "channel", c, "error", err)
		}
		return false
	}
	var wg sync.WaitGroup
	for _, l := range letters {
		wg.Go(func() {
			if err := d.send(ctx, l); err != nil && ctx.Err() == nil {
				d.log.Warn("record notice", "notice", l.id, "error", err)
			}
		})
	}
	wg.Wait()
	return len(letters) > 0
}

// send sends one letter and records what became of it. That it went out is
// recorded even where ctx ends meanwhile.
func (d *Dispatcher) send(ctx context.Context, l letter) error {
	b := d.o.Book
	n, err := d.notice(ctx, l)
	if err != nil {
		return err // it is due again when its lease ends
	}
	keep := context.WithoutCancel(ctx)
	if n == nil {
		return b.end(keep, l.id, moot, "")
	}
	limited, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	err = try(limited, d.o.Channels[l.channel], *n)
	switch {
	case err == nil:
		return b.end(keep, l.id, sent, "")
	case ctx.Err() != nil:
		return b.putOff(keep, l.id, "the server stopped", 0)
	case errors.Is(err, ErrGone):
		d.log.Info("forget device that is gone", "user", l.user, "notice", l.id)
		if l.device != "" {
			if err := b.RemoveDevice(keep, l.user, l.device); err != nil {
				return err
			}
		}
	case !errors.Is(err, ErrRefused) && b.now().Sub(l.made) < d.o.GiveUp:
		wait := backOff(l.tries)
		d.log.Warn("send notice", "channel", l.channel, "user", l.user, "notice", l.id, "try", l.tries, "again_in", wait.String(), "error", err)
		return b.putOff(keep, l.id, err.Error(), wait)
	default:
		d.log.Error("give notice up", "channel", l.channel, "user", l.user, "notice", l.id, "try", l.tries, "error", err)
	}
	return b.end(keep, l.id, givenUp, err.Error())
}

// try sends a notice; a notifier that panics has failed.
func try(ctx context.Context, to Notifier, n Notice) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the notifier panicked")
		}
	}()
	return to.Notify(ctx, n)
}

// backOff is how long to wait behind a number of tries: 10 s, then twice as
// long each time, an hour at most.
func backOff(tries int) time.Duration {
	return min(10*time.Second<<min(max(tries-1, 0), 10), time.Hour)
}

// notice is a letter as it is now; nil where there is nothing to say any more.
func (d *Dispatcher) notice(ctx context.Context, l letter) (*Notice, error) {
	s, err := d.o.Book.Settings(ctx, l.user)
	if err != nil {
		return nil, err
	}
	to, err := d.recipient(ctx, l.user, s, l.channel, l.device)
	if err != nil || to == nil {
		return nil, err
	}
	n := &Notice{ID: l.id, Kind: l.kind, To: *to, Settings: d.o.PublicURL + "/me", Link: d.o.PublicURL + "/", Tag: "digest"}
	if l.kind == Confirm {
		if s.Mail == "" || s.Confirmed {
			return nil, nil
		}
		n.Code, n.Link = d.o.Book.code(l.user, s.Mail), n.Settings
		return n, nil
	}
	if !s.Confirmed && l.channel == ChannelMail || s.NoPush && l.channel == ChannelPush {
		return nil, nil
	}
	return d.filled(ctx, n, s)
}

// filled says what a notice is about.
func (d *Dispatcher) filled(ctx context.Context, n *Notice, s Settings) (*Notice, error) {
	about, err := d.o.Book.about(ctx, n.ID)
	if err != nil {
		return nil, err
	}
	var first known
	runs, agents := map[string]bool{}, map[string]bool{}
	for _, k := range about {
		if still, err := d.pending(ctx, k.id); err != nil {
			return nil, err
		} else if !still {
			continue
		}
		if n.Waiting++; n.Waiting == 1 {
			first = k
		}
		runs[k.run], agents[k.agent] = true, true
		n.Risk = riskier(n.Risk, k.risk)
		if !k.expires.IsZero() && (n.Expires.IsZero() || k.expires.Before(n.Expires)) {
			n.Expires = k.expires
		}
	}
	switch {
	case n.Waiting == 0:
		return nil, nil
	case n.Waiting == 1:
		n.Link, n.Tag = d.o.PublicURL+"/a/"+url.PathEscape(first.id), first.run
	case len(runs) == 1:
		n.Link, n.Tag = d.o.PublicURL+"/run/"+url.PathEscape(first.run), first.run
	}
	if len(agents) == 1 {
		n.Agent = first.agent
	}
	n.Urgent = n.Kind == Reminder
	if !n.Expires.IsZero() {
		n.Urgent = n.Urgent || n.Expires.Sub(d.o.Book.now()) < time.Hour
		n.Expires = n.Expires.In(s.zone())
	}
	return n, nil
}

// recipient is a person with his address; nil where either is gone.
func (d *Dispatcher) recipient(ctx context.Context, user string, s Settings, c Channel, device string) (*Recipient, error) {
	u, err := d.o.Directory.User(ctx, user)
	if isHidden(err) || err == nil && u.Disabled {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	to := &Recipient{User: user, Name: u.Name}
	switch c {
	case ChannelMail:
		to.Mail = s.Mail
		if to.Mail == "" {
			return nil, nil
		}
	case ChannelNtfy:
		to.Topic = s.Topic
		if to.Topic == "" {
			return nil, nil
		}
	case ChannelPush:
		devices, err := d.o.Book.Devices(ctx, user)
		if err != nil {
			return nil, err
		}
		for _, dev := range devices {
			if dev.ID == device {
				to.Device = dev
				return to, nil
			}
		}
		return nil, nil
	}
	return to, nil
}

// Tried is what became of a test on one of a person's addresses.
type Tried struct {
	Channel Channel
	// Name tells the addresses of a channel apart.
	Name string
	Err  error
}

// Try sends a test to each of a person's addresses, and says what became of each:
// five times in a minute at most, then it is [ErrSettings].
// It is recorded nowhere.
func (d *Dispatcher) Try(ctx context.Context, user string) ([]Tried, error) {
	if err := d.mayTry(user); err != nil {
		return nil, err
	}
	s, err := d.o.Book.Settings(ctx, user)
	if err != nil {
		return nil, err
	}
	ways, err := d.waysTo(ctx, user, s)
	if err != nil {
		return nil, err
	}
	out := make([]Tried, len(ways))
	var wg sync.WaitGroup
	for i, a := range ways {
		out[i] = Tried{Channel: a.channel, Name: a.name}
		wg.Go(func() { out[i].Err = d.tryOne(ctx, user, s, a) })
	}
	wg.Wait()
	return out, nil
}

// maxTries is how often in a minute somebody has a test sent: where his devices
// are reached is what he says, and each test is a request to all of them.
const maxTries = 5

func (d *Dispatcher) mayTry(user string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.o.Book.now()
	for who, times := range d.tries {
		times = slices.DeleteFunc(times, func(t time.Time) bool { return now.Sub(t) >= time.Minute || t.After(now) })
		if d.tries[who] = times; len(times) == 0 {
			delete(d.tries, who)
		}
	}
	if len(d.tries[user]) >= maxTries {
		return fmt.Errorf("%w: that were %d tests within a minute: wait a while", ErrSettings, maxTries)
	}
	if d.tries == nil {
		d.tries = map[string][]time.Time{}
	}
	d.tries[user] = append(d.tries[user], now)
	return nil
}

func (d *Dispatcher) tryOne(ctx context.Context, user string, s Settings, a address) error {
	to, err := d.recipient(ctx, user, s, a.channel, a.device)
	if err != nil {
		return err
	}
	if to == nil {
		return fmt.Errorf("%w: there is no such user, or he is disabled", ErrRefused)
	}
	limited, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	err = try(limited, d.o.Channels[a.channel], Notice{ID: ringi.NewID("ntc_", d.o.Book.now()), Kind: Test, To: *to,
		Link: d.o.PublicURL + "/", Settings: d.o.PublicURL + "/me", Tag: "test"})
	if errors.Is(err, ErrGone) && a.device != "" {
		return errors.Join(err, d.o.Book.RemoveDevice(ctx, user, a.device))
	}
	return err
}
