//go:build linux && (amd64 || arm64)

package libcuda

import (
	"strings"
	"unsafe"

	"github.com/hostlaunch/cuda/internal/driver"
	"github.com/hostlaunch/cuda/internal/ffi"
)

// jit is what cuModuleLoadDataEx is told: where to write what is wrong with the image. A value is an address or a number.
type jit struct {
	options [2]int32
	values  [2]uintptr
	log     [8 << 10]byte
}

// The options' numbers.
const (
	jitErrorLogBuffer     = 5 // CU_JIT_ERROR_LOG_BUFFER
	jitErrorLogBufferSize = 6 // CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
)

// ModuleLoadData implements driver.Modules.
func (nv *nvidia) ModuleLoadData(ctx driver.Context, image []byte) (m driver.Module, log string, r driver.Result) {
	if len(image) == 0 {
		return 0, "the image is empty", driver.ErrorInvalidImage
	}
	c := ffi.NewCall()
	defer c.Free()
	j := &jit{options: [2]int32{jitErrorLogBuffer, jitErrorLogBufferSize}}
	c.Keep[0], c.Keep[1] = unsafe.Pointer(&terminated(image)[0]), unsafe.Pointer(j)
	// j is on the heap now, where it stays.
	j.values = [2]uintptr{uintptr(unsafe.Pointer(&j.log)), uintptr(len(j.log))}
	c.Args[0], c.Args[1], c.Args[2] = c.Ref(0), uintptr(c.Keep[0]), uintptr(len(j.options))
	c.Args[3], c.Args[4] = uintptr(unsafe.Pointer(&j.options)), uintptr(unsafe.Pointer(&j.values))
	r = nv.call(c, ctx, fnModuleLoadDataEx, 5)
	if r != driver.Success {
		return 0, strings.TrimSpace(text(j.log[:])), r
	}
	return driver.Module(c.Out[0]), "", r
}

// terminated returns image with a zero byte at its end: the driver is told no length, and reads PTX up to there.
func terminated(image []byte) []byte {
	if image[len(image)-1] == 0 {
		return image
	}
	return append(image[:len(image):len(image)], 0)
}
