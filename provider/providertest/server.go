package providertest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// Reply is what a fake server does with one request. The zero Reply is an empty
// stream.
type Reply struct {
	// Status is 200 in the zero value.
	Status int
	Header map[string]string
	// Body is sent where Frames is nil.
	Body   string
	Frames []string
	// Cut ends the answer after so many bytes of the frames; zero does not.
	// Drop then closes the connection, rather than end the answer in good order.
	Cut  int
	Drop bool
	// Gap passes between two frames. Hang holds the answer open behind the last
	// one, until the caller leaves. Stall does so before any header.
	Gap         time.Duration
	Hang, Stall bool
}

// Server is a fake vendor. It keeps what it was sent.
type Server struct {
	URL string
	// Key is what requests must carry.
	Key string

	t       testing.TB
	http    *httptest.Server
	mu      sync.Mutex
	replies []Reply
	bodies  [][]byte
	headers []http.Header
	paths   []string
	left    chan struct{} // a caller has left a held answer
}

// NewServer starts a fake vendor that answers by script, one reply a request.
// A request behind the last reply fails the test.
func NewServer(t testing.TB, replies ...Reply) *Server {
	t.Helper()
	s := &Server{t: t, Key: "sk-test-0123456789", replies: replies, left: make(chan struct{}, 64)}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL
	t.Cleanup(s.Close)
	return s
}

// Close ends the server and every connection to it.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Add adds replies.
func (s *Server) Add(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append(s.replies, replies...)
}

// Bodies are the request bodies so far, in order.
func (s *Server) Bodies() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

// Headers are the request headers so far, in order.
func (s *Server) Headers() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.headers)
}

// Paths are the request paths so far, in order, with their queries.
func (s *Server) Paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.paths)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller left
	}
	s.mu.Lock()
	s.bodies, s.headers, s.paths = append(s.bodies, body), append(s.headers, r.Header.Clone()), append(s.paths, r.URL.RequestURI())
	var reply Reply
	ok := len(s.replies) > 0
	if ok {
		reply, s.replies = s.replies[0], s.replies[1:]
	}
	s.mu.Unlock()
	if !ok {
		s.t.Errorf("the server was asked once too often: %s", body)
		w.WriteHeader(http.StatusTeapot)
		return
	}
	if reply.Stall {
		s.hold(r)
		return
	}
	s.answer(w, r, reply)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, reply Reply) {
	kind := "application/json"
	if reply.Frames != nil || reply.Body == "" {
		kind = "text/event-stream"
	}
	w.Header().Set("Content-Type", kind)
	for k, v := range reply.Header {
		w.Header().Set(k, v)
	}
	if reply.Status == 0 {
		reply.Status = http.StatusOK
	}
	w.WriteHeader(reply.Status)
	io.WriteString(w, reply.Body)
	rest := reply.Cut
	for i, frame := range reply.Frames {
		if i > 0 && reply.Gap > 0 {
			time.Sleep(reply.Gap)
		}
		if reply.Cut > 0 && len(frame) >= rest {
			io.WriteString(w, frame[:rest])
			break
		}
		rest -= len(frame)
		io.WriteString(w, frame)
		if reply.Gap > 0 || reply.Hang {
			http.NewResponseController(w).Flush()
		}
	}
	if reply.Hang {
		s.hold(r)
	}
	if reply.Drop {
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// hold waits until the caller leaves.
func (s *Server) hold(r *http.Request) {
	<-r.Context().Done()
	s.left <- struct{}{}
}

// WantLeft fails the test where no caller leaves a held answer in time.
func (s *Server) WantLeft() {
	s.t.Helper()
	select {
	case <-s.left:
	case <-time.After(10 * time.Second):
		s.t.Error("the connection is still open")
	}
}
