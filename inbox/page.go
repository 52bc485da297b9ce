package inbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/escape"
)

//go:embed page/*.html
var pageFiles embed.FS

//go:embed assets/*
var assetFiles embed.FS

// page is what every template gets; Body is its own.
type page struct {
	// Name is the page's; Title stands before the inbox's own.
	Name, Title string
	App         string
	Base        string
	Who         access.Who
	CSRF        string
	CanStart    bool
	Reaches     bool // there is a page of one's own settings
	// Count is how many requests wait for him, and Badge the same in two
	// characters or three; empty for none, and where it was not counted.
	Count int
	Badge string
	// Refresh reloads the page so many seconds after, where somebody asked for
	// it; 0: never.
	Refresh int
	Flash   *flash
	Body    any
}

func (in *inbox) loadPages() (map[string]*template.Template, error) {
	funcs := template.FuncMap{
		"line": escape.Line, "text": escape.Text, "when": in.when, "count": grouped, "plural": plural,
		"asset": func(name string) string { return in.base + "/assets/" + name + "?v=" + in.assets[name].version },
	}
	base, err := template.New("layout.html").Funcs(funcs).ParseFS(pageFiles, "page/layout.html", "page/part_*.html")
	if err != nil {
		return nil, fmt.Errorf("read pages: %w", err)
	}
	names, err := fs.Glob(pageFiles, "page/*.html")
	if err != nil {
		return nil, fmt.Errorf("read pages: %w", err)
	}
	out := map[string]*template.Template{}
	for _, name := range names {
		short := strings.TrimSuffix(path.Base(name), ".html")
		if short == "layout" || strings.HasPrefix(short, "part_") {
			continue
		}
		t, err := base.Clone()
		if err == nil {
			t, err = t.ParseFS(pageFiles, name)
		}
		if err != nil {
			return nil, fmt.Errorf("read page %s: %w", short, err)
		}
		out[short] = t
	}
	return out, nil
}

// show writes a page. It is rendered whole first: half a page decides nothing.
func (in *inbox) show(w http.ResponseWriter, status int, who access.Who, p page) error {
	p.App, p.Base, p.Who, p.CSRF, p.CanStart, p.Reaches = in.o.Title, in.base, who, who.CSRF(), in.o.Start, in.o.Notices != nil
	if p.Count = in.waiting(context.Background(), who); p.Count > 0 {
		p.Badge = badge(p.Count)
	}
	var b bytes.Buffer
	if err := in.pages[p.Name].Execute(&b, p); err != nil {
		return fmt.Errorf("render page %s: %w", p.Name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a browser that left is nobody's error
	return nil
}

// badge is a count in a few characters.
func badge(n int) string {
	if n > maxCount {
		return strconv.Itoa(maxCount) + "+"
	}
	return strconv.Itoa(n)
}

// icon draws the icon with a count. It is drawn here, so that it needs neither
// a library nor a script.
func (in *inbox) icon(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil || n < 0 || n > maxCount+1 {
		http.NotFound(w, r)
		return
	}
	mark, text := "", badge(n)
	if n > 0 {
		size, x := 17, 21
		if len(text) > 2 {
			size, x = 12, 20
		}
		mark = fmt.Sprintf(`<circle cx="21" cy="21" r="11" fill="#1b1b1f"/><text x="%d" y="21" font-family="sans-serif" font-weight="700" font-size="%d" fill="#fff" text-anchor="middle" dominant-baseline="central">%s</text>`, x, size, text)
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Cache-Control", "public, max-age=86400")
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="16" cy="16" r="15" fill="#b3261e"/><path d="M9.5 16.5l4.5 4.5 8.5-10" fill="none" stroke="#fff" stroke-width="3.4" stroke-linecap="round" stroke-linejoin="round"/>%s</svg>`, mark)
}

type asset struct {
	body          []byte
	kind, version string
}

func loadAssets() (map[string]asset, error) {
	out := map[string]asset{}
	files, err := fs.ReadDir(assetFiles, "assets")
	if err != nil {
		return nil, fmt.Errorf("read assets: %w", err)
	}
	for _, f := range files {
		body, err := assetFiles.ReadFile("assets/" + f.Name())
		if err != nil {
			return nil, fmt.Errorf("read assets: %w", err)
		}
		sum := sha256.Sum256(body)
		kind := mime.TypeByExtension(path.Ext(f.Name()))
		switch path.Ext(f.Name()) { // not what the machine's own table says
		case ".css":
			kind = "text/css; charset=utf-8"
		case ".js":
			kind = "text/javascript; charset=utf-8"
		case ".svg":
			kind = "image/svg+xml"
		}
		out[f.Name()] = asset{body, kind, hex.EncodeToString(sum[:6])}
	}
	return out, nil
}

// asset serves styles and scripts, which are nobody's secret.
func (in *inbox) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := in.assets[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", a.kind)
	if r.URL.Query().Get("v") == a.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(a.body)
}

// moment is a time as a page shows it: absolute, and from now.
type moment struct {
	ISO, Absolute, Relative string
}

func (in *inbox) when(t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	d := t.Sub(in.now())
	m := moment{ISO: t.UTC().Format(time.RFC3339), Absolute: t.UTC().Format("2 January 2006, 15:04 UTC")}
	switch {
	case d.Abs() < time.Minute && d < 0:
		m.Relative = "just now"
	case d < 0:
		m.Relative = spoken(-d) + " ago"
	default:
		m.Relative = "in " + spoken(d)
	}
	return m
}

// spoken is a duration in words, by its largest unit or two.
func spoken(d time.Duration) string {
	switch {
	case d < time.Second:
		return "less than a second"
	case d < time.Minute:
		return plural(int(d.Seconds()), "second")
	case d < time.Hour:
		return plural(int(d.Minutes()), "minute")
	case d < 48*time.Hour:
		if m := int(d.Minutes()) % 60; m != 0 && d < 10*time.Hour {
			return plural(int(d.Hours()), "hour") + " " + plural(m, "minute")
		}
		return plural(int(d.Hours()), "hour")
	}
	return plural(int(d.Round(24*time.Hour).Hours())/24, "day")
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return grouped(n) + " " + noun
}

// grouped is a number with thin spaces between its thousands: 3 412.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u00a0" + s[i:]
	}
	return s
}

func escapeQuery(s string) string { return url.QueryEscape(s) }
