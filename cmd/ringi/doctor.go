package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ringi-dev/ringi/sign"
)

const doctorLong = `Look for what would let a program of this user decide in a person's place:
files that others can read or exchange, a key beside its store, a secret that
every child process inherits, scripts that may decide.

It looks at the configured server's files, or at one store with --store, and
changes nothing. Exit 1 where it found something.

What it cannot find: under one user of the system nothing keeps a program with a
shell from the key. Let the server run as a user that no tool runs as.`

// ill is one finding of the doctor.
type ill struct {
	What string `json:"what"`
	// Fix is what to do; a line to type where there is one.
	Fix string `json:"fix"`
}

// doctor gathers findings.
type doctor struct {
	e     *env
	found []ill
	files int
}

func newDoctorCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Look for files, keys and settings that let others decide",
		Long:    doctorLong,
		Example: "  ringi doctor\n  ringi doctor --store sqlite:ringi.db --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &doctor{e: e, found: []ill{}}
			if err := d.examine(cmd); err != nil {
				return err
			}
			return d.report()
		},
	}
	serverFlags(cmd)
	return cmd
}

func (d *doctor) examine(cmd *cobra.Command) error {
	if d.e.server != "" {
		return usagef("doctor looks at files: it is for a store or a server here, not for --server")
	}
	d.environment()
	name := d.e.store
	if name == "" && !cmd.Flags().Changed("config") && !cmd.Flags().Changed("data") {
		name = d.e.getenv("RINGI_STORE")
	}
	if name != "" {
		path, err := sqlitePath(name)
		if err != nil {
			return err
		}
		return d.store(cmd.Context(), path)
	}
	return d.server(cmd)
}

// environment looks at what child processes inherit, and at who this is.
func (d *doctor) environment() {
	if d.e.getenv(sign.SecretEnv) != "" {
		d.add("the key stands in the environment, "+sign.SecretEnv+": every child process inherits it, and it stays readable in /proc",
			"keep it in a file that only the server's user may read: key_file, or a credential of the service manager")
	}
	if d.e.getenv(tokenEnv) != "" {
		d.add("a token stands in the environment, "+tokenEnv+": every child process inherits it", "name a file with --token-file")
	}
	if os.Geteuid() == 0 {
		d.add("this is root: whatever it starts may read every key", "run Ringi as a user of its own")
	}
}

// server looks at the files of the configured server.
func (d *doctor) server(cmd *cobra.Command) error {
	file, _ := cmd.Flags().GetString("config")
	c, err := d.e.readConfig(file, typedFlags(cmd))
	if err != nil {
		return err
	}
	data, err := d.e.dataFolder(c)
	if err != nil {
		return err
	}
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no server has been started over %s yet: `ringi serve` makes it", data)
	}
	for _, name := range []string{accessFile, notifyFile, webhookFile} {
		d.secret(filepath.Join(data, name))
	}
	key, err := d.e.keyFile(c)
	if err == nil {
		d.secret(key)
		if filepath.Dir(key) == data {
			d.beside(key)
		}
	}
	return d.store(cmd.Context(), filepath.Join(data, storeFile))
}

// store looks at a store's files and at what it allows.
func (d *doctor) store(ctx context.Context, path string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("look at store: %w", err)
	}
	d.secret(path)
	beside, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.key"))
	for _, key := range beside {
		d.beside(key)
	}
	store, err := openStore("sqlite:" + path)
	if err != nil {
		return err
	}
	defer store.Close()
	keys, err := store.Keys(ctx)
	if err != nil {
		return fmt.Errorf("read key memory: %w", err)
	}
	if len(keys) == 0 {
		d.add("the store has no key: who writes to its file writes approvals", "give a new store a key, "+sign.SecretEnv+" or key_file: one without stays without")
	}
	scripts, err := store.Flag(ctx, flagScripted)
	if err != nil {
		return fmt.Errorf("read flag: %w", err)
	}
	if scripts != "" {
		d.add("any script of this user may decide", "ringi store set scripted-decisions off --store sqlite:"+path)
	}
	return nil
}

func (d *doctor) beside(key string) {
	d.add("the key "+key+" lies beside the store: a copy of one folder is a copy of both", "move it, and say where it is: key_file, or "+sign.SecretEnv)
}

// secret holds a file, and what SQLite has beside it, to be its owner's alone.
func (d *doctor) secret(path string) {
	for _, p := range []string{path, path + "-wal", path + "-shm"} {
		if _, err := os.Lstat(p); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		d.files++
		if err := checkGuarded(p, onlyOursRead); err != nil {
			d.add(err.Error(), "its owner alone should read it")
		}
	}
}

func (d *doctor) add(what, fix string) {
	if one := (ill{what, fix}); !slices.Contains(d.found, one) {
		d.found = append(d.found, one)
	}
}

func (d *doctor) report() error {
	if d.e.json {
		err := d.e.printJSON(struct {
			Files    int   `json:"files"`
			Findings []ill `json:"findings"`
		}{d.files, d.found})
		if err != nil {
			return err
		}
	}
	if n := len(d.found); n > 0 {
		for _, f := range d.found {
			if !d.e.json {
				d.e.say("- %s.\n  %s.\n", f.What, f.Fix)
			}
		}
		return fmt.Errorf("findings that may let others decide: %d", n)
	}
	if d.e.json {
		return nil
	}
	d.e.say("Looked at %d files and found nothing. Under one user of the system a program with a shell reaches the key all the same.\n", d.files)
	return nil
}
