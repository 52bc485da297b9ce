package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/ringi-dev/ringi"
)

func kindText(k ringi.RequestKind) string {
	switch k {
	case ringi.KindApproval:
		return "leave to run a call"
	case ringi.KindInput:
		return "values that a person supplies"
	case ringi.KindApprovalAndInput:
		return "leave to run a call, and values that a person supplies"
	case ringi.KindResult:
		return "the result of a call that somebody else runs"
	case ringi.KindOutcome:
		return "what happened to a call that may have run"
	}
	return fmt.Sprint(escapedOne(k))
}

func effectText(t ringi.Tool) string {
	text := "says nothing of what it does, so it counts as a change that is not repeated"
	switch t.Effect {
	case ringi.ReadOnly:
		text = "reads (read_only)"
	case ringi.IdempotentWrite:
		text = "changes something; twice is once (idempotent_write)"
	case ringi.NonIdempotentWrite:
		text = "changes something; twice is twice (non_idempotent_write)"
	}
	if t.AdminOnly {
		text += "; for admins"
	}
	return text
}

func initiatorText(ids []string) string {
	if len(ids) == 0 {
		return "nobody who is known"
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = fmt.Sprint(escapedOne(id))
		if id == "" {
			names[i] = "somebody unknown"
		}
	}
	return strings.Join(names, ", ")
}

func decidersText(v requestView) string {
	text := "any person"
	if !v.Deciders.IsZero() {
		var who []string
		for _, id := range v.Deciders.People {
			who = append(who, fmt.Sprint(escapedOne(id)))
		}
		for _, team := range v.Deciders.Teams {
			who = append(who, fmt.Sprint("team ", escapedOne(team)))
		}
		text = strings.Join(who, ", ")
	}
	if v.Tool.AdminOnly {
		text += "; an admin"
	}
	if v.FourEyes {
		text += "; four eyes: none of those who asked may approve"
	}
	return text
}

func answersText(v requestView) string {
	names := make([]string, len(v.Answers))
	for i, a := range v.Answers {
		names[i] = strings.ReplaceAll(fmt.Sprint(escapedOne(a)), "_", "-")
	}
	return strings.Join(names, ", ")
}

func signedText(signature string) string {
	if signature == "" {
		return "not signed"
	}
	return "signed"
}

// timeText is a moment in UTC with its distance from now.
func timeText(t, now time.Time) string {
	d := t.Sub(now)
	distance := "in " + durationText(d)
	if d < 0 {
		distance = durationText(-d) + " ago"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z") + ", " + distance
}

// durationText is a duration in its two largest units.
func durationText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}
