//go:build hostlaunch_native

// With the tag hostlaunch_native these tests call C, which those of native functions rely on not being possible:
//
//	go test -tags hostlaunch_native -run StagedNative ./softcuda

package softcuda_test

import (
	"bytes"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/hostlaunch/cuda"
	_ "github.com/hostlaunch/cuda/internal/ffi" // calls C, or what goes for it
	"github.com/hostlaunch/cuda/softcuda"
)

// TestStagedNative: workers that copy, wait and sleep without the Go runtime get every byte to its place, on several streams at
// once, with the garbage collector running, for copies that turn the ring and such that a single part is.
func TestStagedNative(t *testing.T) {
	d, err := softcuda.NewCalling(softcuda.Options{})
	check(t, err)
	defer d.Close()
	dev, err := d.Device(0)
	check(t, err)
	stop := make(chan struct{})
	var collecting, copying sync.WaitGroup
	collecting.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	for k := range 4 {
		copying.Go(func() {
			s, err := dev.NewStream()
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			for i, n := range []int{100_001, 1 << 20, 5<<20 + 1, 40 << 20, 70_000, 300_000} {
				if err := thereAndBack(dev, s, n+k, byte(i+k)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	copying.Wait()
	close(stop)
	collecting.Wait()
}

// thereAndBack copies n bytes to the device and back, and some rows of them.
func thereAndBack(dev *cuda.Device, s *cuda.Stream, n int, seed byte) error {
	b, err := dev.Alloc(n)
	if err != nil {
		return err
	}
	defer b.Close()
	src, dst := make([]byte, n), make([]byte, n)
	for i := range src {
		src[i] = byte(i*7+i>>8*13) + seed
	}
	var watch cuda.CopyProgress
	width := n / 20
	rows := make([]byte, 30*width)
	for _, err := range []error{
		cuda.CopyToDevice(s, b, src, cuda.Progress(&watch)),
		cuda.CopyToHost(s, dst, b, cuda.Progress(&watch)),
		cuda.CopyRowsToHost(s, rows, b, cuda.Rows{Width: width / 2, Height: 20, SrcPitch: width, DstPitch: width + width/2}),
		s.Sync(),
	} {
		if err != nil {
			return err
		}
	}
	if !bytes.Equal(src, dst) {
		return errDiffer
	}
	for y := range 20 {
		row := rows[y*(width+width/2):]
		if !bytes.Equal(row[:width/2], src[y*width:][:width/2]) || row[width/2] != 0 {
			return errDiffer
		}
	}
	return nil
}

var errDiffer = errors.New("the bytes differ")
