package access

import (
	"net/http"
	"strings"
)

// ContentSecurityPolicy is what our pages may load: what we serve, and no
// script, style or frame of anybody else, nor any that stands in the page.
const ContentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Headers sets the headers that every answer carries. A handler may set
// Cache-Control anew for what is nobody's secret: styles, scripts, icons.
func Headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", ContentSecurityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY") // for browsers that do not know frame-ancestors
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// LocalPath returns to where it is a path of ours, with its query, and "/"
// otherwise: where a browser goes after a login is never somebody else's to
// say.
func LocalPath(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || len(to) > 2048 {
		return "/"
	}
	// Browsers take a backslash for a slash, and drop tabs and line feeds.
	if strings.ContainsFunc(to, func(r rune) bool { return r == '\\' || r <= ' ' || r >= 0x7f }) {
		return "/"
	}
	// What a browser makes of /./ and /../ must not begin with two slashes.
	path, _, _ := strings.Cut(to, "?")
	path, _, _ = strings.Cut(path, "#")
	lower := strings.ToLower(path)
	if strings.Contains(path, "//") || strings.Contains(path, "/.") || strings.Contains(lower, "/%2e") {
		return "/"
	}
	return to
}
