package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"rsc.io/qr"

	"github.com/ringi-dev/ringi/access"
)

// directory is the server's directory of people and tokens, open.
type directory struct {
	*access.Directory
	db *sql.DB
}

func (d *directory) close() error { return d.db.Close() }

// openDirectory opens the database of people and tokens, and makes it where it
// is missing: a file that its owner alone may read.
func openDirectory(ctx context.Context, path string, o access.Options) (*directory, error) {
	if err := makeSecret(path, nil); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make %s: %w", path, err)
	}
	f, err := openGuarded(path, onlyOursRead)
	if err != nil {
		return nil, fmt.Errorf("open people and tokens: %w", err)
	}
	f.Close()
	db, err := openAccessDB(path)
	if err != nil {
		return nil, fmt.Errorf("open people and tokens: %w", err)
	}
	d, err := access.Open(ctx, db, o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open people and tokens: %w", err), db.Close())
	}
	return &directory{d, db}, nil
}

// owner is the login of who started a server for himself: it is made with the
// first start, and does everything.
const owner = "owner"

// firstUser makes the owner where there is nobody yet. It reports his id.
func (d *directory) firstUser(ctx context.Context, name string) (string, error) {
	by := operator()
	there, err := d.Users(ctx, by, "", 1)
	if err != nil || len(there) > 0 {
		return "", err
	}
	u := access.User{ID: access.LocalID(owner), Name: name, Payloads: true,
		Roles: []access.Role{access.RoleAdmin, access.RoleApprover, access.RoleUser, access.RoleAuditor}}
	if err := d.AddUser(ctx, by, u); err != nil && !errors.Is(err, access.ErrExists) {
		return "", err
	}
	return u.ID, nil
}

// operator is who works on the database itself: this user of the system.
func operator() access.Who {
	by, err := person()
	if err != nil {
		return access.Operator("os:unknown", "default")
	}
	return access.Operator(by.ID, "default")
}

// tend clears what has ended, until ctx is done.
func (d *directory) tend(ctx context.Context, failed func(error)) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if err := d.Tend(context.WithoutCancel(ctx)); err != nil {
				failed(err)
			}
			return
		case <-tick.C:
			if err := d.Tend(ctx); err != nil && ctx.Err() == nil {
				failed(err)
			}
		}
	}
}

// loginURL is the address that a login link is used at.
func loginURL(base, link string) string { return strings.TrimSuffix(base, "/") + "/login?link=" + link }

// code draws a text as a QR code, two rows of dots a line.
func code(text string) string {
	c, err := qr.Encode(text, qr.L)
	if err != nil {
		return ""
	}
	var b strings.Builder
	dark := func(x, y int) bool { return x >= 0 && y >= 0 && x < c.Size && y < c.Size && c.Black(x, y) }
	for y := -2; y < c.Size+2; y += 2 {
		for x := -2; x < c.Size+2; x++ {
			switch up, down := dark(x, y), dark(x, y+1); { // light on a dark terminal
			case up && down:
				b.WriteByte(' ')
			case up:
				b.WriteRune('▄')
			case down:
				b.WriteRune('▀')
			default:
				b.WriteRune('█')
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// overDirectory runs a command on the directory of the configured server, which
// may be running: several processes share it.
func (e *env) overDirectory(cmd *cobra.Command, do func(context.Context, *directory, *config) error) error {
	file, _ := cmd.Flags().GetString("config")
	c, err := e.readConfig(file, typedFlags(cmd))
	if err != nil {
		return err
	}
	data, err := e.dataFolder(c)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(data, accessFile)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no server has been started over %s yet: `ringi serve` makes it", data)
	}
	d, err := openDirectory(cmd.Context(), filepath.Join(data, accessFile), c.accessOptions())
	if err != nil {
		return err
	}
	defer d.close()
	return do(cmd.Context(), d, c)
}

// serverFlags are the flags that find a server's data.
func serverFlags(cmd *cobra.Command) {
	cmd.Flags().String("config", "", "the configuration, as for ringi serve")
	for _, s := range settings {
		if s.flag == "data" || s.flag == "public-url" || s.flag == "listen" {
			cmd.Flags().String(s.flag, "", s.usage())
		}
	}
}

// base is the address that people reach the configured server at.
func (c *config) base() string {
	switch {
	case c.public != nil:
		return c.public.String()
	case c.tls():
		return "https://" + c.Listen
	}
	return "http://" + c.Listen
}
