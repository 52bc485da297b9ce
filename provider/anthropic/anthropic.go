// Package anthropic is [ringi.Model] over Anthropic's Messages API, and over
// servers that speak it. It stands on the vendor's own SDK.
//
// Everything streams. The engine decides what runs and what is tried again; this
// package does neither: it retries nothing, and it offers what it is given.
//
// The vendor's own tools (web search, code execution and their kin) and its
// connector for MCP servers run without asking anybody. They cannot be
// configured, they are in no request, and a turn that holds a call of one is
// broken (S-22).
package anthropic

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/vendor"
)

// address is the vendor's own.
const address = "https://api.anthropic.com"

// Thinking says whether the model thinks before it speaks.
type Thinking string

// The ways.
const (
	// ThinkingDefault is what the model does by itself.
	ThinkingDefault Thinking = ""
	// ThinkingAdaptive lets the model decide when and how much.
	ThinkingAdaptive Thinking = "adaptive"
	// ThinkingOff keeps it from thinking, where the model can be kept from it.
	ThinkingOff Thinking = "disabled"
)

// Cache says how long the vendor keeps the beginning of a prompt for the next
// request.
type Cache string

// The times.
const (
	// CacheOff sends nothing of a cache.
	CacheOff Cache = ""
	// Cache5m is five minutes.
	Cache5m Cache = "5m"
	// Cache1h is an hour: what outlasts most waits for a person. It costs more to
	// write.
	Cache1h Cache = "1h"
)

// Options are what a model may be given. The zero value, and nil, speak to
// Anthropic with the key of the environment.
type Options struct {
	// BaseURL is another server's address, without the version:
	// "http://localhost:4000". Empty is Anthropic's own. The environment does not
	// change it: where a conversation goes is the operator's word.
	BaseURL string
	// Key is the API key, sent as X-Api-Key. Empty takes ANTHROPIC_API_KEY, but
	// only for Anthropic's own address: that key is nobody else's. A server that
	// asks for none needs none.
	Key string
	// Header is sent with every request, for gateways. Its values are kept out of
	// errors, as the key is.
	Header http.Header
	// MaxOutputTokens bounds an answer, thinking included. The vendor wants a
	// number; zero is 16,384, and ThinkingBudget more where that is set. A turn that
	// reaches it runs nothing.
	MaxOutputTokens int64
	// Temperature is sent where it is set.
	Temperature *float64
	// Effort is how much effort the model makes, as the vendor calls it ("low").
	// Empty: the vendor's.
	Effort string
	// Summary says what is shown of the thinking, as the vendor calls it
	// ("summarized", "omitted"). It needs Thinking or ThinkingBudget. Empty: the
	// vendor's.
	Summary string
	// Thinking says whether the model thinks. See ThinkingBudget for models that
	// want to be told how much.
	Thinking Thinking
	// ThinkingBudget makes a model think with so many tokens, at least 1,024. Zero:
	// not so. Where a turn in the making was begun by another model, its thinking is
	// missing and the vendor would refuse the request: this model then does not
	// think before the turn's end.
	ThinkingBudget int64
	// Cache asks the vendor to keep tools, system prompt and conversation. The
	// zero value is [CacheOff].
	Cache Cache
	// IdleTimeout is how long the vendor may be silent, before its answer and in
	// it. Zero: 5 min.
	IdleTimeout time.Duration
	// Timeout bounds a whole answer. Zero: 30 min.
	Timeout time.Duration
	// Transport carries the requests; nil is http.DefaultTransport.
	Transport http.RoundTripper
}

// New makes a model of a name, as the vendor writes it: "claude-sonnet-5-5". o
// may be nil; it is read once. A fault in it, as a missing key, is the error of
// every call: it is of class auth or bad_request, and nothing is sent.
//
// Errors of the model are *ringi.ModelError, see its classes.
func New(name string, o *Options) ringi.Model {
	m := &model{name: name}
	if o != nil {
		m.o = *o
	}
	base, key, own := whereTo(&m.o)
	m.o.Key = ""
	m.fault = check(name, base, key, own, &m.o)
	m.seal = fmt.Sprintf("anthropic %q %q", base, name)
	secrets := secretsOf(key, m.o.Header)
	m.watch = func(ctx context.Context) (context.Context, *vendor.Watched) {
		return vendor.Watch(ctx, provider, vendor.Limits{Idle: m.o.IdleTimeout, Total: m.o.Timeout}, secrets...)
	}
	m.send = newSender(base, key, &m.o)
	m.o.Header = nil
	return m
}

// provider is the name in errors.
const provider = "anthropic"

// whereTo is the address, the key for it, and whether it is Anthropic's own.
func whereTo(o *Options) (base, key string, own bool) {
	base, key = strings.TrimSuffix(o.BaseURL, "/"), o.Key
	if own = base == "" || base == address; own {
		base = address
		if key == "" {
			key = os.Getenv("ANTHROPIC_API_KEY")
		}
	}
	return base, key, own
}

func secretsOf(key string, header http.Header) []string {
	out := []string{key}
	for _, values := range header {
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
	case !strings.HasPrefix(base, "https://") && !strings.HasPrefix(base, "http://"):
		err = errors.New("base URL is neither http nor https")
	case strings.HasSuffix(base, "/v1"):
		err = errors.New("base URL ends in /v1: leave the version out")
	case own && key == "":
		class, err = ringi.ModelAuth, errors.New("no key: set Options.Key or ANTHROPIC_API_KEY")
	case strings.ContainsAny(key, "\r\n"):
		class, err = ringi.ModelAuth, errors.New("key holds a line break")
	case !slices.Contains([]Thinking{ThinkingDefault, ThinkingAdaptive, ThinkingOff}, o.Thinking):
		err = fmt.Errorf("unknown thinking %q: say adaptive or disabled", o.Thinking)
	case o.ThinkingBudget != 0 && o.Thinking != ThinkingDefault:
		err = errors.New("a thinking budget leaves no choice: say Thinking or ThinkingBudget")
	case o.ThinkingBudget != 0 && o.ThinkingBudget < 1024:
		err = errors.New("thinking budget is less than 1024 tokens")
	case o.MaxOutputTokens < 0, o.ThinkingBudget > 0 && o.MaxOutputTokens > 0 && o.MaxOutputTokens <= o.ThinkingBudget:
		err = errors.New("the most tokens of an answer are fewer than its thinking takes")
	case o.Summary != "" && o.ThinkingBudget == 0 && o.Thinking != ThinkingAdaptive:
		err = errors.New("a summary of which thinking? Say Thinking or ThinkingBudget")
	case !slices.Contains([]Cache{CacheOff, Cache5m, Cache1h}, o.Cache):
		err = fmt.Errorf("unknown cache %q: say 5m or 1h", o.Cache)
	}
	if err == nil {
		return nil
	}
	return &ringi.ModelError{Class: class, Provider: provider, Err: err}
}

// sender posts a body and gives the answer.
type sender func(ctx context.Context, body any) (*http.Response, error)

// newSender makes the SDK's client by hand: its constructor reads a dozen
// variables of the environment and files of the user's, among them where to send
// everything. The client is held by a function: in a field of ours its type would
// reach every service of the SDK, and a linker keeps what can be reached.
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
	client := anthropic.Client{Options: opts}
	return func(ctx context.Context, body any) (res *http.Response, err error) {
		err = client.Post(ctx, "v1/messages", body, &res, option.WithJSONSet("stream", true), option.WithHeader("Accept", "text/event-stream"))
		return res, err
	}
}

// model is one model of the vendor.
type model struct {
	name  string
	o     Options // without key and headers
	send  sender
	watch func(context.Context) (context.Context, *vendor.Watched)
	seal  string
	fault error
}

// Format prints the model's name alone, whatever the verb: it holds secrets.
func (m *model) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "anthropic model %q", m.name) }

// Generate streams one answer.
func (m *model) Generate(ctx context.Context, req ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		out := vendor.NewSink(yield)
		out.End(m.generate(ctx, &req, out))
	}
}

// maxID is the longest call id that is taken from elsewhere. The vendor names an
// alphabet and no length; its own have 30 characters.
const maxID = 64

func (m *model) generate(ctx context.Context, req *ringi.ModelRequest, out *vendor.Sink) error {
	if m.fault != nil {
		return m.fault
	}
	if err := runsHere(req.Tools); err != nil {
		return err
	}
	entries, err := vendor.Conversation(req.Messages, vendor.Form{Provider: provider, Seal: m.seal, MaxID: maxID})
	if err != nil {
		return err
	}
	ctx, call := m.watch(ctx)
	defer call.End()
	return m.post(ctx, call, m.body(req, entries), &stream{m: m, out: out, call: call})
}

// post sends a body and reads the stream that comes back. What ends before the
// event that closes it is broken (S-38).
func (m *model) post(ctx context.Context, call *vendor.Watched, body anthropic.MessageNewParams, s *stream) error {
	res, err := m.send(ctx, body)
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
