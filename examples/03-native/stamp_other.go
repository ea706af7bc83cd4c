//go:build !linux && !cgo

package main

import (
	"errors"

	"github.com/hostlaunch/cuda"
)

func stampFunction() (cuda.NativeFunc, error) {
	return 0, errors.New("without cgo this example needs Linux")
}
