package chattest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"testing"
)

// Report makes each line that a page wrote a subtest: {"name","ok","error"}.
func Report(t *testing.T, out []byte, errs string) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(out))
	n := 0
	for lines.Scan() {
		var one struct {
			Name  string
			OK    bool
			Error string
		}
		if json.Unmarshal(lines.Bytes(), &one) != nil {
			continue
		}
		n++
		t.Run(one.Name, func(t *testing.T) {
			if !one.OK {
				t.Error(one.Error)
			}
		})
	}
	if n == 0 {
		t.Errorf("no scenario was played: %s\n%s", out, errs)
	}
}
