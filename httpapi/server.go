package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/news"
	"github.com/ringi-dev/ringi/internal/strictjson"
)

// The limits of the API.
const (
	// MaxBody is the largest body: 2 MiB.
	MaxBody = 2 << 20
	// MaxWait is the longest that a long poll waits.
	MaxWait = 60 * time.Second
	// MaxBatch is how many decisions a batch holds.
	MaxBatch = 50
	// MaxStreams is how many streams a session or token holds at once.
	MaxStreams = 6
	// MaxOpen is how many streams and long polls a principal holds at once.
	MaxOpen = 50
)

// Authenticator says who sends a request. [access.Authenticator] is one.
type Authenticator interface {
	FromRequest(*http.Request) (access.Who, error)
}

// Verification is what a check of a run's log found.
type Verification struct {
	RunID   string `json:"run_id"`
	Records int    `json:"records"`
	// Erased counts payloads that were removed; their chain is whole.
	Erased int `json:"erased,omitempty"`
	// Requests and Decisions count the signatures that were checked.
	Requests  int `json:"requests"`
	Decisions int `json:"decisions"`
	// Signed is set where a key checked them; without one the chain alone is.
	Signed bool `json:"signed"`
	// Broken says what is wrong; empty for an intact run.
	Broken string `json:"broken,omitempty"`
}

// Options say what an API serves. Service, Directory and Authenticator are
// needed.
type Options struct {
	// Service is what is served. Where it is a [ringi.RefusalKeeper], it keeps
	// what the table of rights refuses.
	Service ringi.Service
	// Directory keeps idempotency keys, and reads rights anew while a stream
	// stays open.
	Directory     *access.Directory
	Authenticator Authenticator
	// Limiter counts requests by address and by principal; nil counts none.
	Limiter *access.Limiter
	// Proxies are those in front of the server, for the limiter's addresses.
	Proxies access.Proxies
	// Verify checks a run's log; nil offers no verification.
	Verify func(ctx context.Context, runID string) (Verification, error)
	// Open says for which agents a chat user sees inputs, previews and results
	// of his own runs; nil: for none.
	Open func(agent string) bool
	// Logger takes what went wrong; nil discards it. Inputs are never logged.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Secret is what cursors of lists and ids of the inbox stream are sealed with,
	// so that they outlive the process, and are good at every server that has it;
	// at least 32 bytes. nil: a key of the process, with which they end.
	Secret []byte
	// Heartbeat is how often a silent stream says that it lives; 0 means 15 s.
	// Rights are read anew every third of it, and before anything is sent.
	Heartbeat time.Duration
	// Look is how often a stream or a long poll looks for something new; 0 means
	// 100 ms.
	Look time.Duration
	// Changed, where set, returns a channel that is closed once anything of the
	// service has changed after the call: ringi.ChangeTeller's. Then streams and
	// long polls look after a change, at most every fifth of Look, and every five
	// times Look in any case. nil: every Look.
	Changed func() <-chan struct{}
	// Done ends streams and long polls when the server is to stop; nil never
	// does.
	Done <-chan struct{}
}

// server is the API.
type server struct {
	Options
	mux    *http.ServeMux
	api    huma.API
	doc    []byte
	places places
	open   open
	seal   sealer
	inbox  *news.Hub
}

// New makes the API's handler. Mount it at the root of a host: its routes begin
// with /v1/. Host names (access.Hosts) and headers (access.Headers) are the
// caller's to put in front.
func New(o Options) (http.Handler, error) {
	if o.Service == nil || o.Directory == nil || o.Authenticator == nil {
		return nil, errors.New("make API: service, directory and authenticator are needed")
	}
	if o.Secret != nil && len(o.Secret) < 32 {
		return nil, errors.New("make API: the secret has less than 32 bytes")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.Look <= 0 {
		o.Look = 100 * time.Millisecond
	}
	s := &server{Options: o, mux: http.NewServeMux(), seal: newSealer(o.Secret)}
	s.inbox = news.New(news.Options{Service: o.Service, Logger: o.Logger, Now: o.Now, Glance: s.glance, Pause: s.pause})
	s.api = humago.New(s.mux, config())
	s.routes()
	s.mux.HandleFunc("/", s.nowhere)
	var err error
	if s.doc, err = json.MarshalIndent(s.api.OpenAPI(), "", "  "); err != nil {
		return nil, fmt.Errorf("make API: %w", err)
	}
	return s, nil
}

func config() huma.Config {
	c := huma.DefaultConfig("Ringi", "1")
	c.Info.Description = "An agent loop in which no tool call runs that nobody allowed. Errors are application/problem+json (RFC 9457)."
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.CreateHooks = nil // no $schema members in answers
	c.RejectUnknownQueryParameters = true
	c.Transformers = []huma.Transformer{fromHuma}
	format := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: readJSON}
	c.Formats = map[string]huma.Format{"application/json": format, "json": format}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token":   {Type: "http", Scheme: "bearer"},
		"session": {Type: "apiKey", In: "cookie", Name: access.CookieName},
	}
	c.Security = []map[string][]string{{"token": {}}, {"session": {}}}
	return c
}

// readJSON reads a body that means one thing to every reader: names that come
// twice, or differ from each other by letter case alone, are refused.
func readJSON(data []byte, v any) error {
	parsed, err := strictjson.Parse(string(data), strictjson.Limits{Bytes: MaxBody})
	if err != nil {
		return err
	}
	if object, ok := parsed.(map[string]any); ok {
		seen := map[string]bool{}
		for name := range object {
			if lower := strings.ToLower(name); seen[lower] {
				return fmt.Errorf("two members differ from %q by letter case alone", lower)
			} else {
				seen[lower] = true
			}
		}
	}
	return json.Unmarshal(data, v)
}

type requestKey struct{}

// exchange is a request, and what controls its connection.
type exchange struct {
	r  *http.Request
	rc *http.ResponseController
}

// requestOf is the HTTP request that ctx belongs to.
func requestOf(ctx context.Context) *http.Request {
	e, _ := ctx.Value(requestKey{}).(exchange)
	return e.r
}

// bodyTime is how long a body may take to come.
const bodyTime = 5 * time.Second

// bodyRead lifts the limit of bodyTime: it would end a handler that waits.
func bodyRead(ctx context.Context) {
	if e, ok := ctx.Value(requestKey{}).(exchange); ok {
		e.rc.SetReadDeadline(time.Time{}) // who cannot has set none
	}
}

// ServeHTTP limits, authenticates and routes a request.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if s.Limiter != nil {
		if err := s.Limiter.Address(s.Proxies.Addr(r)); err != nil {
			s.refuse(w, r, access.Who{}, err)
			return
		}
	}
	if r.URL.Path == "/v1/openapi.json" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		w.Header().Set("Content-Type", "application/vnd.oai.openapi+json;version=3.1")
		w.Write(s.doc)
		return
	}
	if r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, MaxBody+1)
	}
	who, err := s.Authenticator.FromRequest(r)
	if err == nil && who.Principal.IsZero() {
		err = ringi.ErrNoPrincipal
	}
	if err == nil && s.Limiter != nil {
		err = s.Limiter.Principal(who)
	}
	if err != nil {
		s.refuse(w, r, access.Who{}, err)
		return
	}
	ctx := access.NewContext(r.Context(), who)
	r = r.WithContext(ctx)
	r = r.WithContext(context.WithValue(ctx, requestKey{}, exchange{r, http.NewResponseController(w)}))
	defer s.recovered(w, r, who)
	s.mux.ServeHTTP(w, r)
}

// recovered answers for a handler that panicked before it wrote.
func (s *server) recovered(w http.ResponseWriter, r *http.Request, who access.Who) {
	v := recover()
	if v == nil {
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v)
	}
	s.refuse(w, r, who, fmt.Errorf("%w: panic: %T", errUnexpected, v))
}

// nowhere answers at addresses that are none, and where an address has other
// methods.
func (s *server) nowhere(w http.ResponseWriter, r *http.Request) {
	who, _ := access.FromContext(r.Context())
	for path, item := range s.api.OpenAPI().Paths {
		if !fits(path, r.URL.Path) {
			continue
		}
		allow := "GET, HEAD"
		switch {
		case item.Get == nil:
			allow = "POST"
		case item.Post != nil:
			allow += ", POST"
		}
		w.Header().Set("Allow", allow)
		s.refuse(w, r, who, errMethod)
		return
	}
	s.refuse(w, r, who, errNoAddress)
}

// fits reports whether a path is one of a pattern with {names} in it.
func fits(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if want[i] != got[i] && (!strings.HasPrefix(want[i], "{") || got[i] == "") {
			return false
		}
	}
	return true
}

// refuse writes a problem.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, who access.Who, err error) {
	p := s.problem(r.Context(), who, err)
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	json.NewEncoder(w).Encode(p)
}

// problem is what who is told of an error. What is the server's fault is
// logged.
func (s *server) problem(ctx context.Context, who access.Who, err error) *Problem {
	p := problemOf(who, err)
	if p.Status >= http.StatusInternalServerError {
		address := ""
		if r := requestOf(ctx); r != nil {
			address = r.Method + " " + r.URL.Path
		}
		s.Logger.Error("answer request", "address", address, "who", who, "status", p.Status, "error", err)
	}
	return p
}

// output is what every operation answers: it writes itself.
type output struct{ Body func(huma.Context) }

// answer is a JSON answer.
type answer struct {
	status         int
	location, etag string
	link           string
	replayed       bool
	secret         bool // not kept for an idempotency key
	body           []byte
}

func (a *answer) output() *output {
	return &output{func(c huma.Context) {
		for name, value := range map[string]string{"Location": a.location, "ETag": a.etag, "Link": a.link} {
			if value != "" {
				c.SetHeader(name, value)
			}
		}
		if a.replayed {
			c.SetHeader("Idempotency-Replayed", "true")
		}
		if a.body != nil {
			c.SetHeader("Content-Type", "application/json")
		}
		c.SetStatus(a.status)
		c.BodyWriter().Write(a.body)
	}}
}

// asJSON makes an answer of a value.
func asJSON(status int, v any) (*answer, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return &answer{status: status, body: append(b, '\n')}, nil
}

// handle makes an operation's handler of f, which is told who asks.
func handle[In any](s *server, f func(ctx context.Context, w access.Who, in *In) (*answer, error)) func(context.Context, *In) (*output, error) {
	return func(ctx context.Context, in *In) (*output, error) {
		bodyRead(ctx)
		w, _ := access.FromContext(ctx) // the zero Who may do nothing
		a, err := f(ctx, w, in)
		if err != nil {
			return nil, s.problem(ctx, w, err)
		}
		return a.output(), nil
	}
}
