package memory

import (
	"bytes"
	"container/list"
	"context"
	"fmt"
	"maps"

	"github.com/ringi-dev/ringi"
)

// SaveTool keeps a tool definition; a known digest keeps its first one.
func (s *Store) SaveTool(ctx context.Context, digest string, definition []byte) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	definition = bytes.Clone(definition)
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if _, known := s.d.tools[digest]; !known {
		s.d.tools[digest] = definition
	}
	return nil
}

// Tool returns a copy of a tool definition.
func (s *Store) Tool(ctx context.Context, digest string) ([]byte, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	s.d.mu.Lock()
	def, ok := s.d.tools[digest]
	s.d.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("tool %s: %w", digest, ringi.ErrNotFound)
	}
	return bytes.Clone(def), nil
}

// attempts is a bounded list of refused attempts: one list of all, oldest
// first, and one of each run.
type attempts struct {
	all   *list.List // of *attempt
	byRun map[runKey]*list.List
}

type runKey struct{ space, run string }

// attempt is one attempt with its places in both lists.
type attempt struct {
	ringi.Attempt
	inAll, inRun *list.Element
}

func newAttempts() attempts { return attempts{list.New(), map[runKey]*list.List{}} }

// add keeps an attempt and drops the oldest beyond the bounds.
func (l *attempts) add(a ringi.Attempt, most, mostOfRun int) {
	key := runKey{a.Space, a.RunID}
	of := l.byRun[key]
	if of == nil {
		of = list.New()
		l.byRun[key] = of
	}
	kept := &attempt{Attempt: a}
	kept.inAll, kept.inRun = l.all.PushBack(kept), of.PushBack(kept)
	if of.Len() > mostOfRun {
		l.drop(of.Front().Value.(*attempt))
	}
	for l.all.Len() > most {
		l.drop(l.all.Front().Value.(*attempt))
	}
}

func (l *attempts) drop(a *attempt) {
	key := runKey{a.Space, a.RunID}
	l.all.Remove(a.inAll)
	of := l.byRun[key]
	of.Remove(a.inRun)
	if of.Len() == 0 {
		delete(l.byRun, key)
	}
}

// Attempt keeps a refused attempt within the bounds of Options.
func (s *Store) Attempt(ctx context.Context, a ringi.Attempt) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	a.At = micros(a.At)
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.d.attempts.add(a, s.opts.MaxAttempts, s.opts.MaxRunAttempts)
	return nil
}

// Attempts returns the attempts of a run that are still kept, oldest first.
func (s *Store) Attempts(ctx context.Context, space, runID string) ([]ringi.Attempt, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	of := s.d.attempts.byRun[runKey{space, runID}]
	if of == nil {
		return nil, nil
	}
	out := make([]ringi.Attempt, 0, of.Len())
	for e := of.Front(); e != nil; e = e.Next() {
		out = append(out, e.Value.(*attempt).Attempt)
	}
	return out, nil
}

// Keys returns the key ids that the store has used, with their check values.
func (s *Store) Keys(ctx context.Context) (map[string]string, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return maps.Clone(s.d.keys), nil
}

// RememberKey adds a key id. A known one with another check value is an error.
func (s *Store) RememberKey(ctx context.Context, id, check string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if known, ok := s.d.keys[id]; ok && known != check {
		return fmt.Errorf("remember key %s: it is known with another check value", id)
	}
	s.d.keys[id] = check
	return nil
}

// ForgetKey drops a key id, but never the only one.
func (s *Store) ForgetKey(ctx context.Context, id string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if _, ok := s.d.keys[id]; !ok {
		return fmt.Errorf("forget key %s: %w", id, ringi.ErrNotFound)
	}
	if len(s.d.keys) == 1 {
		return fmt.Errorf("forget key %s: it is the store's only one", id)
	}
	delete(s.d.keys, id)
	return nil
}

// Flag reads a mark of the store; an unknown one is empty.
func (s *Store) Flag(ctx context.Context, name string) (string, error) {
	if err := s.begin(ctx); err != nil {
		return "", err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.d.flags[name], nil
}

// SetFlag writes a mark of the store.
func (s *Store) SetFlag(ctx context.Context, name, value string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.d.flags[name] = value
	return nil
}
