// Package gemini is [ringi.Model] over Google's Gemini API, and over servers that
// speak it. It stands on the vendor's own SDK.
//
// Everything streams. The engine decides what runs and what is tried again; this
// package does neither: it retries nothing, and it offers what it is given.
//
// The vendor's own tools (Google Search, code execution, URL context and their
// kin) run without asking anybody. They cannot be configured, they are in no
// request, and a turn that shows a trace of one is broken (S-22). Vertex AI, which
// wants credentials of another kind, is not spoken.
package gemini

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"os"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/vendor"
)

const (
	// address is the vendor's own, version the version of its interface.
	address = "https://generativelanguage.googleapis.com"
	version = "v1beta"
)

// Options are what a model may be given. The zero value, and nil, speak to
// Google with the key of the environment.
type Options struct {
	// BaseURL is another server's address, without the version:
	// "http://localhost:4000". Empty is Google's own. The environment does not
	// change it: where a conversation goes is the operator's word.
	BaseURL string
	// Key is the API key, sent as X-Goog-Api-Key. Empty takes GOOGLE_API_KEY, else
	// GEMINI_API_KEY, but only for Google's own address: that key is nobody else's.
	// A server that asks for none needs none.
	Key string
	// Header is sent with every request, for gateways. Its values are kept out of
	// errors, as the key is.
	Header http.Header
	// MaxOutputTokens bounds an answer, thoughts included. Zero: the vendor's. A
	// turn that reaches it runs nothing.
	MaxOutputTokens int64
	// Temperature is sent where it is set.
	Temperature *float64
	// Effort is the thinking level, as the vendor calls it ("low"). Gemini 3 and
	// later. Empty: the vendor's.
	Effort string
	// ThinkingBudget is how many tokens the model may think with; 0 keeps it from
	// thinking, -1 leaves it to the model. Gemini 2.5; not together with Effort.
	// nil: the vendor's.
	ThinkingBudget *int64
	// Summary asks for a summary of the thoughts ("auto"): the only reasoning that
	// Gemini streams. Empty: none.
	Summary string
	// IdleTimeout is how long the vendor may be silent, before its answer and in
	// it. Zero: 5 min.
	IdleTimeout time.Duration
	// Timeout bounds a whole answer. Zero: 30 min.
	Timeout time.Duration
	// Transport carries the requests; nil is http.DefaultTransport.
	Transport http.RoundTripper
}

// New makes a model of a name, as the vendor writes it: "gemini-3-flash". o may be
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
	if m.fault = check(name, base, key, own, &m.o); m.fault != nil {
		m.o = Options{}
		return m
	}
	m.seal = fmt.Sprintf("gemini/generateContent %q %q", base, name)
	m.signs = signs(name)
	secrets := secretsOf(key, &m.o)
	m.watch = func(ctx context.Context) (context.Context, *vendor.Watched) {
		return vendor.Watch(ctx, "gemini", vendor.Limits{Idle: m.o.IdleTimeout, Total: m.o.Timeout}, secrets...)
	}
	var err error
	if m.send, err = newClient(name, base, key, &m.o); err != nil {
		m.fault = fault(ringi.ModelBadRequest, errors.New("the SDK made no client")) // its error holds the key
	}
	m.o.Key, m.o.Header = "", nil
	return m
}

// whereTo is the address, the key for it, and whether it is Google's own.
func whereTo(o *Options) (base, key string, own bool) {
	base, key = strings.TrimSuffix(o.BaseURL, "/"), o.Key
	if own = base == "" || base == address; own {
		base = address
		for _, name := range []string{"GOOGLE_API_KEY", "GEMINI_API_KEY"} {
			if key == "" {
				key = os.Getenv(name)
			}
		}
	}
	return base, key, own
}

func secretsOf(key string, o *Options) []string {
	out := []string{key}
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
	case !plainName(name):
		err = fmt.Errorf("model name %q is not one of the vendor's", name)
	case !strings.HasPrefix(base, "https://") && !strings.HasPrefix(base, "http://"):
		err = errors.New("base URL is neither http nor https")
	case own && key == "":
		class, err = ringi.ModelAuth, errors.New("no key: set Options.Key, GOOGLE_API_KEY or GEMINI_API_KEY")
	case strings.ContainsAny(key, "\r\n"):
		class, err = ringi.ModelAuth, errors.New("key holds a line break")
	case o.MaxOutputTokens < 0 || o.MaxOutputTokens > math.MaxInt32:
		err = fmt.Errorf("max output tokens: %d is no number that the vendor takes", o.MaxOutputTokens)
	case o.ThinkingBudget != nil && (*o.ThinkingBudget < -1 || *o.ThinkingBudget > math.MaxInt32):
		err = fmt.Errorf("thinking budget: %d is no number that the vendor takes", *o.ThinkingBudget)
	case o.ThinkingBudget != nil && o.Effort != "":
		err = errors.New("say an effort or a thinking budget, not both")
	case o.Summary != "" && o.Summary != "auto":
		err = fmt.Errorf("unknown summary %q: say auto, or nothing", o.Summary)
	}
	if err == nil {
		return nil
	}
	return fault(class, err)
}

func fault(class ringi.ModelErrorClass, err error) error {
	return &ringi.ModelError{Class: class, Provider: "gemini", Err: err}
}

// plainName reports whether a model's name is one that stands in an address as it
// is: a name could else lead elsewhere on the server.
func plainName(name string) bool {
	for _, word := range strings.Split(name, "/") {
		if word == "" || strings.Trim(word, ".") == "" || strings.Contains(word, "..") {
			return false
		}
		for i := range len(word) {
			c := word[i]
			if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._-@", c) >= 0) {
				return false
			}
		}
	}
	return true
}

// model is one model of the vendor.
type model struct {
	name string
	o    Options // without key and headers
	// send makes a request with the SDK. It is a function so that a program is not
	// linked with every method of the SDK's client.
	send  func(context.Context, *genai.GenerateContentConfig) error
	watch func(context.Context) (context.Context, *vendor.Watched)
	seal  string
	signs bool
	fault error
}

// Format prints the model's name alone, whatever the verb: it holds secrets.
func (m *model) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "gemini model %q", m.name) }

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
	entries, err := vendor.Conversation(req.Messages, vendor.Form{Provider: "gemini", Seal: m.seal, MaxID: maxID})
	if err != nil {
		return err
	}
	ctx, call := m.watch(ctx)
	defer call.End()
	res, err := m.post(ctx, req, entries)
	if err != nil {
		return call.Err(err, readFault)
	}
	defer res.Body.Close()
	if err := readStream(res.Body, &stream{m: m, out: out, call: call}); err != nil {
		return call.Err(err, nil)
	}
	return nil
}

// maxID is the longest call id that is taken from another vendor's turn.
const maxID = 64
