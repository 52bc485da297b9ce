package gemini

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// readStream reads server-sent events (WHATWG HTML, 9.2) to their end, and closes
// the stream where they ended in good order. An event that no blank line ends is
// none. The SDK's own reader takes it for one, and numbers through float64.
func readStream(from io.Reader, s *stream) error {
	in := bufio.NewReaderSize(from, 16<<10)
	var data, stray []byte
	for {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil {
			stray = append(stray, line...)
			break
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		name, value, isField := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0:
			if err := dispatch(s, data); err != nil {
				return err
			}
			data = data[:0]
		case isField && string(name) == "data":
			data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
		default:
			stray = append(append(stray, line...), '\n')
		}
	}
	if said, ok := strayFault(stray); ok {
		return s.call.Fault(said)
	}
	if err := s.close(); err != nil {
		return err
	}
	if s.finish == "" {
		return s.call.Err(nil, nil) // it ended early
	}
	return nil
}

// dispatch hands out the data of an event. "[DONE]", which gateways write, says
// nothing here.
func dispatch(s *stream, data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || string(data) == "[DONE]" {
		return nil
	}
	return s.read(data)
}
