// Package openai is [ringi.Model] over OpenAI's API, and over every server that
// speaks its Chat Completions: Ollama, vLLM, gateways. It stands on the vendor's
// own SDK.
//
// Everything streams. The engine decides what runs and what is tried again; this
// package does neither: it retries nothing, and it offers what it is given.
package openai

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/vendor"
)

// API says which of the vendor's two interfaces is spoken.
type API string

// The interfaces.
const (
	// Auto is Responses for OpenAI itself, and Chat Completions for any other
	// address.
	Auto API = ""
	// Responses is POST /responses. Nothing is stored with the vendor; reasoning
	// comes back encrypted and is sent back unchanged.
	Responses API = "responses"
	// Chat is POST /chat/completions.
	Chat API = "chat"
)

// address is the vendor's own.
const address = "https://api.openai.com/v1"

// Options are what a model may be given. The zero value, and nil, speak to
// OpenAI with the key of the environment.
type Options struct {
	// API is the interface; the zero value is [Auto].
	API API
	// BaseURL is another server's address, with the version:
	// "http://localhost:11434/v1". Empty is OpenAI's own. The environment does not
	// change it: where a conversation goes is the operator's word.
	BaseURL string
	// Key is the API key. Empty takes OPENAI_API_KEY, but only for OpenAI's own
	// address: that key is nobody else's. A server that asks for none needs none.
	Key string
	// Header is sent with every request, for gateways. Its values are kept out of
	// errors, as the key is.
	Header http.Header
	// MaxOutputTokens bounds an answer, reasoning included. Zero: the vendor's.
	MaxOutputTokens int64
	// Temperature is sent where it is set. Reasoning models refuse it.
	Temperature *float64
	// Effort is the reasoning effort, as the vendor calls it ("low"). Empty: the
	// vendor's.
	Effort string
	// Summary asks for a summary of the reasoning ("auto"): the only reasoning
	// that OpenAI streams. Responses only. Empty: none.
	Summary string
	// NoReasoning says that the model does not reason, where its name looks as if
	// it did: then no encrypted reasoning is asked for.
	NoReasoning bool
	// NoStrict keeps strict mode off. Else it is on for every tool whose schema
	// fits the vendor's subset; the engine checks every input all the same.
	NoStrict bool
	// Hosted are MCP servers that the vendor calls itself. Responses only; see
	// [Hosted].
	Hosted []Hosted
	// IdleTimeout is how long the vendor may be silent, before its answer and in
	// it. Zero: 5 min.
	IdleTimeout time.Duration
	// Timeout bounds a whole answer. Zero: 30 min.
	Timeout time.Duration
	// Transport carries the requests; nil is http.DefaultTransport.
	Transport http.RoundTripper
}

// New makes a model of a name, as the vendor writes it: "gpt-5-mini". o may be
// nil; it is read once. A fault in it, as a missing key, is the error of every
// call: it is of class auth or bad_request, and nothing is sent.
//
// Errors of the model are *ringi.ModelError, see its classes.
func New(name string, o *Options) ringi.Model {
	m := &model{name: name}
	if o != nil {
		m.o = *o
	}
	base, key, own := whereTo(&m.o)
	m.o.Key = ""
	if m.o.API == Auto {
		m.o.API = Chat
		if own {
			m.o.API = Responses
		}
	}
	m.fault = check(name, base, key, own, &m.o)
	m.seal = fmt.Sprintf("openai/%s %q %q", m.o.API, base, name)
	secrets := secretsOf(key, &m.o)
	m.watch = func(ctx context.Context) (context.Context, *vendor.Watched) {
		return vendor.Watch(ctx, "openai", vendor.Limits{Idle: m.o.IdleTimeout, Total: m.o.Timeout}, secrets...)
	}
	m.send = newSender(base, key, &m.o)
	m.hosted = newHosted(m.o.Hosted, key)
	m.o.Header, m.o.Hosted = nil, nil
	return m
}

// whereTo is the address, the key for it, and whether it is OpenAI's own.
func whereTo(o *Options) (base, key string, own bool) {
	base, key = strings.TrimSuffix(o.BaseURL, "/"), o.Key
	if own = base == "" || base == address; own {
		base = address
		if key == "" {
			key = os.Getenv("OPENAI_API_KEY")
		}
	}
	return base, key, own
}

func secretsOf(key string, o *Options) []string {
	out := []string{key}
	for _, h := range o.Hosted {
		out = append(out, h.Authorization)
	}
	for _, values := range o.Header {
		for _, v := range values {
			if len(v) >= 8 {
				out = append(out, v)
			}
		}
	}
	return out
}

func check(name, base, key string, own bool, o *Options) error {
	class := ringi.ModelBadRequest
	var err error
	switch {
	case name == "":
		err = errors.New("model has no name")
	case o.API != Responses && o.API != Chat:
		err = fmt.Errorf("unknown API %q: say responses or chat", o.API)
	case !strings.HasPrefix(base, "https://") && !strings.HasPrefix(base, "http://"):
		err = errors.New("base URL is neither http nor https")
	case own && key == "":
		class, err = ringi.ModelAuth, errors.New("no key: set Options.Key or OPENAI_API_KEY")
	case strings.ContainsAny(key, "\r\n"):
		class, err = ringi.ModelAuth, errors.New("key holds a line break")
	case o.API == Chat && len(o.Hosted) > 0:
		err = errors.New("hosted MCP servers need the Responses API")
	default:
		err = checkHosted(o.Hosted)
	}
	if err == nil {
		return nil
	}
	return &ringi.ModelError{Class: class, Provider: "openai", Err: err}
}

// sender posts a body to one of the interfaces and gives the answer.
type sender func(ctx context.Context, path string, body any) (*http.Response, error)

// newSender makes a service of the SDK's by hand: its constructors read a dozen
// variables of the environment, among them where to send everything. It is the
// service of Responses for both interfaces, with the body and the path that it is
// given: the service of Chat Completions is in the SDK's root package, which
// reaches every other (see chatRequest). It is held by a function: a linker keeps
// what the types of our fields reach.
func newSender(base, key string, o *Options) sender {
	opts := []option.RequestOption{
		option.WithHTTPClient(vendor.Client(vendor.Transport{Base: o.Transport})),
		option.WithBaseURL(base + "/"),
		option.WithMaxRetries(0), // the engine retries
	}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	for name, values := range o.Header {
		for _, v := range values {
			opts = append(opts, option.WithHeaderAdd(name, v))
		}
	}
	service := responses.ResponseService{Options: opts}
	return func(ctx context.Context, path string, body any) (res *http.Response, err error) {
		_, err = service.New(ctx, param.Override[responses.ResponseNewParams](body), option.WithMiddleware(onPath(path)),
			option.WithJSONSet("stream", true), option.WithHeader("Accept", "text/event-stream"), option.WithResponseBodyInto(&res))
		return res, err
	}
}

// onPath sends what goes to Responses to another interface of the same server.
func onPath(path string) option.Middleware {
	return func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		if rest, ok := strings.CutSuffix(req.URL.Path, "responses"); ok && path != "responses" {
			to := *req.URL
			to.Path = rest + path
			if to.RawPath != "" {
				to.RawPath = strings.TrimSuffix(to.RawPath, "responses") + path
			}
			req.URL = &to
		}
		return next(req)
	}
}

// model is one model of the vendor.
type model struct {
	name   string
	o      Options // without key, headers and hosted servers
	send   sender
	watch  func(context.Context) (context.Context, *vendor.Watched)
	hosted hosted
	seal   string
	fault  error
}

// Format prints the model's name alone, whatever the verb: it holds secrets.
func (m *model) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "openai model %q", m.name) }

// Generate streams one answer.
func (m *model) Generate(ctx context.Context, req ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		out := vendor.NewSink(yield)
		out.End(m.generate(ctx, &req, out))
	}
}

func (m *model) generate(ctx context.Context, req *ringi.ModelRequest, out *vendor.Sink) error {
	if m.fault != nil {
		return m.fault
	}
	form := vendor.Form{Provider: "openai", Seal: m.seal, MaxID: maxID}
	entries, err := vendor.Conversation(req.Messages, form)
	if err != nil {
		return err
	}
	ctx, call := m.watch(ctx)
	defer call.End()
	if m.o.API == Chat {
		return m.post(ctx, call, "chat/completions", m.chatBody(req, entries), &chatStream{m: m, out: out, call: call})
	}
	asked, body := m.responsesBody(req, entries)
	err = m.post(ctx, call, "responses", body, &responseStream{m: m, out: out, call: call, allowed: asked})
	if err != nil && untaken(err) {
		unsent.put(asked.sent...) // nobody has heard the yes
	}
	return err
}

// maxID is the longest call id that both interfaces take from elsewhere: Chat
// Completions refuses more than 40 characters, Responses more than 64.
const maxID = 40

// stream reads the events of an answer; done is set by the one that closes it.
type stream interface {
	read(data []byte) (done bool, err error)
}

// post sends a body and reads the stream that comes back. What ends before the
// event that closes it is broken (S-38).
func (m *model) post(ctx context.Context, call *vendor.Watched, path string, body any, s stream) error {
	res, err := m.send(ctx, path, body)
	if err != nil {
		return call.Err(err, readFault)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return call.Err(fmt.Errorf("status %d is no answer", res.StatusCode), nil)
	}
	events := ssestream.NewDecoder(res)
	for events.Next() {
		done, err := s.read(events.Event().Data)
		if err != nil {
			return call.Err(err, nil)
		}
		if done {
			return nil
		}
	}
	return call.Err(events.Err(), nil)
}
