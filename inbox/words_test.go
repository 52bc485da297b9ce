package inbox

import (
	"testing"

	"github.com/ringi-dev/ringi"
)

// Every rule that can ask has words of its own.
func TestSourceWords(t *testing.T) {
	seen := map[string]string{}
	sources := []string{"", ringi.SourceFunc, ringi.SourceToolFunc, ringi.SourceToolStatus, ringi.SourceNeeds, ringi.SourceMarker, ringi.SourceRemote, ringi.SourceEffect, ringi.SourceOperator}
	for _, rung := range []string{ringi.SourceFunc, ringi.SourceToolFunc, ringi.SourceToolStatus, ringi.SourceMarker, ringi.SourceRemote, ringi.SourceEffect, ringi.SourceRule} {
		sources = append(sources, ringi.SourceFloor+"."+rung)
	}
	for _, source := range sources {
		word := sourceWord(source)
		if before, taken := seen[word]; taken || word == source {
			t.Errorf("%q is %q, as %q is", source, word, before)
		}
		seen[word] = source
	}
	if got := sourceWord("made.up\u202e"); got != `made.up\u{202e}` {
		t.Errorf("an unknown one is %q", got)
	}
}
