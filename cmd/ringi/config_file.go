package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/ringi-dev/ringi/internal/nearest"
)

// readConfig makes the server's configuration: the file, over it the
// environment, over that the flags that were typed: typed gives their text.
func (e *env) readConfig(given string, typed func(flag string) (string, bool)) (*config, error) {
	c := &config{}
	path, err := e.configFile(given)
	if err != nil {
		return nil, err
	}
	if path != "" {
		if err := c.read(path); err != nil {
			return nil, fmt.Errorf("read configuration %s: %w", path, err)
		}
	}
	for _, s := range settings {
		if v := e.getenv(s.env()); v != "" {
			if err := s.set(c, v); err != nil {
				return nil, fmt.Errorf("read %s: %w", s.env(), err)
			}
		}
		if v, ok := typed(s.flag); ok {
			if err := s.set(c, v); err != nil {
				return nil, usagef("read --%s: %w", s.flag, err)
			}
		}
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("check configuration: %w", err)
	}
	return c, nil
}

// configFile is the file to read: the one that was named, or the first that is
// there of the user's and the system's; "" where there is none. The working
// folder is never looked at (S-42): it may be somebody else's.
func (e *env) configFile(given string) (string, error) {
	if given == "" {
		given = e.getenv("RINGI_CONFIG")
	}
	if given != "" {
		return filepath.Abs(given)
	}
	var dirs []string
	if dir, err := e.userConfigDir(); err == nil {
		dirs = append(dirs, filepath.Join(dir, "ringi"))
	}
	for _, dir := range append(dirs, e.systemConfigDir()) {
		path := filepath.Join(dir, "ringi.yaml")
		_, err := os.Lstat(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("look for configuration: %w", err)
		}
	}
	return "", nil
}

// userConfigDir is the user's configuration folder (XDG base directories; the
// system's own on macOS and Windows).
func (e *env) userConfigDir() (string, error) {
	return e.userDir("XDG_CONFIG_HOME", "AppData", ".config")
}

// userStateDir is where the user's programs keep what they made.
func (e *env) userStateDir() (string, error) {
	return e.userDir("XDG_STATE_HOME", "LocalAppData", filepath.Join(".local", "state"))
}

// userDir is one of the user's folders. A relative one is no folder (the XDG
// specification says so): it would depend on the working folder.
func (e *env) userDir(xdg, windows, unix string) (string, error) {
	if dir := e.getenv(xdg); filepath.IsAbs(dir) {
		return dir, nil
	}
	home := e.getenv("HOME")
	switch {
	case runtime.GOOS == "windows" && filepath.IsAbs(e.getenv(windows)):
		return e.getenv(windows), nil
	case runtime.GOOS == "windows" || !filepath.IsAbs(home):
		return "", errors.New("this user has no home folder")
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Application Support"), nil
	}
	return filepath.Join(home, unix), nil
}

func (e *env) systemConfigDir() string {
	switch runtime.GOOS {
	case "windows":
		if dir := e.getenv("ProgramData"); filepath.IsAbs(dir) {
			return filepath.Join(dir, "ringi")
		}
		return `C:\ProgramData\ringi`
	case "darwin":
		return "/Library/Application Support/ringi"
	}
	return "/etc/ringi"
}

// read reads the file at path into c. Paths in it are meant from its folder.
func (c *config) read(path string) error {
	text, err := readGuarded(path, onlyOursWrite)
	if err != nil {
		return err
	}
	if err := c.decode(text); err != nil {
		return err
	}
	c.file = path
	for _, p := range c.paths() {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(path), *p)
		}
	}
	return nil
}

// paths are all that name files and folders.
func (c *config) paths() []*string {
	out := []*string{&c.Data, &c.KeyFile, &c.TLS.CertFile, &c.TLS.KeyFile, &c.Login.OIDC.ClientSecretFile}
	out = append(out, c.Notify.paths()...)
	for i := range c.Agents {
		a := &c.Agents[i]
		out = append(out, &a.SystemFile, &a.Tools.File, &a.Tools.External)
		out = append(out, a.Model.paths()...)
	}
	for i := range c.Webhooks {
		out = append(out, &c.Webhooks[i].SecretFile)
	}
	return out
}

// decode reads YAML strictly: one document, no key twice, none that is
// unknown, none without a value.
func (c *config) decode(text []byte) error {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return atLine(err)
	}
	docs := 0
	for _, d := range file.Docs {
		if d.Body == nil {
			continue
		}
		if docs++; docs > 1 {
			return fmt.Errorf("line %d: a second document begins, and one is meant", d.Body.GetToken().Position.Line)
		}
		var empty emptyValues
		ast.Walk(&empty, d.Body)
		if empty.line > 0 {
			return fmt.Errorf("line %d: a key without a value: leave it out, or say what it is", empty.line)
		}
	}
	if docs == 0 {
		return nil // nothing but comments: the defaults
	}
	if err := yaml.UnmarshalWithOptions(text, c, yaml.Strict()); err != nil && !errors.Is(err, io.EOF) {
		return atLine(err)
	}
	return nil
}

// emptyValues finds the first null: a list whose entries were indented wrongly
// would else be an empty one, and an empty list of deciders is everybody.
type emptyValues struct{ line int }

// Visit implements ast.Visitor.
func (v *emptyValues) Visit(n ast.Node) ast.Visitor {
	if _, null := n.(*ast.NullNode); null && v.line == 0 {
		v.line = n.GetToken().Position.Line
	}
	return v
}

// atLine tells an error of the YAML library by its line, and names the key
// that an unknown one is most like.
func atLine(err error) error {
	e, ok := errors.AsType[yaml.Error](err)
	if !ok {
		return err
	}
	message := e.GetMessage()
	if u, ok := errors.AsType[*yaml.UnknownFieldError](err); ok {
		key := u.Token.Value
		message = fmt.Sprintf("unknown key %q", key)
		if near := nearestKey(key); near != "" {
			message += fmt.Sprintf("; the nearest is %q", near)
		}
	}
	line := 0
	if t := e.GetToken(); t != nil && t.Position != nil {
		line = t.Position.Line
	}
	return fmt.Errorf("line %d: %s", line, message)
}

// nearestKey is the key of the configuration that is most like another one.
func nearestKey(key string) string {
	return nearest.Of(strings.ToLower(key), slices.Values(keysOf(reflect.TypeFor[config]())))
}

// keysOf lists the keys of a struct and of all below it, without their levels.
func keysOf(t reflect.Type) []string {
	var out []string
	for _, full := range pathsOf(t, "") {
		for _, k := range strings.Split(full, ".") {
			if !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}

// pathsOf lists the keys of a struct with their levels: tls.cert_file.
func pathsOf(t reflect.Type, above string) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get("yaml")
		if key == "" {
			continue
		}
		key = above + key
		switch ft := f.Type; {
		case ft.Kind() == reflect.Slice && ft.Elem() == t: // fallback, of a model: the same keys again
			out = append(out, key)
		case ft.Kind() == reflect.Slice && ft.Elem().Kind() == reflect.Struct: // agents, webhooks
			out = append(out, key)
			out = append(out, pathsOf(ft.Elem(), key+".")...)
		case ft.Kind() == reflect.Struct && ft.NumField() > 0 && ft.Field(0).Tag.Get("yaml") != "":
			out = append(out, pathsOf(ft, key+".")...)
		default:
			out = append(out, key)
		}
	}
	return out
}
