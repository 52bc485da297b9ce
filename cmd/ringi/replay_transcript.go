package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	jsonv2 "github.com/go-json-experiment/json"
)

// script is one recorded conversation, as the runs that it is played in.
type script struct {
	thread string
	runs   []scriptRun
	// byUsers finds a run by the number of user messages up to and with its own.
	byUsers map[int]*scriptRun
	// calls counts the recorded calls.
	calls int
}

// scriptRun is one run: new user messages, and what the assistant said until
// the next one.
type scriptRun struct {
	users []string
	said  []recordedMessage
}

// recordedMessage is one assistant message. Without calls it is the run's last.
type recordedMessage struct {
	text  string
	calls []recordedCall
}

// recordedCall is one call with its recorded answer, both byte for byte.
type recordedCall struct {
	modelID, tool, input, answer string
}

// weight is how far a message moves the place in the recording: by its calls.
// The messages of one joined turn cannot be told apart, their calls can.
func (m *recordedMessage) weight() int { return max(1, len(m.calls)) }

// turn is what the model says next after calls of weight said: one recorded
// message, and, up to join calls in all, those that follow it with calls and
// without text. It reports false where said is no place in the recording. A
// recording that has no more to say gives the empty turn.
func (r *scriptRun) turn(said, join int) (recordedMessage, bool) {
	at := 0
	for i := range r.said {
		if at < said {
			at += r.said[i].weight()
			continue
		}
		return r.joined(i, join), at == said
	}
	return recordedMessage{}, true
}

func (r *scriptRun) joined(i, join int) recordedMessage {
	turn := recordedMessage{text: r.said[i].text, calls: r.said[i].calls}
	if len(turn.calls) == 0 {
		return turn
	}
	turn.calls = turn.calls[:len(turn.calls):len(turn.calls)]
	for _, next := range r.said[i+1:] {
		if len(next.calls) == 0 || next.text != "" || len(turn.calls)+len(next.calls) > join {
			break
		}
		turn.calls = append(turn.calls, next.calls...)
	}
	return turn
}

// call finds the call at a step (from 1) and position (from 0) of the run.
func (r *scriptRun) call(step, pos, join int) (recordedCall, bool) {
	said := 0
	for ; step > 1; step-- {
		turn, ok := r.turn(said, join)
		if !ok {
			return recordedCall{}, false
		}
		said += turn.weight()
	}
	turn, ok := r.turn(said, join)
	if !ok || pos < 0 || pos >= len(turn.calls) {
		return recordedCall{}, false
	}
	return turn.calls[pos], true
}

// transcriptLine is one line of a transcripts file. Other keys are ignored.
type transcriptLine struct {
	ID       string              `json:"id"`
	Messages []transcriptMessage `json:"messages"`
}

type transcriptMessage struct {
	Role    string  `json:"role"`
	Content *string `json:"content"`
	Calls   []struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"tool_calls"`
	CallID string `json:"tool_call_id"`
	Name   string `json:"name"`
}

func (m *transcriptMessage) text() string {
	if m.Content == nil {
		return ""
	}
	return *m.Content
}

// maxThreadRuns bounds the runs of one conversation: a store lists so many.
const maxThreadRuns = 1000

// maxTranscriptLine bounds one conversation.
const maxTranscriptLine = 64 << 20

// readTranscripts reads a transcripts file: one conversation a line, JSON. It
// returns a digest of the file too, which says whether a store was made from
// the same one.
func readTranscripts(path string) ([]*script, string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, "", fmt.Errorf("read transcripts: %w", err)
	}
	defer f.Close()
	hash := sha256.New()
	lines := bufio.NewScanner(io.TeeReader(f, hash))
	lines.Buffer(nil, maxTranscriptLine)
	var scripts []*script
	known := map[string]bool{}
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		s, err := readScript(lines.Bytes())
		if err == nil && known[s.thread] {
			err = fmt.Errorf("id %q is there twice", s.thread)
		}
		if err != nil {
			return nil, "", fmt.Errorf("read transcripts from %s: line %d: %w", path, n, err)
		}
		known[s.thread] = true
		scripts = append(scripts, s)
	}
	if err := lines.Err(); err != nil {
		return nil, "", fmt.Errorf("read transcripts from %s: %w", path, err)
	}
	if len(scripts) == 0 {
		return nil, "", fmt.Errorf("read transcripts from %s: it holds none", path)
	}
	return scripts, hex.EncodeToString(hash.Sum(nil)[:16]), nil
}

func readScript(line []byte) (*script, error) {
	var l transcriptLine
	if err := jsonv2.Unmarshal(line, &l); err != nil {
		return nil, err
	}
	if l.ID == "" || strings.ContainsFunc(l.ID, unicode.IsControl) {
		return nil, fmt.Errorf("id %q is empty or holds control characters", l.ID)
	}
	s := &script{thread: l.ID}
	for i := range l.Messages {
		m := &l.Messages[i]
		var err error
		switch m.Role {
		case "user":
			s.user(m)
		case "assistant":
			err = s.assistant(m)
		case "tool":
			err = s.answer(m)
		default:
			err = fmt.Errorf("unknown role %q", m.Role)
		}
		if err != nil {
			return nil, fmt.Errorf("transcript %s: message %d: %w", l.ID, i+1, err)
		}
	}
	if err := s.close(); err != nil {
		return nil, fmt.Errorf("transcript %s: %w", l.ID, err)
	}
	return s, nil
}

// user begins a run, or adds to one in which nobody has answered.
func (s *script) user(m *transcriptMessage) {
	if r := s.last(); r == nil || len(r.said) > 0 {
		s.runs = append(s.runs, scriptRun{})
	}
	r := s.last()
	r.users = append(r.users, m.text())
}

func (s *script) last() *scriptRun {
	if len(s.runs) == 0 {
		return nil
	}
	return &s.runs[len(s.runs)-1]
}

func (s *script) assistant(m *transcriptMessage) error {
	r := s.last()
	if r == nil {
		return errors.New("the assistant speaks before any user")
	}
	if n := len(r.said); n > 0 && len(r.said[n-1].calls) == 0 {
		return errors.New("the assistant speaks again after its last word")
	}
	said := recordedMessage{text: m.text()}
	for _, c := range m.Calls {
		said.calls = append(said.calls, recordedCall{modelID: c.ID, tool: c.Name, input: c.Arguments, answer: unanswered})
	}
	s.calls += len(said.calls)
	r.said = append(r.said, said)
	return nil
}

// unanswered marks a call while its recorded answer is not read; it is no text.
const unanswered = "\xff"

// answer pairs a tool message with the first call of its id in the message
// before that has no answer: recorded ids repeat across a conversation, and
// may within a message.
func (s *script) answer(m *transcriptMessage) error {
	r := s.last()
	if r == nil || len(r.said) == 0 {
		return errors.New("a result without a call")
	}
	calls := r.said[len(r.said)-1].calls
	for i := range calls {
		if c := &calls[i]; c.modelID == m.CallID && c.answer == unanswered {
			if m.Name != "" && m.Name != c.tool {
				return fmt.Errorf("the result of %s is named %s", c.tool, m.Name)
			}
			c.answer = m.text()
			return nil
		}
	}
	return fmt.Errorf("a result for call id %q, which waits for none", m.CallID)
}

// close drops a last user message that nobody answered, and checks that the
// recording can be played to its end.
func (s *script) close() error {
	if r := s.last(); r != nil && len(r.said) == 0 {
		s.runs = s.runs[:len(s.runs)-1]
	}
	if len(s.runs) > maxThreadRuns {
		return fmt.Errorf("it has %d runs, and %d is the most", len(s.runs), maxThreadRuns)
	}
	s.byUsers = make(map[int]*scriptRun, len(s.runs))
	users := 0
	for i := range s.runs {
		r := &s.runs[i]
		users += len(r.users)
		s.byUsers[users] = r
		for _, m := range r.said {
			for _, c := range m.calls {
				if c.answer == unanswered {
					return fmt.Errorf("the call of %s with id %q has no recorded answer", c.tool, c.modelID)
				}
			}
		}
	}
	return nil
}
