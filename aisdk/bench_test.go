//go:build unix

package aisdk_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ringi-dev/ringi"
	"github.com/ringi-dev/ringi/aisdk"
	"github.com/ringi-dev/ringi/engine"
	"github.com/ringi-dev/ringi/live"
)

// ticker is a model that says 200 deltas, each with the time when it was said.
type ticker struct {
	pause time.Duration
	ready *sync.WaitGroup // every chat is connected
}

const ticks = 200

var epoch = time.Now()

func (m ticker) Generate(ctx context.Context, req ringi.ModelRequest) iter.Seq2[ringi.ModelEvent, error] {
	return func(yield func(ringi.ModelEvent, error) bool) {
		m.ready.Done()
		m.ready.Wait()
		var all []byte
		// Chats do not tick in step.
		var seed [8]byte
		copy(seed[:], req.RunID[len(req.RunID)-8:])
		time.Sleep(time.Duration(binary.LittleEndian.Uint64(seed[:]) % uint64(m.pause+1)))
		timer := time.NewTicker(m.pause)
		defer timer.Stop()
		for range ticks {
			<-timer.C
			at := len(all)
			all = fmt.Appendf(all, "%012d ", time.Since(epoch).Microseconds())
			if !yield(ringi.ModelEvent{TextDelta: string(all[at:])}, nil) {
				return
			}
		}
		yield(ringi.ModelEvent{Turn: &ringi.ModelTurn{Text: string(all)}}, nil)
	}
}

// BenchmarkStream is 1,000 chats at once, 200 deltas each, over loopback TCP,
// server and clients in one process: from the model's delta to the client's read.
// Requests and responses are real HTTP by net/http's server. The client is no
// HTTP client and no parser of events: it scans lines for deltas, so that its own
// cost stays small. No TLS, proxy or browser is in the numbers, the store is
// memory, the model pauses 100 ms between deltas, and a chat's connection is made
// before its first delta. Deltas that come with others, or with the turn's end, are
// counted one by one; "seen" is the share of all that came, and has to be 1.
func BenchmarkStream(b *testing.B) {
	for _, chats := range []int{100, 1000} {
		b.Run(fmt.Sprint(chats), func(b *testing.B) { benchStream(b, chats) })
	}
}

func benchStream(b *testing.B, chats int) {
	var lags []time.Duration
	var allocs, bytes_ uint64
	used := cpu()
	for b.Loop() {
		var ready sync.WaitGroup
		ready.Add(chats)
		feed := &live.Feed{}
		e, err := engine.New(engine.Config{Agent: "a", Model: ticker{100 * time.Millisecond, &ready}, Live: feed.Publish})
		if err != nil {
			b.Fatal(err)
		}
		h, err := aisdk.New(aisdk.Options{Service: e, Agent: "a", Who: who, Feed: feed, Resume: e.Resume, MaxStreams: chats})
		if err != nil {
			b.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		server := &http.Server{Handler: h}
		go server.Serve(l)
		out := make(chan []time.Duration, chats)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range chats {
			go func() { out <- listen(b, l.Addr().String(), i) }()
		}
		for range chats {
			lags = append(lags, <-out...)
		}
		runtime.ReadMemStats(&after)
		allocs += after.Mallocs - before.Mallocs
		bytes_ += after.TotalAlloc - before.TotalAlloc
		server.Close()
	}
	slices.Sort(lags)
	if len(lags) == 0 {
		b.Fatal("nothing came")
	}
	for name, q := range map[string]float64{"p50-ms": 0.5, "p99-ms": 0.99, "max-ms": 1} {
		b.ReportMetric(float64(lags[int(q*float64(len(lags)-1))].Microseconds())/1000, name)
	}
	n := float64(b.N * chats * ticks)
	b.ReportMetric(float64(allocs)/n, "allocs/delta")
	b.ReportMetric(float64(bytes_)/n, "B/delta")
	b.ReportMetric(float64((cpu()-used).Microseconds())/n, "cpu-µs/delta") // model, server and client
	b.ReportMetric(float64(len(lags))/n, "seen")
	b.ReportMetric(0, "ns/op")
}

// listen reads one chat's stream on a connection of its own, with as little as
// can be: what it costs is the client's, and in the numbers.
func listen(b *testing.B, addr string, i int) (lags []time.Duration) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Error(err)
		return nil
	}
	defer c.Close()
	body, _ := json.Marshal(map[string]any{"id": fmt.Sprint("chat-", i), "messages": []any{map[string]any{"id": "m", "role": "user", "parts": []any{map[string]any{"type": "text", "text": "go"}}}}})
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nX-User: ana\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	r := bufio.NewReader(c)
	lags = make([]time.Duration, 0, ticks)
	mark := []byte(`"delta":"`)
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			if err != io.EOF {
				b.Error(err)
			}
			return lags
		}
		now := time.Since(epoch)
		at := bytes.Index(line, mark)
		if at < 0 {
			if bytes.Contains(line, []byte("[DONE]")) {
				return lags
			}
			continue
		}
		// Several deltas may come at once: all are counted.
		for text := line[at+len(mark):]; len(text) >= 13 && text[12] == ' '; text = text[13:] {
			var us int64
			for _, d := range text[:12] {
				us = us*10 + int64(d-'0')
			}
			lags = append(lags, now-time.Duration(us)*time.Microsecond)
		}
	}
}

// cpu is the processor time that this process has used: what other processes
// take of the machine does not count.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
