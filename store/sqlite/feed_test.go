package sqlite

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestFeedIsARangeOfThePrimaryKey(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "ringi.db"), Options{})
	plan := explain(t, s, listFeed, []any{0, 1})
	if !strings.Contains(plan, "PRIMARY KEY") {
		t.Errorf("the plan is no range of the primary key:\n%s", plan)
	}
}
