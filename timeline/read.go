package timeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/hostlaunch/cuda"
)

// ReadTrace reads a Trace from its JSON form, which is what encoding/json makes of one and what hostlaunch demo --trace writes. What is
// no trace, or one that contradicts itself, is an error that says why; so is anything behind it. What newer versions add is ignored.
func ReadTrace(r io.Reader) (*cuda.Trace, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("timeline: %w", err)
	}
	if err := looksLikeTrace(text); err != nil {
		return nil, err
	}
	t := new(cuda.Trace)
	if err := json.Unmarshal(text, t); err != nil {
		return nil, fmt.Errorf("timeline: this is not a trace: %w", withLine(text, err))
	}
	return t, check(t)
}

// looksLikeTrace is an error if text is something else altogether.
func looksLikeTrace(text []byte) error {
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 {
		return fmt.Errorf("timeline: this is not a trace: there is nothing in it")
	}
	if trimmed[0] != '{' {
		return fmt.Errorf("timeline: this is not a trace: it begins with %.10q, and a trace is a JSON object", trimmed)
	}
	var has map[string]json.RawMessage
	if err := json.Unmarshal(text, &has); err != nil {
		return fmt.Errorf("timeline: this is not a trace: %w", withLine(text, err))
	}
	if _, ok := has["traceEvents"]; ok {
		return fmt.Errorf("timeline: this is a trace for Chrome, which cannot be read back; keep the Trace itself as JSON")
	}
	for _, name := range []string{"driver", "streams", "spans"} {
		if _, ok := has[name]; !ok {
			return fmt.Errorf("timeline: this is not a trace: it has no %q", name)
		}
	}
	return nil
}

// withLine says on which line of text the decoder failed.
func withLine(text []byte, err error) error {
	var at int64
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &kind):
		at = kind.Offset
	default:
		return err
	}
	at = min(max(at, 0), int64(len(text)))
	return fmt.Errorf("line %d: %w", 1+bytes.Count(text[:at], []byte("\n")), err)
}
