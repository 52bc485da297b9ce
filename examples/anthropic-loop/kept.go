package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anthropics/anthropic-sdk-go"
)

// Kept is a conversation as it is saved after each answer of the model, before
// any of its calls runs.
type Kept struct {
	Messages []anthropic.BetaMessageParam `json:"messages"`
	// Calls are Ringi's ids of the calls in the last message, in their order.
	Calls []string `json:"calls,omitempty"`
}

// load reads a conversation; an absent file is an empty one.
func load(file string) (k Kept, err error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Kept{}, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &k)
	}
	return k, err
}

// saveTo writes a conversation in one step: a crash leaves the old one.
func saveTo(file string) func(Kept) error {
	return func(k Kept) error {
		b, err := json.Marshal(k)
		if err != nil {
			return err
		}
		f, err := os.CreateTemp(filepath.Dir(file), "conversation-*")
		if err != nil {
			return err
		}
		_, err = f.Write(b)
		err = errors.Join(err, f.Sync(), f.Close())
		if err == nil {
			err = os.Rename(f.Name(), file)
		}
		return err
	}
}
