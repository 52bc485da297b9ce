package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// sse is an event that came.
type sse struct{ kind, id, data string }

// follow opens a stream; the channel is closed when the server ends it.
func (w *world) follow(ctx context.Context, who, path, last string) <-chan sse {
	w.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", w.url+path, nil)
	w.must(err)
	req.Header.Set("Authorization", "Bearer "+w.token[who])
	req.Header.Set("Accept", "text/event-stream")
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(req)
	w.must(err)
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		b, _ := io.ReadAll(res.Body)
		w.t.Fatalf("follow %s: %d %s", path, res.StatusCode, b)
	}
	out := make(chan sse, 1000)
	go func() {
		defer close(out)
		defer res.Body.Close()
		var ev sse
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				ev.kind = value
			case "id":
				ev.id = value
			case "data":
				ev.data = value
			case "":
				if value != "" { // a comment
					out <- sse{kind: "comment", data: value}
				} else if ev.kind != "" {
					out <- ev
					ev = sse{}
				}
			}
		}
	}()
	return out
}

// next returns the next event of a stream that is no comment; false at its end.
func next(t *testing.T, events <-chan sse) (sse, bool) {
	t.Helper()
	for limit := time.After(90 * time.Second); ; {
		select {
		case ev, ok := <-events:
			if ok && ev.kind == "comment" {
				continue
			}
			return ev, ok
		case <-limit:
			t.Fatal("no event came")
		}
	}
}

func readReply(t *testing.T, conn net.Conn) reply {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, string(b)}
}

func TestRunStreamGoesOnWhereItStopped(t *testing.T) {
	w := newWorld(t, setting{})
	r := w.start("uma", "shop", "refund 5")
	ctx, cancel := context.WithCancel(t.Context())
	events := w.follow(ctx, "uma", "/v1/runs/"+r.RunID+"/events", "")
	var first []sse
	for range 3 {
		ev, ok := next(t, events)
		if !ok {
			t.Fatal("the stream ended")
		}
		first = append(first, ev)
	}
	cancel()
	if first[0].kind != "run_started" || first[0].id != "1" || first[2].kind != "approval_requested" {
		t.Errorf("events %v", first)
	}
	if got := w.decide("ben", w.asked("ben", r), `{"answer":"approve"}`); got.status != 201 {
		t.Fatal(got.body)
	}
	events = w.follow(t.Context(), "uma", "/v1/runs/"+r.RunID+"/events", "3")
	var kinds []string
	for {
		ev, ok := next(t, events)
		if !ok {
			break
		}
		kinds = append(kinds, ev.kind)
	}
	got := strings.Join(kinds, " ")
	if !strings.HasPrefix(got, "approval_decided") || !strings.HasSuffix(got, " end") {
		t.Errorf("it goes on with %s", got)
	}
	var page struct{ Events []struct{ Seq int } }
	w.do("uma", "GET", "/v1/runs/"+r.RunID+"/events?after=2", "").into(t, &page)
	if len(page.Events) == 0 || page.Events[0].Seq != 3 {
		t.Errorf("events after 2: %+v", page)
	}
}

func TestS27_InboxStreamIsTheReadersOwn(t *testing.T) {
	w := newWorld(t, setting{})
	ben, bea := w.follow(t.Context(), "ben", "/v1/events", ""), w.follow(t.Context(), "bea", "/v1/events", "")
	bot2 := w.follow(t.Context(), "bot2", "/v1/events", "")
	var ids []string
	var team, all run
	for i := range 2 {
		if i == 0 {
			team = w.start("uma", "shop", "teamwork 5") // ben's team alone
		} else {
			all = w.start("uma", "shop", "refund 5")
		}
		ev, _ := next(t, ben)
		var c map[string]any
		if err := json.Unmarshal([]byte(ev.data), &c); err != nil || len(c) != 4 || c["state"] != "pending" {
			t.Errorf("%+v", ev)
		}
		ids = append(ids, ev.id, c["id"].(string))
	}
	if ids[1] != team.Pending[0].ID || ids[3] != all.Pending[0].ID {
		t.Errorf("ben saw %v", ids)
	}
	ev, _ := next(t, bea)
	if !strings.Contains(ev.data, all.Pending[0].ID) || strings.Contains(ev.data, "secret") {
		t.Errorf("bea saw %+v", ev)
	}
	// Going on: from a cursor of one's own, from another's, from a made-up one.
	if ev, _ := next(t, w.follow(t.Context(), "ben", "/v1/events", ids[0])); !strings.Contains(ev.data, all.Pending[0].ID) {
		t.Errorf("going on gave %+v", ev)
	}
	for _, cursor := range []string{ids[0], "7", "bm90aGluZw"} {
		if ev, _ := next(t, w.follow(t.Context(), "bea", "/v1/events", cursor)); ev.kind != "reset" || ev.id == "" {
			t.Errorf("cursor %s gave %+v", cursor, ev)
		}
	}
	for len(bot2) > 0 {
		if ev := <-bot2; ev.kind != "comment" {
			t.Errorf("another agent's client saw %+v", ev)
		}
	}
}

func TestS27_StreamsEndWithTheRight(t *testing.T) {
	w := newWorld(t, setting{})
	r := w.start("uma", "shop", "refund 5")
	inbox := w.follow(t.Context(), "ben", "/v1/events", "")
	log := w.follow(t.Context(), "ben", "/v1/runs/"+r.RunID+"/events", "")
	for range 3 {
		next(t, log)
	}
	poll := make(chan reply, 1)
	go func() { poll <- w.do("ben", "GET", "/v1/approvals/"+r.Pending[0].ID+"?wait=30s", "") }()
	time.Sleep(50 * time.Millisecond)
	who, err := w.dir.ByToken(t.Context(), w.token["ben"])
	w.must(err)
	w.must(w.dir.RevokeToken(t.Context(), operator, who.TokenID))
	begun := time.Now()
	w.start("uma", "shop", "refund 6") // after the right is gone
	for _, events := range []<-chan sse{inbox, log} {
		if ev, ok := next(t, events); ok {
			t.Errorf("after the right was gone came %+v", ev)
		}
	}
	if got := <-poll; got.status != 401 {
		t.Errorf("the poll: %d %s", got.status, got.body)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestStreamsSayThatTheyLive(t *testing.T) {
	w := newWorld(t, setting{})
	r := w.start("uma", "shop", "refund 5")
	for _, path := range []string{"/v1/events", "/v1/runs/" + r.RunID + "/events"} {
		events := w.follow(t.Context(), "ben", path, "")
		for limit := time.After(90 * time.Second); ; {
			select {
			case ev := <-events:
				if ev.kind != "comment" {
					continue
				}
			case <-limit:
				t.Errorf("%s is silent", path)
			}
			break
		}
	}
}
