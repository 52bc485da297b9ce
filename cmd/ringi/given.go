package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// given reads the text that a flag names: itself, @FILE, or - for standard
// input. A terminal is read to its end too.
func (e *env) given(flag string) (string, error) {
	if flag == "-" {
		return readText(e.in)
	}
	name, ok := strings.CutPrefix(flag, "@")
	if !ok {
		return flag, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return readText(f)
}

// maxGiven is more than any answer may hold: the engine has the true limits.
const maxGiven = 8 << 20

func readText(r io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxGiven+1))
	if err != nil {
		return "", fmt.Errorf("read input: %w", err)
	}
	if len(b) > maxGiven {
		return "", errors.New("read input: it is larger than 8 MiB")
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

// framed shows a text of the person's own before he agrees to it.
func (e *env) framed(text string) plain {
	page := e.paints(e.err)
	page.frame(text)
	return plain(page.buf.String())
}
