package softcuda

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
)

// FuzzModule hands LoadModule images of any kind: PTX text, cubins, parts of them, anything. It takes an image or refuses it with
// the reason; each kernel of one that it takes can be found by its name, and launched with arguments of the sizes that it
// declares, which arrive.
func FuzzModule(f *testing.F) {
	for _, image := range images(f) {
		f.Add(image)
	}
	f.Fuzz(func(t *testing.T, image []byte) {
		kernels, _, r := parseImage(image)
		twins := Kernels{}
		for name, e := range kernels {
			if !e.known {
				kernels[name] = entry{} // it is launched without arguments
				e.params = nil
			}
			twins[name] = checkArguments(t, e.params)
		}
		drv := New(Options{Kernels: twins})
		u := &imageUse{T: t, drv: drv}
		u.load(image, r)
		if u.mod != nil {
			u.useAll(kernels)
		}
		u.check("closing the driver", drv.Close())
	})
}

// images are where the search begins.
func images(f *testing.F) (list [][]byte) {
	for _, name := range []string{"kernels.ptx", "conditional.ptx"} {
		ptx, err := os.ReadFile("../internal/testkernels/" + name)
		if err != nil {
			f.Fatal(err)
		}
		list = append(list, ptx)
	}
	const head = ".version 8.0\n.target sm_90\n.address_size 64\n"
	for _, text := range []string{
		"", head, head + ".entry k(.param .align 8 .b8 a[3], .param .u64 b)", head + ".entry a()\n{ret;}\n.entry b\n{ret;}/* .entry c */",
		".version 10.0\n.target sm_90\n", ".version 8.0\n", head + ".entry k(.param u32 a)",
		head + ".entry k(.param .u8 a, .param .align 9223372036854775807 .b8 b[1])", head + ".entry k(.param .align 3 .b8 a[1])",
		head + ".entry k(.param .u64 a[2305843009213693953])", head + ".entry k(.param .b8 a[9223372036854775807])",
	} {
		list = append(list, []byte(text))
	}
	code := make([]byte, 16)
	whole := cubin(f, section{".text.store", code}, info("store", 12, param{0, 8}, param{8, 4}),
		section{".text.k", code}, info("k", 24, param{0, 1}, param{8, 16}))
	overlap := cubin(f, section{".text.k", code}, info("k", 12, param{8, 4}, param{0, 12}))
	return append(list, whole, whole[:100], overlap, append([]byte(elf.ELFMAG), bytes.Repeat([]byte{1}, 100)...))
}

// imageUse is an image in use.
type imageUse struct {
	*testing.T
	drv *cuda.Driver
	dev *cuda.Device
	s   *cuda.Stream
	mod *cuda.Module
}

func (u *imageUse) check(what string, err error) {
	u.Helper()
	if err != nil {
		u.Errorf("%s: %v", what, err)
	}
}

// load loads an image, of which the parser says r. A refusal has a code that is documented, and a reason.
func (u *imageUse) load(image []byte, r driver.Result) {
	var err, last error
	u.dev, err = u.drv.Device(0)
	u.s, last = u.dev.NewStream()
	u.check("opening", errors.Join(err, last))
	before := u.drv.Stats()
	if u.mod, err = u.dev.LoadModule(image); err == nil {
		if r != driver.Success || len(image) == 0 {
			u.Errorf("the image is taken; the parser says %s", r.Name())
		}
		return
	}
	codes := []cuda.Code{cuda.ErrInvalidImage, cuda.ErrInvalidPTX, cuda.ErrUnsupportedPTXVersion}
	if len(image) == 0 {
		codes = []cuda.Code{cuda.ErrInvalidValue}
	}
	var e *cuda.Error
	switch {
	case !errors.As(err, &e) || e.Op != "LoadModule" || !slices.Contains(codes, e.Code):
		u.Errorf("refused with %v, want one of %v", err, codes)
	case e.Reason == "" || strings.Contains(e.Reason, "the driver cannot use"):
		u.Errorf("refused without a reason: %v", err)
	}
	if now := u.drv.Stats(); now != before {
		u.Errorf("what was refused has left %+v, before: %+v", now, before)
	}
}

// useAll uses some of the kernels, and unloads the module.
func (u *imageUse) useAll(kernels map[string]entry) {
	const most = 20
	for i, name := range slices.Sorted(maps.Keys(kernels)) {
		if i == most {
			break
		}
		u.use(name, kernels[name])
	}
	for _, name := range []string{"", "no\x00such", "no such kernel"} {
		if _, err := u.mod.Kernel(name); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			u.Errorf("kernel %q: %v", name, err)
		}
	}
	u.check("Sync", u.s.Sync())
	u.check("closing the module", u.mod.Close())
	if st := u.drv.Stats(); st.Modules != 0 {
		u.Errorf("%d modules are left", st.Modules)
	}
}

// use launches a kernel rightly, and with an argument too many.
func (u *imageUse) use(name string, e entry) {
	k, err := u.mod.Kernel(name)
	if name == "" || strings.Contains(name, "\x00") {
		return // useAll sees to those
	}
	if err != nil {
		u.Errorf("kernel %q: %v", name, err)
		return
	}
	var args []any
	empty := false
	for i, p := range e.params {
		args = append(args, pattern(i, p.size))
		empty = empty || p.size == 0
	}
	err = u.s.Launch(k, cuda.Grid1D(1, 1), args...)
	if wrong := err != nil; wrong != (e.known && empty) { // there is no value without a size
		u.Errorf("kernel %q with %v: %v", name, e.params, err)
	}
	if !e.known {
		return
	}
	err = u.s.Launch(k, cuda.Grid1D(1, 1), append(args, int32(1))...)
	if !errors.Is(err, cuda.ErrInvalidValue) || !strings.Contains(err.Error(), "kernel "+name) {
		u.Errorf("kernel %q with an argument too many: %v", name, err)
	}
}

// pattern is an argument of n bytes, each of them one more than its place among the arguments.
func pattern(place int, n uintptr) any {
	v := reflect.New(reflect.ArrayOf(int(n), reflect.TypeFor[byte]())).Elem()
	for i := range v.Len() {
		v.Index(i).SetUint(uint64(byte(place + 1)))
	}
	return v.Interface()
}

// checkArguments is a kernel that wants its arguments to be patterns, each at its place.
func checkArguments(t *testing.T, params []param) Kernel {
	return func(l *Launch) {
		if len(l.offsets) != len(params) {
			t.Errorf("%d arguments arrive, want %d", len(l.offsets), len(params))
			return
		}
		for i, p := range params {
			for at := p.offset; at < p.offset+p.size; at++ {
				if got := l.params[at]; got != byte(i+1) {
					t.Errorf("byte %d of argument %d of kernel %q is %d", at-p.offset, i, l.Kernel, got)
					return
				}
			}
			if p.size == 1 {
				if got := Arg[byte](l, i); got != byte(i+1) {
					t.Errorf("argument %d of kernel %q is %d", i, l.Kernel, got)
				}
			}
		}
	}
}
