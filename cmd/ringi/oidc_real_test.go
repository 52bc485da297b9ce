//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ringi-dev/ringi/access"
	"github.com/ringi-dev/ringi/internal/npmtest"
)

// These tests log people in at a real provider: node runs oidc-provider, which
// is certified by the OpenID Foundation.

// account is a person at the provider.
type account struct {
	Name   string   `json:"name"`
	Groups []string `json:"groups,omitempty"`
}

var accounts = map[string]account{
	"ana": {"Ana Example", []string{"refunds", "staff"}},
	"ben": {"Ben Example", []string{"refunds"}},
	"eve": {"Eve Example", []string{"visitors"}},
}

// realProvider starts the provider, and returns its issuer.
func realProvider(t *testing.T, ours string) string {
	t.Helper()
	dir := npmtest.Folder(t, filepath.Join("testdata", "oidc"))
	people, err := json.Marshal(accounts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "provider.mjs")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CLIENT_ID=ringi", "CLIENT_SECRET=hush", "REDIRECT_URI="+ours+"/login/oidc/callback", "LOGOUT_URI="+ours+"/login", "PEOPLE="+string(people))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	issuer, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(issuer)
}

// office is a server with a real provider.
type office struct {
	*serving
	issuer string
	data   string
}

func newOffice(t *testing.T) *office {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	ours := "http://" + address
	p := newMachine(t)
	o := &office{issuer: realProvider(t, ours), data: filepath.Join(p.dir, "data")}
	p.write("config/ringi/oidc.secret", "hush\n")
	p.write("config/ringi/ringi.yaml", `public_url: `+ours+`
login:
  oidc:
    issuer: `+o.issuer+`
    client_id: ringi
    client_secret_file: oidc.secret
    name: The Company
    scopes: [profile, groups]
    groups:
      refunds: {role: approver, team: support}
      staff: {role: user}
agents:
  - name: office
    zone: local
    model: {kind: demo}
    tools: {set: backoffice}
    deciders: {teams: [support]}
`)
	o.serving = p.serve("--data", o.data, "--listen", address)
	return o
}

// visitor is a browser without scripts.
type visitor struct {
	t      *testing.T
	client *http.Client
	at     *url.URL
	status int
	page   string
}

func newVisitor(t *testing.T) *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t: t, client: &http.Client{Jar: jar, Timeout: 90 * time.Second}}
}

func (v *visitor) take(res *http.Response, err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	v.at, v.status, v.page = res.Request.URL, res.StatusCode, string(text)
}

func (v *visitor) open(address string) *visitor {
	v.t.Helper()
	v.take(v.client.Get(address))
	return v
}

// follow follows a link by what it says.
func (v *visitor) follow(says string) *visitor {
	v.t.Helper()
	m := regexp.MustCompile(`<a [^>]*href="([^"]*)"[^>]*>` + regexp.QuoteMeta(says)).FindStringSubmatch(v.page)
	if m == nil {
		v.t.Fatalf("%s has no link %q:\n%s", v.at, says, v.page)
	}
	to, err := v.at.Parse(html.UnescapeString(m[1]))
	if err != nil {
		v.t.Fatal(err)
	}
	return v.open(to.String())
}

var (
	visitForm  = regexp.MustCompile(`(?s)<form[^>]*action="([^"]*)"[^>]*>(.*?)</form>`)
	visitInput = regexp.MustCompile(`(?s)<input\b[^>]*>`)
	visitName  = regexp.MustCompile(`\bname="([^"]*)"`)
	visitValue = regexp.MustCompile(`\bvalue="([^"]*)"`)
)

// send sends the first form whose inputs hold want, with more filled in.
func (v *visitor) send(want string, more ...string) *visitor {
	v.t.Helper()
	for _, form := range visitForm.FindAllStringSubmatch(v.page, -1) {
		if !strings.Contains(form[0], want) {
			continue
		}
		values := url.Values{}
		for _, in := range visitInput.FindAllString(form[2], -1) {
			name, value := visitName.FindStringSubmatch(in), visitValue.FindStringSubmatch(in)
			if name != nil && value != nil && !strings.Contains(in, `type="radio"`) && !strings.Contains(in, `type="checkbox"`) {
				values.Set(html.UnescapeString(name[1]), html.UnescapeString(value[1]))
			}
		}
		for i := 0; i < len(more); i += 2 {
			values.Set(more[i], more[i+1])
		}
		to, err := v.at.Parse(html.UnescapeString(form[1]))
		if err != nil {
			v.t.Fatal(err)
		}
		req, err := http.NewRequest("POST", to.String(), strings.NewReader(values.Encode()))
		if err != nil {
			v.t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		v.take(v.client.Do(req))
		return v
	}
	v.t.Fatalf("%s has no form with %q:\n%s", v.at, want, v.page)
	return nil
}

// want looks at the page.
func (v *visitor) want(status int, texts ...string) *visitor {
	v.t.Helper()
	for _, text := range texts {
		if v.status != status || !strings.Contains(v.page, text) {
			v.t.Fatalf("%s: %d, want %d and %q:\n%s", v.at, v.status, status, text, v.page)
		}
	}
	return v
}

// login goes from the button to the provider and back.
func (o *office) login(v *visitor, who string) *visitor {
	v.t.Helper()
	v.open(o.url+"/").want(200, "Log in with The Company").follow("Log in with")
	v.send(`value="login"`, "login", who, "password", "x")
	if strings.Contains(v.page, `value="consent"`) {
		v.send(`value="consent"`)
	}
	return v
}

// People of a team log in at a real provider; who asked for a write may not
// approve it, another may; who is in no group has no role; who is disabled is
// out at once.
func TestLoginAtARealProvider(t *testing.T) {
	o := newOffice(t)
	ana, ben, eve := newVisitor(t), newVisitor(t), newVisitor(t)
	o.login(ana, "ana").want(200, "Ana Example")
	o.login(ben, "ben").want(200, "Ben Example")
	o.login(eve, "eve").want(403, "You have no role here")

	ana.open(o.url+"/start").send(`name="text"`, "text", "Mira Solheim asks for a refund for a broken kettle.")
	path := o.waits(ana)
	ana.open(o.url+path).want(200, "Four eyes").send(`name="answer" value="approve"`).send(`name="sure"`).want(403, "You may not decide this")
	ben.open(o.url+path).want(200, "Four eyes").send(`name="answer" value="approve"`).send(`name="sure"`).want(200, "by you")

	d := o.people(t)
	id := access.ProvidedID(o.issuer, "ben")
	u, err := d.User(t.Context(), id)
	if err != nil || u.Name != "Ben Example" || !slices.Equal(u.Roles, []access.Role{access.RoleApprover}) || !slices.Equal(u.Teams, []string{"support"}) {
		t.Errorf("ben is %+v, %v", u, err)
	}
	if _, err := d.User(t.Context(), access.ProvidedID(o.issuer, "eve")); err == nil {
		t.Error("eve was added")
	}
	if _, err := d.User(t.Context(), access.LocalID(owner)); err == nil {
		t.Error("an owner was made who cannot log in")
	}
	u.Disabled = true
	if err := d.SetUser(t.Context(), operator(), u); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if ben.open(o.url + "/"); ben.at.Path != "/login" || time.Since(begun) > 20*time.Second {
		t.Errorf("a disabled user is at %s after %s", ben.at, time.Since(begun))
	}
	ben.follow("Log in with").want(401, "You are not logged in") // the provider still knows him

	// Out here, and out there.
	ana.open(o.url+"/").send(`/logout"`).want(200, "You are logged out here").follow("Log out at The Company")
	if !strings.HasPrefix(ana.at.String(), o.issuer+"/session/end") {
		t.Fatalf("logged out at %s", ana.at)
	}
	ana.send(`logout`, "logout", "yes")
	if ana.at.Path != "/login" || ana.at.Host == strings.TrimPrefix(o.issuer, "http://") {
		t.Errorf("the provider's log-out ends at %s", ana.at)
	}
	ana.follow("Log in with").want(200, "Enter any login") // he is asked again
	o.stop(syscall.SIGTERM)
}

// waits returns the path of the request that waits.
func (o *office) waits(v *visitor) string {
	o.t.Helper()
	for begun := time.Now(); time.Since(begun) < 90*time.Second; time.Sleep(50 * time.Millisecond) {
		v.open(o.url + "/")
		if m := regexp.MustCompile(`href="(/a/req_[^"]*)"`).FindStringSubmatch(v.page); m != nil {
			return m[1]
		}
	}
	o.t.Fatalf("nothing waits:\n%s", v.page)
	return ""
}

// people opens the directory beside the server, as the command line does.
func (o *office) people(t *testing.T) *directory {
	t.Helper()
	d, err := openDirectory(t.Context(), filepath.Join(o.data, accessFile), access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.close() })
	return d
}
