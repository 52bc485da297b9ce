package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/creack/pty"
)

// tryRecording is what README shows of `ringi try`. It is real output: made
// here, and made again by a test that compares the two.
const tryRecording = "internal/weave/testdata/try.txt"

// recordTry records `ringi try` anew.
func recordTry(root string) error {
	dir, err := os.MkdirTemp("", "weave-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin, err := buildRingi(root, dir)
	if err != nil {
		return err
	}
	text, err := terminal(bin, dir)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, filepath.FromSlash(tryRecording)), []byte(text), 0o644)
}

func buildRingi(root, dir string) (string, error) {
	bin := filepath.Join(dir, "ringi")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/ringi")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build ringi: %w\n%s", err, out)
	}
	return bin, nil
}

// The question of `ringi try`, and what the recording answers.
const (
	question = "[approve/deny/edit/later] "
	answer   = "approve\n"
)

// columns is the width of the terminal.
const columns = 100

// patience bounds a recording that hangs.
const patience = 5 * time.Minute

// terminal runs `ringi try` in a terminal of 100 columns, answers its one
// question, and returns what the terminal showed.
func terminal(bin, dir string) (string, error) {
	cmd := exec.Command(bin, "try")
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TERM=xterm", "NO_COLOR=1"}
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: columns})
	if err != nil {
		return "", fmt.Errorf("start ringi in a terminal: %w", err)
	}
	defer f.Close()
	kill := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer kill.Stop()
	shown, err := talk(f)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return "", fmt.Errorf("record ringi try: %w\n%s", err, shown)
	}
	return "$ ringi try\n" + folded(strings.ReplaceAll(shown, "\r", "")), nil
}

// folded breaks lines where the terminal breaks them.
func folded(text string) string {
	var out strings.Builder
	column := 0
	for _, r := range text {
		if r != '\n' && column == columns {
			out.WriteByte('\n')
			column = 0
		}
		out.WriteRune(r)
		if column++; r == '\n' {
			column = 0
		}
	}
	return out.String()
}

// talk reads what a program shows, and answers its question once.
func talk(f io.ReadWriter) (string, error) {
	var shown bytes.Buffer
	answered := false
	buf := make([]byte, 4096)
	for {
		n, err := f.Read(buf)
		shown.Write(buf[:n])
		if !answered && bytes.HasSuffix(shown.Bytes(), []byte(question)) {
			answered = true
			if _, err := io.WriteString(f, answer); err != nil {
				return shown.String(), err
			}
		}
		if err != nil { // a terminal whose program ended gives io.EOF, or EIO on Linux
			if !answered {
				return shown.String(), errors.New("the question was not put")
			}
			return shown.String(), nil
		}
	}
}

// What differs from one recording to the next.
var differs = []struct {
	is *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`\b(run|req|thr)_[0-9a-z]{26}`), "${1}_ID"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "DIGEST"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\b\d+s ago\b`), "SECONDS ago"},
}

// masked is a recording without what differs each time.
func masked(text string) string {
	for _, d := range differs {
		text = d.is.ReplaceAllString(text, d.as)
	}
	return text
}
