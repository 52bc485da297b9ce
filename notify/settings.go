package notify

import (
	"fmt"
	"net/mail"
	"regexp"
	"strings"
	"time"
)

// Digest says how often a person is told.
type Digest string

// The digests.
const (
	AtOnce Digest = ""      // each run by itself
	Every  Digest = "every" // what came within so many minutes, together
	Daily  Digest = "daily" // once a day
)

// Settings are how one person is reached. The zero value is: at once, at any
// hour, on the devices that he has added.
type Settings struct {
	// Mail is his address; empty: no mail. It is used once he has confirmed it.
	Mail      string
	Confirmed bool
	// Topic is his topic of ntfy, a secret that he has made up; empty: no ntfy.
	Topic string
	// NoPush stops web push without forgetting the devices.
	NoPush bool
	Digest Digest
	// Minutes is for [Every]: 1 to 1,440.
	Minutes int
	// At is for [Daily]: minutes after midnight.
	At int
	// QuietFrom and QuietTo are minutes after midnight; equal: no quiet hours.
	// They may span midnight.
	QuietFrom, QuietTo int
	// Zone is the time zone of At and of the quiet hours, a name of the IANA
	// database; empty means UTC.
	Zone string
}

var topicForm = regexp.MustCompile(`^[A-Za-z0-9_-]{8,64}$`)

// Check refuses what makes no sense. The error is for the person.
func (s Settings) Check() error {
	if s.Mail != "" {
		if err := checkMail(s.Mail); err != nil {
			return err
		}
	}
	if s.Topic != "" && !topicForm.MatchString(s.Topic) {
		return fmt.Errorf("the topic has 8 to 64 letters, digits, hyphens and underscores")
	}
	switch s.Digest {
	case AtOnce:
	case Every:
		if s.Minutes < 1 || s.Minutes > day {
			return fmt.Errorf("a digest comes every 1 to %d minutes", day)
		}
	case Daily:
	default:
		return fmt.Errorf("unknown digest %q", s.Digest)
	}
	for _, m := range []int{s.At, s.QuietFrom, s.QuietTo} {
		if m < 0 || m >= day {
			return fmt.Errorf("a time of day is from 00:00 to 23:59")
		}
	}
	if _, err := s.location(); err != nil {
		return fmt.Errorf("there is no time zone %q: say one such as Europe/Berlin", s.Zone)
	}
	return nil
}

// checkMail takes a bare address (RFC 5322 addr-spec) of printable ASCII: what
// every mail server takes, and what cannot end a header's line.
func checkMail(address string) error {
	a, err := mail.ParseAddress(address)
	bad := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	if err != nil || a.Address != address || a.Name != "" || len(address) > 254 || strings.ContainsFunc(address, bad) {
		return fmt.Errorf("%q is no mail address", address)
	}
	return nil
}

const day = 24 * 60

// location is the zone. "Local" is the server's, and nobody's here.
func (s Settings) location() (*time.Location, error) {
	if s.Zone == "Local" {
		return nil, fmt.Errorf("unknown time zone %s", s.Zone)
	}
	return time.LoadLocation(s.Zone)
}

func (s Settings) zone() *time.Location {
	l, err := s.location()
	if err != nil {
		return time.UTC // a machine that lost its zones still tells people
	}
	return l
}

// urgentWithin is how long before its expiry a person is to hear of a request.
const urgentWithin = 15 * time.Minute

// When is when a person is told of a request that came up at since and expires
// at expires (zero: never): gather later, with the digest, and after the quiet
// hours; but at once where that would be less than 15 minutes before it expires.
func (s Settings) When(since, expires time.Time, gather time.Duration) time.Time {
	soonest := since.Add(gather)
	due := soonest
	switch s.Digest {
	case Every:
		due = since.Add(time.Duration(s.Minutes) * time.Minute)
	case Daily:
		due = s.next(since, s.At)
	}
	due = s.loud(due)
	if due.Before(soonest) {
		due = soonest
	}
	if !expires.IsZero() && due.After(soonest) && due.Add(urgentWithin).After(expires) {
		return soonest
	}
	return due
}

// next is the first time behind t at which the person's clock shows m.
func (s Settings) next(t time.Time, m int) time.Time {
	local := t.In(s.zone())
	for d := 0; ; d++ {
		at := time.Date(local.Year(), local.Month(), local.Day()+d, m/60, m%60, 0, 0, local.Location())
		if at.After(t) {
			return at
		}
	}
}

// loud is t, or the end of the quiet hours that t is in.
func (s Settings) loud(t time.Time) time.Time {
	if s.QuietFrom == s.QuietTo {
		return t
	}
	local := t.In(s.zone())
	m := local.Hour()*60 + local.Minute()
	quiet := s.QuietFrom <= m && m < s.QuietTo
	if s.QuietFrom > s.QuietTo {
		quiet = m >= s.QuietFrom || m < s.QuietTo
	}
	if !quiet {
		return t
	}
	return s.next(t, s.QuietTo)
}
