package libcuda

import (
	"fmt"
	"strings"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
)

// OpenError is what [Open] fails with (CONTRACT LI-04). It wraps a *cuda.Error, whose code is one of
//
//   - cuda.ErrNotFound: there is no driver library;
//   - cuda.ErrStubLibrary: only the toolkit's stub of it, which serves to link programs;
//   - cuda.ErrCallRequiresNewerDriver: only one older than CUDA 12.0;
//   - cuda.ErrNoDevice, or whatever else the driver answered when it was initialised;
//   - cuda.ErrSharedObjectSymbolNotFound: the driver lacks a function that every driver has;
//   - cuda.ErrNotSupported: this platform has none.
type OpenError struct {
	Err    *cuda.Error
	Tried  []Attempt // in order
	Advice string    // what to do about it, in sentences, without the last one's full stop; "" if there is none
}

// Attempt is one place where a driver library was looked for, and why it was not the one.
type Attempt struct {
	Path   string
	Code   cuda.Code
	Reason string
}

// Error says what is missing, what was tried, and the way out.
func (e *OpenError) Error() string { return e.Err.Error() }

// Unwrap gives the *cuda.Error.
func (e *OpenError) Unwrap() error { return e.Err }

// noFile is the reason of an Attempt at a path where there is nothing.
const noFile = "no such file"

// openError makes an OpenError. Its text, which format gives, has the advice already.
func openError(code cuda.Code, tried []Attempt, advice, format string, args ...any) *OpenError {
	return &OpenError{cuda.NewError("libcuda.Open", driver.Result(code), fmt.Sprintf(format, args...)), tried, advice}
}

// describe lists what was tried; places where there is nothing share one entry, since most are such.
func describe(tried []Attempt) string {
	var parts, absent []string
	for _, a := range tried {
		if a.Reason == noFile {
			absent = append(absent, a.Path)
			continue
		}
		parts = append(parts, a.Path+": "+a.Reason)
	}
	if len(absent) > 0 {
		parts = append(parts, noFile+": "+strings.Join(absent, ", "))
	}
	return strings.Join(parts, "; ")
}
