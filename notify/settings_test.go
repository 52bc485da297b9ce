package notify

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

func TestWhen(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	local := func(s string) time.Time {
		at, err := time.ParseInLocation("2006-01-02 15:04", s, berlin)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	never := time.Time{}
	night := Settings{QuietFrom: 20 * 60, QuietTo: 7 * 60, Zone: "Europe/Berlin"}
	noon := Settings{QuietFrom: 12 * 60, QuietTo: 13 * 60, Zone: "Europe/Berlin"}
	with := func(s Settings, d Digest, n int) Settings {
		s.Digest, s.Minutes, s.At = d, n, n
		return s
	}
	for _, c := range []struct {
		name    string
		s       Settings
		since   time.Time
		expires time.Time
		want    time.Time
	}{
		{"at once", Settings{}, local("2026-06-01 10:00"), never, local("2026-06-01 10:00")},
		{"by day", night, local("2026-06-01 10:00"), never, local("2026-06-01 10:00")},
		{"in the evening", night, local("2026-06-01 20:00"), never, local("2026-06-02 07:00")},
		{"before dawn", night, local("2026-06-01 06:59"), never, local("2026-06-01 07:00")},
		{"at the end", night, local("2026-06-01 07:00"), never, local("2026-06-01 07:00")},
		{"expires in the night", night, local("2026-06-01 23:00"), local("2026-06-02 02:00"), local("2026-06-01 23:00")},
		{"expires soon after", night, local("2026-06-01 23:00"), local("2026-06-02 07:14"), local("2026-06-01 23:00")},
		{"expires later", night, local("2026-06-01 23:00"), local("2026-06-02 07:16"), local("2026-06-02 07:00")},
		{"at noon", noon, local("2026-06-01 12:30"), never, local("2026-06-01 13:00")},
		{"summer begins", night, local("2026-03-28 22:00"), never, local("2026-03-29 07:00")},
		{"winter begins", night, local("2026-10-24 22:00"), never, local("2026-10-25 07:00")},
		{"digest", with(Settings{}, Every, 30), local("2026-06-01 10:00"), never, local("2026-06-01 10:30")},
		{"digest into the night", with(night, Every, 30), local("2026-06-01 19:45"), never, local("2026-06-02 07:00")},
		{"digest is too late", with(Settings{}, Every, 600), local("2026-06-01 10:00"), local("2026-06-01 20:00"), local("2026-06-01 10:00")},
		{"daily", with(Settings{Zone: "Europe/Berlin"}, Daily, 9*60), local("2026-06-01 10:00"), never, local("2026-06-02 09:00")},
		{"daily, today", with(Settings{Zone: "Europe/Berlin"}, Daily, 9*60), local("2026-06-01 08:00"), never, local("2026-06-01 09:00")},
		{"daily in the night", with(night, Daily, 3*60), local("2026-06-01 10:00"), never, local("2026-06-02 07:00")},
		{"expired already", night, local("2026-06-01 23:00"), local("2026-06-01 22:00"), local("2026-06-01 23:00")},
		{"UTC", Settings{QuietFrom: 0, QuietTo: 60}, time.Date(2026, 6, 1, 0, 30, 0, 0, time.UTC), never, time.Date(2026, 6, 1, 1, 0, 0, 0, time.UTC)},
	} {
		if got := c.s.When(c.since, c.expires, 0); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if got := c.s.When(c.since, c.expires, time.Second); got.Before(c.since.Add(time.Second)) {
			t.Errorf("%s: nothing is gathered: %s", c.name, got)
		}
	}
}

func TestSettingsCheck(t *testing.T) {
	for name, c := range map[string]struct {
		s  Settings
		ok bool
	}{
		"zero":               {Settings{}, true},
		"all":                {Settings{Mail: "ana@example.org", Topic: "abc-DEF_123", Digest: Every, Minutes: 10, QuietFrom: 1200, QuietTo: 420, Zone: "Europe/Berlin"}, true},
		"no address":         {Settings{Mail: "ana"}, false},
		"with a name":        {Settings{Mail: "Ana <ana@example.org>"}, false},
		"two addresses":      {Settings{Mail: "a@example.org,b@example.org"}, false},
		"line break":         {Settings{Mail: "ana@example.org\r\nBcc: eve@example.org"}, false},
		"quoted line break":  {Settings{Mail: "\"a\r\nBcc: x\"@example.org"}, false},
		"space":              {Settings{Mail: "\"a b\"@example.org"}, false},
		"not ASCII":          {Settings{Mail: "anä@example.org"}, false},
		"long":               {Settings{Mail: strings.Repeat("a", 250) + "@example.org"}, false},
		"short topic":        {Settings{Topic: "abc"}, false},
		"topic with a slash": {Settings{Topic: "abcdefgh/json"}, false},
		"no minutes":         {Settings{Digest: Every}, false},
		"too many":           {Settings{Digest: Every, Minutes: 1441}, false},
		"unknown digest":     {Settings{Digest: "weekly"}, false},
		"25 o'clock":         {Settings{QuietTo: 1500}, false},
		"before midnight":    {Settings{At: -1}, false},
		"no zone":            {Settings{Zone: "Europe/Atlantis"}, false},
		"a path":             {Settings{Zone: "../../etc/passwd"}, false},
		"the server's zone":  {Settings{Zone: "Local"}, false},
	} {
		if err := c.s.Check(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEscalationTimes(t *testing.T) {
	made := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name         string
		e            Escalation
		lasts        time.Duration // 0: for ever
		remind, then time.Duration // 0: never
	}{
		{"nothing", Escalation{}, time.Hour, 0, 0},
		{"half", Escalation{Share: 50}, 10 * time.Hour, 5 * time.Hour, 0},
		{"half, then", Escalation{Share: 50, Then: "x"}, 10 * time.Hour, 5 * time.Hour, 8 * time.Hour},
		{"early, then", Escalation{After: 4 * time.Hour, Then: "x"}, 72 * time.Hour, 4 * time.Hour, 8 * time.Hour},
		{"late, then", Escalation{Share: 90, Then: "x"}, 10 * time.Hour, 9 * time.Hour, 9*time.Hour + 36*time.Minute},
		{"for ever", Escalation{After: time.Hour, Then: "x"}, 0, time.Hour, 2 * time.Hour},
		{"a share of for ever", Escalation{Share: 50, Then: "x"}, 0, 0, 0},
		{"too late", Escalation{After: time.Hour, Then: "x"}, time.Hour, 0, 0},
	} {
		expires := time.Time{}
		if c.lasts > 0 {
			expires = made.Add(c.lasts)
		}
		want := func(d time.Duration) time.Time {
			if d == 0 {
				return time.Time{}
			}
			return made.Add(d)
		}
		remind, then := c.e.times(made, expires)
		if !remind.Equal(want(c.remind)) || !then.Equal(want(c.then)) {
			t.Errorf("%s: %s and %s", c.name, remind, then)
		}
	}
}

// A mail address is used once its owner has shown that he reads it.
func TestConfirm(t *testing.T) {
	h := newHouse(t, nil)
	ana := h.add("ana", Settings{Mail: "ana@example.org"})
	h.add("ben", Settings{})
	h.asks("local:cho")
	h.step()
	list := h.got("ana", "ben")
	if n := list[0]; n.Kind != Confirm || len(n.Code) != 10 || n.Link != "https://ringi.example.org/me" || n.To.Mail != "ana@example.org" {
		t.Fatalf("notice %+v", n)
	}
	if strings.Contains(h.rows()+h.logged.String(), list[0].Code) {
		t.Error("the code is kept")
	}
	for _, wrong := range []string{"", "0000000000", h.book.code("local:ben", "ana@example.org"), h.book.code(ana, "eve@example.org")} {
		if ok, err := h.book.Confirm(t.Context(), ana, wrong); ok || err != nil {
			t.Errorf("%q is taken: %v", wrong, err)
		}
	}
	if ok, err := h.book.Confirm(t.Context(), ana, " "+strings.ToUpper(list[0].Code)+"\n"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	h.asks("local:cho")
	h.step()
	if n := h.got("ana", "ben")[0]; n.Kind != Asked || n.To.Mail != "ana@example.org" {
		t.Errorf("notice %+v", n)
	}
	h.set(ana, Settings{Mail: "ana@example.org", NoPush: true})
	if s, err := h.book.Settings(t.Context(), ana); err != nil || !s.Confirmed {
		t.Error("the same address is to be confirmed again", err)
	}
	h.set(ana, Settings{Mail: "other@example.org", Confirmed: true})
	if s, err := h.book.Settings(t.Context(), ana); err != nil || s.Confirmed {
		t.Error("another address is confirmed", err)
	}
	if err := h.book.SetSettings(t.Context(), ana, Settings{Mail: "x"}); !errors.Is(err, ErrSettings) {
		t.Error(err)
	}
	// Nobody has the server write to addresses of his choice all day.
	var err error
	for i := 0; i < 20 && err == nil; i++ {
		h.step()
		err = h.book.SetSettings(t.Context(), ana, Settings{Mail: fmt.Sprintf("a%d@example.org", i)})
	}
	if n := len(h.box.take()); !errors.Is(err, ErrSettings) || n > maxConfirms {
		t.Errorf("%d mails with codes, %v", n, err)
	}
	h.clock.on(61 * time.Minute)
	h.set(ana, Settings{Mail: "late@example.org"})
}
