package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/httpapi"
)

// S-37: each limit, at it and one beyond.
func TestS37_Limits(t *testing.T) {
	w := newWorld(t, setting{idle: true})
	for size, want := range map[int]int{httpapi.MaxBody: 422, httpapi.MaxBody + 1: 413} {
		frame := len(`{"nothing":""}`)
		body := `{"nothing":"` + strings.Repeat("x", size-frame) + `"}`
		if got := w.do("uma", "POST", "/v1/runs", body); got.status != want {
			t.Errorf("a body of %d bytes: %d, want %d", len(body), got.status, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	for i := range httpapi.MaxOpen {
		if i%httpapi.MaxStreams == 0 { // another token, the same person
			w.tokenFor(access.NewToken{Kind: access.PersonToken, Name: fmt.Sprint("more", i), Owner: access.LocalID("ben"), Scopes: []access.Scope{access.ScopeRead}})
		}
		w.follow(ctx, fmt.Sprint("more", i-i%httpapi.MaxStreams), "/v1/events", "")
	}
	if got := w.do("ben", "GET", "/v1/events", ""); got.status != 429 {
		t.Errorf("stream %d of a person: %d", httpapi.MaxOpen+1, got.status)
	}
	if got := w.do("ben", "HEAD", "/v1/events", ""); got.status != 429 {
		t.Errorf("its head: %d", got.status)
	}
	cancel()
	for end := time.Now().Add(90 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if got := w.do("ben", "HEAD", "/v1/events", ""); got.status == 200 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("streams that were left still count: %d", got.status)
		}
	}
}

func TestS23_WhoAsksTooOftenWaits(t *testing.T) {
	w := newWorld(t, setting{idle: true, options: func(o *httpapi.Options) {
		o.Limiter = access.NewLimiter(access.LimiterOptions{Principal: access.Rate{PerMinute: 60, Burst: 3}, Address: access.Rate{PerMinute: 60, Burst: 8}})
	}})
	var got []int
	for range 5 {
		r := w.do("uma", "GET", "/v1/agents", "")
		if r.status == 429 && (r.header.Get("Retry-After") == "" || r.problem(t).Type != "urn:ringi:problem:too-many") {
			t.Errorf("%v %s", r.header, r.body)
		}
		got = append(got, r.status)
	}
	for range 4 { // another person at the same address, until that is used up
		got = append(got, w.do("udo", "GET", "/v1/agents", "").status)
	}
	if fmt.Sprint(got) != "[200 200 200 429 429 200 200 200 429]" {
		t.Errorf("answers %v", got)
	}
}

// panics is a service that does.
type panics struct{ ringi.Service }

func (panics) Agents(context.Context) ([]ringi.AgentInfo, error) { panic("SECRET-DETAIL") }

func TestAPanicIsAnswered(t *testing.T) {
	w := newWorld(t, setting{idle: true, service: func(s ringi.Service) ringi.Service { return panics{s} }})
	got := w.do("uma", "GET", "/v1/agents", "")
	if p := got.problem(t); p.Status != 500 || strings.Contains(got.body+w.log.String(), "SECRET-DETAIL") {
		t.Errorf("%s\n%s", got.body, w.log.String())
	}
}

func TestNewWantsWhatItNeeds(t *testing.T) {
	if _, err := httpapi.New(httpapi.Options{}); err == nil {
		t.Error("an API without a service is made")
	}
}

// A server that stops ends its streams and polls.
func TestStoppingEndsStreams(t *testing.T) {
	stopped := make(chan struct{})
	w := newWorld(t, setting{options: func(o *httpapi.Options) { o.Done = stopped }})
	r := w.start("uma", "shop", "refund 5")
	inbox := w.follow(t.Context(), "ben", "/v1/events", "")
	log := w.follow(t.Context(), "ben", "/v1/runs/"+r.RunID+"/events", "")
	poll := make(chan int, 1)
	go func() { poll <- w.do("ben", "GET", "/v1/approvals/"+r.Pending[0].ID+"?wait=30s", "").status }()
	time.Sleep(50 * time.Millisecond)
	close(stopped)
	for _, events := range []<-chan sse{inbox, log} {
		for ok := true; ok; {
			_, ok = next(t, events)
		}
	}
	if status := <-poll; status != http.StatusOK {
		t.Errorf("the poll: %d", status)
	}
}
