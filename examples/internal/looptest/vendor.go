package looptest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// API is as much of a vendor's wire as these conversations need.
type API interface {
	// Read reads a question. Its error is what the real API would refuse.
	Read(path string, body []byte) (Question, error)
	// Calls is an answer that calls tools, Says one of text.
	Calls(calls ...Call) string
	Says(text string) string
	// Fault is the body of a refusal.
	Fault(text string) string
}

// Call is one of the model's: its own id, the tool, and the input's bytes.
type Call struct{ ID, Tool, Input string }

// Question is a conversation that a vendor was sent.
type Question struct {
	Answers int // of the model, so far
	// Inputs of the model's calls, and their results, by the calls' ids.
	Inputs, Results map[string]string
}

// Vendor plays an API. It answers the n-th question of any conversation with
// the n-th of its answers, and refuses what the real one refuses.
type Vendor struct {
	*httptest.Server
	api     API
	mu      sync.Mutex
	answers []string
	asked   []Question
	faults  []string
}

// newVendor plays api until the test ends. A fault that it was sent fails the test.
func newVendor(t *testing.T, api API, answers []string) *Vendor {
	v := &Vendor{api: api, answers: answers}
	v.Server = httptest.NewServer(v)
	t.Cleanup(func() {
		v.Close()
		for _, f := range v.faults {
			t.Errorf("the vendor was sent %s", f)
		}
	})
	return v
}

func (v *Vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	var q Question
	if err == nil {
		q, err = v.api.Read(r.URL.Path, body)
	}
	if err == nil && q.Answers >= len(v.answers) {
		err = fmt.Errorf("question %d, and there are %d answers", q.Answers+1, len(v.answers))
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		v.faults = append(v.faults, err.Error())
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, v.api.Fault(err.Error()))
		return
	}
	v.asked = append(v.asked, q)
	fmt.Fprint(w, v.answers[q.Answers])
}

// Last is the newest question.
func (v *Vendor) Last() Question {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.asked[len(v.asked)-1]
}

func (v *Vendor) questions() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.asked)
}
