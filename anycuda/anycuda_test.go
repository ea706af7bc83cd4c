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
		d, err := anycuda.Open(softcuda.Options{}, cuda.Logger(slog.New(slog.NewTextHandler(&log, nil))))
		if !errors.Is(err, test.code) {
			t.Errorf("%+v: error %v", test, err)
		}
		if err == nil && d.Name() != test.name {
			t.Errorf("%+v: got the %s driver", test, d.Name())
		}
		d.Close()
		if fell := test.choice == "" && test.library != ""; strings.Contains(log.String(), "level=INFO") != fell || fell && !strings.Contains(log.String(), test.library) {
			t.Errorf("%+v: logged %q", test, log.String())
		}
	}
}
