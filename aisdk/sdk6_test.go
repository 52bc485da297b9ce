package aisdk_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ringi-dev/ringi/internal/npmtest"
)

// refuses reads a JSON list of chunks and prints the types that the package's own
// schema refuses.
const refuses = `
const { uiMessageChunkSchema: s } = await import('ai')
const schema = typeof s === 'function' ? s() : s
const chunks = JSON.parse(await new Response(process.stdin).text())
const out = []
for (const c of chunks) if (!(await schema.validate(c)).success) out.push(c.type)
console.log(JSON.stringify(out))`

// A client of ai 6 that does not say so is not served wrong in silence: the
// package itself refuses what it does not know, and its chat is in error.
func TestSDK6_WithoutItsHeaderFailsVisibly(t *testing.T) {
	dir := npmtest.Folder(t, filepath.Join("testdata", "npm", "v6"))
	s := newShop(t, opened{})
	for _, c := range []struct {
		sdk  string
		want bool // that a part is refused
	}{{"", true}, {"6", false}} {
		u := s.user("ana", "chat-"+c.sdk+"x")
		u.sdk = c.sdk
		u.say("pay")
		for _, a := range s.pending(t) {
			if _, err := s.engine.Decide(t.Context(), a.Deny(principal("boss"), "no")); err != nil {
				t.Fatal(err)
			}
		}
		chunks := u.do("GET", "/"+u.id+"/stream", nil).chunks
		in, err := json.Marshal(chunks)
		if err != nil || len(chunks) == 0 {
			t.Fatalf("header %q: %d chunks, %v", c.sdk, len(chunks), err)
		}
		cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", refuses)
		cmd.Dir, cmd.Stdin = dir, bytes.NewReader(in)
		out, err := cmd.Output()
		var refused []string
		if err != nil || json.Unmarshal(out, &refused) != nil {
			t.Fatalf("header %q: %v %s", c.sdk, err, out)
		}
		if got := len(refused) > 0; got != c.want {
			t.Errorf("header %q: ai 6 refuses %q", c.sdk, refused)
		}
	}
}
