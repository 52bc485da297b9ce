package vendor

import (
	"strings"

	"github.com/ringi-dev/ringi"
)

// HostedBy names the vendor that runs a tool itself, after the identity that
// such a tool is registered with ("openai hosted https://…"); "" for a tool that
// runs here.
func HostedBy(t *ringi.Tool) string {
	if t.Remote == nil {
		return ""
	}
	vendor, _, ok := strings.Cut(t.Remote.Identity, " hosted ")
	if !ok {
		return ""
	}
	return vendor
}
