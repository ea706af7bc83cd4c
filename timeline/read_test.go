package timeline_test

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/timeline"
)

// TestReadTrace: what was written as JSON comes back.
func TestReadTrace(t *testing.T) {
	text, err := json.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	got, err := timeline.ReadTrace(strings.NewReader(string(text)))
	if err != nil || !reflect.DeepEqual(got, sample()) {
		t.Errorf("%v\n%+v", err, got)
	}
}

// TestReadTraceRefuses: what is no trace is told in words that help.
func TestReadTraceRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "nothing in it",
		"  \n":                       "nothing in it",
		"[1]":                        "JSON object",
		"digraph {}":                 "this is not a trace: it begins with",
		`{"traceEvents":[]}`:         "for Chrome",
		"{\n\"driver\":\n":           "line 3",
		`{"driver":"","streams":[]}`: `no "spans"`,
		`{"driver":"","spans":[]}`:   `no "streams"`,
		"{\"driver\":\"\",\"streams\":[],\n\"spans\":[{\"id\":\"x\"}]}":                        "line 2",
		`{"driver":"","streams":[],"spans":[]} x`:                                              "this is not a trace",
		`{"driver":"","streams":[],"spans":[{"id":0,"kind":"copy"}]}`:                          "ids begin at 1",
		`{"driver":"","streams":[],"spans":[{"id":1,"kind":"copy"}]}`:                          "span 1 of 1: it is of stream 0, and the trace has 0",
		`{"driver":"","streams":[{}],"spans":[{"id":1}]}`:                                      "no kind",
		`{"driver":"","streams":[{}],"spans":[{"id":1,"kind":"x"},{"id":1,"kind":"x"}]}`:       "another span's",
		`{"driver":"","streams":[{}],"spans":[{"id":1,"kind":"x","start":9,"end":8}]}`:         "before it began",
		`{"driver":"","streams":[{}],"spans":[{"id":1,"kind":"x","enqueued":9,"returned":8}]}`: "returned at 8ns, before",
		`{"driver":"","streams":[{}],"spans":[{"id":1,"kind":"x","enqueued":-2}]}`:             "negative",
		`{"driver":"","streams":[{"device":-1}],"spans":[]}`:                                   "device -1",
		`{"driver":"","duration":-1,"streams":[],"spans":[]}`:                                  "negative",
	} {
		if _, err := timeline.ReadTrace(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	failed := errors.New("no disk")
	if _, err := timeline.ReadTrace(iotest.ErrReader(failed)); !errors.Is(err, failed) {
		t.Errorf("reader's error: %v", err)
	}
}

// TestWritersRefuse: no trace, a wrong one, and a writer that fails.
func TestWritersRefuse(t *testing.T) {
	wrong := sample()
	wrong.Spans[0].Stream = 4
	failed := errors.New("no room")
	for name, write := range map[string]func(io.Writer, *cuda.Trace) error{
		"chrome": timeline.WriteChrome, "dot": timeline.WriteDOT, "html": timeline.WriteHTML,
	} {
		if err := write(io.Discard, nil); err == nil || !strings.Contains(err.Error(), "t is nil") {
			t.Errorf("%s of nil: %v", name, err)
		}
		if err := write(io.Discard, wrong); err == nil || !strings.Contains(err.Error(), "stream 4") {
			t.Errorf("%s of a wrong trace: %v", name, err)
		}
		if err := write(failingWriter{failed}, sample()); !errors.Is(err, failed) {
			t.Errorf("%s to a full disk: %v", name, err)
		}
		if err := write(io.Discard, new(cuda.Trace)); err != nil {
			t.Errorf("%s of an empty trace: %v", name, err)
		}
	}
	if _, err := timeline.Summarize(nil); err == nil {
		t.Error("a summary of nothing")
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
