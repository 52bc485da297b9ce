package inbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/png"
	"math"
	"net/http"
	"strings"
	"sync"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/notify"
)

// What makes the inbox a page that can be installed and that takes web push: a
// manifest (W3C Web Application Manifest), icons, and a service worker.

// addDevice keeps the browser that sends it.
func (in *inbox) addDevice(w http.ResponseWriter, r *http.Request, who access.Who) error {
	if in.o.Notices == nil || in.o.Notices.PushKey == "" {
		return ringi.ErrNotFound
	}
	err := in.o.Notices.Book.AddDevice(r.Context(), who.Principal.ID, notify.Device{Name: browserName(r.UserAgent()),
		Endpoint: typed(r, "endpoint"), P256DH: typed(r, "p256dh"), Auth: typed(r, "auth")})
	if err != nil && !errors.Is(err, notify.ErrSettings) {
		return err
	}
	if err != nil {
		in.log.Info("refuse device", "user", who.Principal.ID, "error", err)
		http.Error(w, "This subscription is not taken.", http.StatusUnprocessableEntity)
		return nil
	}
	return in.to(w, r, "/me?done=added")
}

func (in *inbox) removeDevice(w http.ResponseWriter, r *http.Request, who access.Who) error {
	if in.o.Notices == nil {
		return ringi.ErrNotFound
	}
	if err := in.o.Notices.Book.RemoveDevice(r.Context(), who.Principal.ID, typed(r, "id")); err != nil {
		return err
	}
	return in.to(w, r, "/me?done=removed")
}

// browserName says in two words which browser it is, for its owner's list.
func browserName(agent string) string {
	pick := func(names [][2]string, other string) string {
		for _, n := range names {
			if strings.Contains(agent, n[0]) {
				return n[1]
			}
		}
		return other
	}
	// Most pretend to be another: the order tells.
	browser := pick([][2]string{{"Firefox/", "Firefox"}, {"Edg", "Edge"}, {"OPR/", "Opera"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}}, "A browser")
	system := pick([][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS", "Mac"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}}, "")
	if system == "" {
		return browser
	}
	return browser + ", " + system
}

// manifest is what an installed inbox is.
func (in *inbox) manifest(w http.ResponseWriter, r *http.Request) {
	type icon struct {
		Src     string `json:"src"`
		Sizes   string `json:"sizes"`
		Type    string `json:"type"`
		Purpose string `json:"purpose,omitempty"`
	}
	body, err := json.Marshal(map[string]any{
		"id": in.base + "/", "name": in.o.Title, "short_name": in.o.Title, "start_url": in.base + "/", "scope": in.base + "/",
		"display": "standalone", "background_color": "#ffffff", "theme_color": "#b3261e",
		"icons": []icon{
			{in.base + "/app-icon/192.png", "192x192", "image/png", ""}, {in.base + "/app-icon/512.png", "512x512", "image/png", ""},
			{in.base + "/app-icon/whole.png", "512x512", "image/png", "maskable"}, {in.base + "/assets/icon.svg", "any", "image/svg+xml", ""},
		},
	})
	if err != nil {
		http.Error(w, "The manifest cannot be made.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/manifest+json")
	_, _ = w.Write(body)
}

// worker serves the service worker at the root of the inbox, which is what it
// may see to.
func (in *inbox) worker(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(in.assets["sw.js"].body)
}

// icons are drawn once: the mark of assets/icon.svg in dots. "whole" fills its
// square, so that a system may cut it to any shape.
var icons = sync.OnceValue(func() map[string][]byte {
	return map[string][]byte{"192.png": drawIcon(192, false), "512.png": drawIcon(512, false), "whole.png": drawIcon(512, true), "badge.png": drawIcon(96, false)}
})

func (in *inbox) appIcon(w http.ResponseWriter, r *http.Request) {
	body, ok := icons()[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "image/png")
	w.Header().Set("Cache-Control", "public, max-age=86400")
	_, _ = w.Write(body)
}

// drawIcon draws a tick in a red disc, each dot by how much of it is covered.
func drawIcon(size int, whole bool) []byte {
	img := image.NewNRGBA(image.Rect(0, 0, size, size))
	scale := 32 / float64(size) // the drawing is 32 by 32
	shrink := 1.0
	if whole {
		shrink = 1.4 // what matters stays within the safe zone
	}
	for y := range size {
		for x := range size {
			px, py := ((float64(x)+.5)*scale-16)*shrink+16, ((float64(y)+.5)*scale-16)*shrink+16
			soft := scale * shrink
			disc := covered(14-math.Hypot(px-16, py-16), soft)
			if whole {
				disc = 1
			}
			tick := covered(1.75-min(toLine(px, py, 9, 16.5, 14, 21.5), toLine(px, py, 14, 21.5, 23, 10.5)), soft)
			mix := func(red uint8) uint8 { return uint8(float64(red)*(1-tick) + 255*tick + .5) }
			img.SetNRGBA(x, y, color.NRGBA{mix(0xb3), mix(0x26), mix(0x1e), uint8(255*max(disc, tick) + .5)})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return nil // a buffer takes all
	}
	return b.Bytes()
}

// covered is how much of a dot of a width lies inside, by its middle's distance
// from the edge.
func covered(distance, width float64) float64 { return max(0, min(1, distance/width+.5)) }

// toLine is the distance of a point from a line between two.
func toLine(x, y, ax, ay, bx, by float64) float64 {
	t := ((x-ax)*(bx-ax) + (y-ay)*(by-ay)) / ((bx-ax)*(bx-ax) + (by-ay)*(by-ay))
	t = max(0, min(1, t))
	return math.Hypot(x-ax-t*(bx-ax), y-ay-t*(by-ay))
}
