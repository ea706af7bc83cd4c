package anycuda_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/anycuda"
	"github.com/hostlaunch/cuda/softcuda"
)

func TestOpen(t *testing.T) {
	for _, test := range []struct {
		choice, library string // HOSTLAUNCH_DRIVER, and a library that is not there, unless ""
		name            string
		code            error
	}{
		{"software", "", "software", nil},
		{"", "/nonexistent/libcuda.so", "software", nil}, // no GPU: falls back
		{"nvidia", "/nonexistent/libcuda.so", "", cuda.ErrNotFound},
		{"gpu", "", "", cuda.ErrInvalidValue},
	} {
		t.Setenv(anycuda.Variable, test.choice)
		t.Setenv("HOSTLAUNCH_LIBCUDA", test.library)
		var log strings.Builder
		d, err := anycuda.Open(softcuda.Options{}, logger(&log, slog.LevelInfo))
		if !errors.Is(err, test.code) {
			t.Errorf("%+v: error %v", test, err)
		}
		if err == nil && d.Name() != test.name {
			t.Errorf("%+v: got the %s driver", test, d.Name())
		}
		d.Close()
		if fell := test.choice == "" && test.library != ""; strings.Contains(log.String(), "level=INFO") != fell {
			t.Errorf("%+v: logged %q", test, log.String())
		}
	}
}

// logger has what is of this level, or more urgent, written to log.
func logger(log *strings.Builder, level slog.Level) cuda.Option {
	return cuda.Logger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level})))
}

// TestFallBackLog: who falls back reads one short line, which is no failure; the whole reason is at level Debug.
func TestFallBackLog(t *testing.T) {
	const library = "/nonexistent/libcuda.so"
	t.Setenv(anycuda.Variable, "")
	t.Setenv("HOSTLAUNCH_LIBCUDA", library)
	for level, lines := range map[slog.Level]int{slog.LevelWarn: 0, slog.LevelInfo: 1, slog.LevelDebug: 2} {
		var log strings.Builder
		d, err := anycuda.Open(softcuda.Options{}, logger(&log, level))
		if err != nil {
			t.Fatal(err)
		}
		d.Close()
		text := log.String()
		if strings.Count(text, "\n") != lines || strings.Contains(text, library) != (lines == 2) || strings.Contains(text, "hostlaunch doctor says why") != (lines > 0) {
			t.Errorf("%v: logged %q", level, text)
		}
	}
}
