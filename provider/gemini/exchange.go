package gemini

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"google.golang.org/genai"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/internal/vendor"
)

// The SDK makes the request: address, headers, configuration. It would carry the
// conversation, the schemas and the answer through map[string]any, where a number
// becomes a float64 and 9007199254740993 another one. So the body is taken from
// the SDK's hook for bodies and written here, and the answer is taken from its
// HTTP client before the SDK reads it: what the model wrote stays as it wrote it
// (S-15, S-16).

// exchange is one request and its answer, beside the SDK.
type exchange struct {
	body   []byte
	fault  error // of the making of the body
	answer *http.Response
}

type exchangeKey struct{}

// post sends a request and gives the answer, whose body streams.
func (m *model) post(ctx context.Context, req *ringi.ModelRequest, entries []vendor.Entry) (*http.Response, error) {
	x := &exchange{}
	config := m.config(req)
	config.HTTPOptions = &genai.HTTPOptions{
		ExtrasRequestProvider: func(made map[string]any) map[string]any {
			x.body, x.fault = m.body(made, req, entries)
			return nil // nothing for the SDK to write
		},
		RetryOptions: &genai.HTTPRetryOptions{Attempts: new(int32(1))}, // the engine retries
	}
	err := m.send(context.WithValue(ctx, exchangeKey{}, x), config)
	switch {
	case x.fault != nil:
		err = fault(ringi.ModelBadRequest, fmt.Errorf("write body: %w", x.fault))
	case err == nil && x.answer == nil:
		err = errors.New("no answer")
	case err == nil && x.answer.StatusCode != http.StatusOK:
		err = fmt.Errorf("status %d is no answer", x.answer.StatusCode)
	}
	if err != nil && x.answer != nil {
		x.answer.Body.Close()
	}
	return x.answer, err
}

// newClient makes the SDK's client, and gives what sends with it. Whatever the environment says of address,
// key and backend is said here, so that it does not count. The SDK logs a line
// where both variables hold a key, whichever is used.
func newClient(model, base, key string, o *Options) (func(context.Context, *genai.GenerateContentConfig) error, error) {
	c := carrier{base: vendor.Transport{Base: o.Transport}, bare: key == "", header: o.Header.Clone()}
	if c.bare {
		key = "none" // the SDK would take the environment's; it is taken off again
	}
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey:      key,
		Backend:     genai.BackendGeminiAPI,
		HTTPClient:  vendor.Client(c),
		HTTPOptions: genai.HTTPOptions{BaseURL: base + "/", APIVersion: version},
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, c *genai.GenerateContentConfig) error {
		for _, err := range client.Models.GenerateContentStream(ctx, model, nil, c) {
			if err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// carrier carries exchanges: it puts the body into the SDK's request, and keeps
// an answer that streams from it.
type carrier struct {
	base   http.RoundTripper
	bare   bool // no key is sent
	header http.Header
}

// RoundTrip sends the request of an exchange.
func (c carrier) RoundTrip(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok || x.fault != nil || x.answer != nil {
		return nil, errors.New("nothing to send")
	}
	req = req.Clone(req.Context())
	if c.bare {
		req.Header.Del("X-Goog-Api-Key")
	}
	for name, values := range c.header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	req.Header.Set("Accept", "text/event-stream")
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
	req.Body, _ = req.GetBody()
	req.ContentLength = int64(len(x.body))
	res, err := c.base.RoundTrip(req)
	if err != nil || res.StatusCode < 200 || res.StatusCode >= 300 {
		return res, err // the SDK's to make an error of
	}
	x.answer = res
	return &http.Response{Status: res.Status, StatusCode: res.StatusCode, Proto: res.Proto, ProtoMajor: res.ProtoMajor, ProtoMinor: res.ProtoMinor,
		Header: res.Header, Body: http.NoBody, Request: req}, nil
}
