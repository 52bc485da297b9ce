package httpapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ringi-dev/ringi/access"
)

// open counts the streams and long polls that are open.
type open struct {
	mu        sync.Mutex
	principal map[string]int
	session   map[string]int
}

// enter counts one more, or refuses; call leave when it ends.
func (o *open) enter(w access.Who, stream bool) (leave func(), err error) {
	session := w.TokenID
	if session == "" {
		session = w.CSRF() // one a session
	}
	session = w.Principal.ID + "\n" + session
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.principal == nil {
		o.principal, o.session = map[string]int{}, map[string]int{}
	}
	if o.principal[w.Principal.ID] >= MaxOpen {
		return nil, fmt.Errorf("%w: %d of one principal", errStreams, MaxOpen)
	}
	if stream && o.session[session] >= MaxStreams {
		return nil, fmt.Errorf("%w: %d streams of one session or token", errStreams, MaxStreams)
	}
	o.add(w.Principal.ID, session, stream, 1)
	var once sync.Once
	return func() {
		once.Do(func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.add(w.Principal.ID, session, stream, -1)
		})
	}, nil
}

func (o *open) add(principal, session string, stream bool, n int) {
	if o.principal[principal] += n; o.principal[principal] == 0 {
		delete(o.principal, principal)
	}
	if !stream {
		return
	}
	if o.session[session] += n; o.session[session] == 0 {
		delete(o.session, session)
	}
}

// parseWait reads how long a poll waits: at most MaxWait.
func parseWait(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > MaxWait {
		return 0, fmt.Errorf("%w: wait is a duration from 0s to %s, such as 20s", errUnread, MaxWait)
	}
	return d, nil
}

// poll looks until look is done, for as long as wait says. The rights of w are
// read anew meanwhile. A time that runs out is no error.
func (s *server) poll(ctx context.Context, w access.Who, wait string, look func(context.Context, access.Who) (bool, error)) error {
	limit, err := parseWait(wait)
	if err != nil || limit == 0 {
		return err
	}
	leave, err := s.open.enter(w, false)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for checked := time.Now(); ; {
		g := s.glance()
		done, err := look(ctx, w)
		switch {
		case done:
			return nil
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		if !s.pause(ctx, g) {
			return nil
		}
		if time.Since(checked) < s.Heartbeat/3 {
			continue
		}
		if w, err = s.Directory.Recheck(context.WithoutCancel(ctx), w); err != nil {
			return err
		}
		checked = time.Now()
	}
}
