package notify

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/ringitest"
)

// marker is in every field of a request that somebody but the operator writes.
const marker = "zzmarkerzz"

// No word of what is asked, of the model, of the tool, of the policy or of the
// person who asks leaves by a notice, stays in the book or comes into the log:
// by any channel, on any path, errors too.
func TestS34_MarkersLeaveByNoNotice(t *testing.T) {
	box, service, keys := newMailbox(t, StartTLS), newPushService(t), newBrowserKeys(t)
	topic := newTopic(t)
	h := newHouse(t, func(c *engine.Config, o *Options) { mark(t, c); channels(t, o, box, service, topic) })
	ana := h.add("ana", Settings{Topic: "topic-of-ana", Mail: "ana@example.org"})
	if ok, err := h.book.Confirm(t.Context(), ana, h.book.code(ana, "ana@example.org")); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if err := h.book.AddDevice(t.Context(), ana, keys.device(service.URL+"/ana", "phone")); err != nil {
		t.Fatal(err)
	}
	res := h.asks("local:" + marker)
	r := res.Pending[0]
	whole, _ := json.Marshal(r)
	for _, field := range []string{"input", "preview", "proposed"} {
		if field != "proposed" && !strings.Contains(string(whole), marker+"-"+field) {
			t.Fatalf("the request's %s holds no marker: %s", field, whole)
		}
	}
	row, err := h.store.Request(t.Context(), "default", r.ID)
	if err != nil || !strings.Contains(row.Text, marker) {
		t.Fatalf("the row holds no marker: %+v %v", row, err)
	}
	// First every channel fails, in its own words, then each takes.
	box.refusing("data", &smtp.SMTPError{Code: 451, Message: marker + " of the server"})
	service.answer(http.StatusInternalServerError)
	topic.answer(http.StatusInternalServerError)
	h.step()
	box.refusing("data", nil)
	service.answer(http.StatusCreated)
	topic.answer(http.StatusOK)
	h.clock.on(time.Minute)
	h.step()
	h.clock.on(40 * time.Hour) // reminded of, then handed over, which the rule forbids
	h.step()
	h.clock.on(20 * time.Hour)
	h.step()

	sinks := map[string]string{"log": h.logged.String(), "book": h.rows(), "ntfy": strings.Join(topic.take(), "\n")}
	for _, e := range box.take() {
		plain, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(e.text)))
		if err != nil {
			t.Fatal(err)
		}
		sinks["mail"] += e.text + string(plain)
	}
	for _, body := range service.take("/ana") {
		plain, err := keys.decrypt(body)
		if err != nil {
			t.Fatal(err)
		}
		sinks["push"] += string(plain)
	}
	service.mu.Lock()
	sinks["push headers"] = fmt.Sprint(service.heads)
	service.mu.Unlock()
	for name, text := range sinks {
		if strings.Contains(strings.ToLower(text), marker) {
			t.Errorf("%s holds a marker:\n%s", name, text)
		}
		if name != "log" && name != "push headers" && !strings.Contains(text, r.ID) {
			t.Errorf("%s was told nothing, so it shows nothing:\n%s", name, text)
		}
	}
	if !strings.Contains(sinks["mail"], "Reminder") || strings.Count(sinks["log"], "send notice") != 3 {
		t.Errorf("the paths were not gone: %s", sinks["log"])
	}
	wal(t, h)
}

// wal looks into the files of the book themselves.
func wal(t *testing.T, h *house) {
	t.Helper()
	var path string
	if err := h.book.db.QueryRow(`SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&path); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), marker) {
			t.Errorf("%s holds a marker", f)
		}
	}
}

// mark puts markers into all that a request is made of.
func mark(t *testing.T, c *engine.Config) {
	t.Helper()
	type in struct {
		To string `json:"to" jsonschema:"the zzmarkerzz-schema"`
	}
	reg := ringi.NewRegistry()
	ringi.AddTool(reg, ringi.Tool{Name: marker + "_tool", Description: marker + "-description", Effect: ringi.NonIdempotentWrite, RequiresApproval: true, Group: marker + "-group"},
		func(context.Context, in) (string, error) { return marker + "-result", nil },
		ringi.ToolHooks{Preview: func(context.Context, ringi.ToolCall) (ringi.Preview, error) {
			return ringi.Preview{Text: marker + "-preview"}, nil
		}})
	c.Registry, c.System, c.Expiry = reg, marker+"-system", 72*time.Hour
	c.Deciders.People = []string{"local:ana"}
	c.Approval.Tools = map[string]ringi.ToolApproval{marker + "_tool": {Status: ringi.UserApproval, Reason: marker + "-reason"}}
	c.Model = ringitest.Script(ringitest.Turn(ringi.ModelTurn{Text: marker + "-text", Finish: ringi.FinishCalls,
		Calls: []ringi.ToolCall{{ModelID: marker + "-id", Tool: marker + "_tool", Input: `{"to":"` + marker + `-input"}`}}}), ringitest.Text(marker+"-end"))
}

// channels are the real ones, over servers of the test's.
func channels(t *testing.T, o *Options, box *mailbox, service *pushService, topic *topicServer) {
	t.Helper()
	o.Escalations = map[string]Escalation{"office": {Share: 50, Then: "leads"}}
	key, _, err := NewPushKey()
	if err != nil {
		t.Fatal(err)
	}
	push, err := NewPush(PushOptions{Key: key, Contact: "https://ringi.example.org", Client: service.Client()})
	if err != nil {
		t.Fatal(err)
	}
	letters, err := NewMail(MailOptions{Addr: box.addr, Config: &tls.Config{RootCAs: box.roots}, From: "ringi@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	ntfy, err := NewNtfy(NtfyOptions{URL: topic.URL})
	if err != nil {
		t.Fatal(err)
	}
	o.Channels = map[Channel]Notifier{ChannelMail: letters, ChannelPush: push, ChannelNtfy: ntfy}
}

// topicServer is an ntfy that keeps what it is sent.
type topicServer struct {
	*httptest.Server
	mu     sync.Mutex
	list   []string
	status int
}

func newTopic(t testing.TB) *topicServer {
	s := &topicServer{status: http.StatusOK}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.status == http.StatusOK {
			s.list = append(s.list, string(body))
		}
		w.WriteHeader(s.status)
		io.WriteString(w, marker)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *topicServer) answer(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

func (s *topicServer) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}
