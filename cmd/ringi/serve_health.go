package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/ringi-dev/ringi"
)

// healthz says that the process answers.
func (s *server) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	io.WriteString(w, "ok\n")
}

// readyz says whether the server can do its work: the store can be read and
// written, and the worker works. What is wrong is said in the log alone: anybody
// may ask.
func (s *server) readyz(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch what, err := s.health.check(r.Context(), s); {
	case s.stopping.Err() != nil:
		http.Error(w, "stopping", http.StatusServiceUnavailable)
	case err != nil:
		s.log.Warn("not ready", "what", what, "error", err)
		http.Error(w, "not ready: "+what, http.StatusServiceUnavailable)
	default:
		io.WriteString(w, "ready\n")
	}
}

// health keeps the last look at the store for a moment: whoever asks all the
// time does not make the disk busy.
type health struct {
	mu   sync.Mutex
	at   time.Time
	what string
	err  error
}

const (
	healthAge   = time.Second
	healthLimit = 2 * time.Second
)

func (h *health) check(ctx context.Context, s *server) (what string, err error) {
	if err := s.worker.Check(); err != nil {
		return "worker", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.at.IsZero() && time.Since(h.at) < healthAge {
		return h.what, h.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthLimit)
	defer cancel()
	h.what, h.err = "store", readAndWrite(ctx, s.store)
	h.at = time.Now()
	return h.what, h.err
}

// readAndWrite reads the store, and writes into it what means nothing: the
// heartbeat of nobody, which has ended.
func readAndWrite(ctx context.Context, store ringi.Store) error {
	if _, err := store.Runs(ctx, ringi.RunQuery{Space: "default", Limit: 1}); err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	if err := store.Beat(ctx, "readyz", 0); err != nil {
		return fmt.Errorf("write store: %w", err)
	}
	return nil
}

// loadPair reads the server's certificate and its key, which others must not
// read.
func loadPair(cert, key string) (*tls.Config, error) {
	certPEM, err := os.ReadFile(cert)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	keyPEM, err := readGuarded(key, onlyOursRead)
	if err != nil {
		return nil, fmt.Errorf("read key of the certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// notifyManager tells a service manager how the server stands (sd_notify(3)):
// systemd waits for READY=1 of a service of type notify. Nothing depends on it.
func notifyManager(log *slog.Logger, state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	conn, err := net.Dial("unixgram", path)
	if err == nil {
		_, err = conn.Write([]byte(state))
		conn.Close()
	}
	if err != nil {
		log.Warn("tell the service manager", "state", state, "error", err)
	}
}
