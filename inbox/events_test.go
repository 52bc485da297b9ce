package inbox_test

import (
	"net/http"
	"testing"

	"github.com/ringi-dev/ringi/access"
)

// One person's pages do not take everybody's place among those that listen, and
// a page that has gone gives its own back.
func TestEventsOfOnePersonAreBounded(t *testing.T) {
	h := newHouse(t, houseOptions{idle: true})
	ana, ben := h.browser(h.add("Ana", access.RoleApprover)), h.browser(h.add("Ben", access.RoleApprover))
	listen := func(b *browser) *http.Response {
		t.Helper()
		res, err := b.client.Get(h.server.URL + "/events")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	var open []*http.Response
	refused := 0
	for range 60 {
		if res := listen(ana); res.StatusCode == http.StatusOK {
			open = append(open, res)
		} else if refused++; res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Fatalf("refused with %d", res.StatusCode)
		}
	}
	if len(open) != 50 || refused != 10 {
		t.Errorf("%d pages of one person listen", len(open))
	}
	if res := listen(ben); res.StatusCode != http.StatusOK {
		t.Errorf("another person gets %d", res.StatusCode)
	}
	for _, res := range open {
		res.Body.Close()
	}
	until(t, "a place that was given back", func() bool { return listen(ana).StatusCode == http.StatusOK })
}
