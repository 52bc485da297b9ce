package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/sign"
)

// The files of the data folder.
const (
	storeFile  = "ringi.db"
	accessFile = "access.db"
)

// keyName is the key file's name in the folders where it is looked for.
const keyName = "ringi.key"

// serverKeys reads the server's key, and makes one for a new store. A store
// that has used a key needs that one: a new key would make all of its requests
// worthless, silently (S-19).
func (e *env) serverKeys(ctx context.Context, c *config, store ringi.Store) (*sign.Keyring, error) {
	keys, err := keyring()
	if err != nil {
		return nil, err
	}
	if keys != nil {
		if c.KeyFile != "" {
			return nil, fmt.Errorf("%s is set and so is key_file: say which of them holds the key", sign.SecretEnv)
		}
		return keys, nil
	}
	path, err := e.keyFile(c)
	if err != nil {
		return nil, err
	}
	keys, err = readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return keys, err
	}
	empty, err := e.isEmpty(ctx, store)
	if err != nil {
		return nil, err
	}
	if !empty {
		return nil, fmt.Errorf("open store: %w: there is no file %s. Name the store's key file, or set %s; a new key is made for a new store only",
			ringi.ErrNoKey, path, sign.SecretEnv)
	}
	return makeKey(path)
}

// keyFile is where the key is: as configured, a credential of the service
// manager, or in the user's configuration folder.
func (e *env) keyFile(c *config) (string, error) {
	if c.KeyFile != "" {
		return filepath.Abs(c.KeyFile)
	}
	if dir := e.getenv("CREDENTIALS_DIRECTORY"); filepath.IsAbs(dir) {
		path := filepath.Join(dir, keyName)
		if _, err := os.Lstat(path); err == nil {
			return path, nil
		}
	}
	dir, err := e.userConfigDir()
	if err != nil {
		return "", fmt.Errorf("find key file: %w: set key_file or %s", err, sign.SecretEnv)
	}
	return filepath.Join(dir, "ringi", keyName), nil
}

func readKey(path string) (*sign.Keyring, error) {
	text, err := readGuarded(path, onlyOursRead)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	keys, err := sign.Parse(string(text))
	clear(text)
	if err != nil {
		return nil, fmt.Errorf("read key file %s: %w", path, err)
	}
	return keys, nil
}

// makeKey makes the key of a new store. Of two servers that begin at once the
// second reads the first one's.
func makeKey(path string) (*sign.Keyring, error) {
	var secret [32]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	text := base64.StdEncoding.AppendEncode(nil, secret[:])
	err := makeSecret(path, append(text, '\n'))
	clear(text)
	clear(secret[:])
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make key: %w", err)
	}
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		keys, err := readKey(path)
		if err == nil || time.Since(begun) > time.Second {
			return keys, err
		}
	}
}
