package ringi_test

import (
	"testing"

	"github.com/ringi-dev/ringi"
)

// S-17: a preview's class is part of a tool's definition, so that a changed one
// makes open requests stale; a definition without one keeps its digest.
func TestS17_ThePreviewsClassIsDefined(t *testing.T) {
	tool := ringi.Tool{Name: "pay", Effect: ringi.NonIdempotentWrite, DataClass: ringi.PublicContent}
	digest := func(class ringi.DataClass) string {
		t.Helper()
		tool.PreviewClass = class
		d, err := tool.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	seen := map[string]ringi.DataClass{}
	for _, class := range []ringi.DataClass{"", ringi.PublicContent, ringi.SecretAdjacent} {
		d := digest(class)
		if other, twice := seen[d]; twice {
			t.Errorf("classes %q and %q have one digest", class, other)
		}
		seen[d] = class
	}
	for class, want := range map[ringi.DataClass]ringi.DataClass{"": ringi.PublicContent, ringi.SourceCode: ringi.SourceCode} {
		tool.PreviewClass = class
		if got := tool.PreviewData(); got != want {
			t.Errorf("class %q: the preview's data is %q, want %q", class, got, want)
		}
	}
	reg := ringi.NewRegistry()
	tool.PreviewClass = "top_secret"
	if err := reg.Add(tool, nil); err == nil {
		t.Error("an unknown class is registered")
	}
}
