package softcuda

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/hostlaunch/cuda/internal/driver"
)

// parseImage finds the kernels that an image declares.
func parseImage(image []byte) (map[string]entry, string, driver.Result) {
	if bytes.HasPrefix(image, []byte(elf.ELFMAG)) {
		return parseCubin(image)
	}
	return parsePTX(strings.TrimRight(string(image), "\x00"))
}

var (
	ptxComment = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	ptxVersion = regexp.MustCompile(`(?m)^\s*\.version\s+(\d+)\.(\d+)`)
	ptxTarget  = regexp.MustCompile(`(?m)^\s*\.target\s+\w+`)
	ptxEntry   = regexp.MustCompile(`\.entry\s+([\w$%]+)\s*(?:\(([^)]*)\))?`)
	ptxParam   = regexp.MustCompile(`\.([bsuf])(8|16|32|64)\b[^,]*?([\w$%]+)\s*(?:\[(\d+)\])?\s*$`)
	ptxAlign   = regexp.MustCompile(`^\s*\.param\s+\.align\s+(\d+)`)
)

// leastPTX is all of a kernel that this device reads: what declares it.
const leastPTX = ".version 7.0\n.target sm_52\n.address_size 64\n.entry add(.param .u64 v, .param .u32 n) { ret; }"

// notAnImage says how to come by an image.
var notAnImage = "the image is neither PTX (it has no .version) nor a cubin; make PTX of the kernels with nvcc -ptx kernels.cu and embed that. " +
	"This device runs Go functions in the kernels' place (softcuda.Options.Kernels) and reads only their names and parameters, so for it alone " +
	"a text like this will do, with an .entry for each kernel: " + strconv.Quote(leastPTX)

// newestPTX is the PTX version that this CUDA version reads.
const newestPTX = 9

// parsePTX reads the declarations of PTX text.
func parsePTX(text string) (map[string]entry, string, driver.Result) {
	text = ptxComment.ReplaceAllString(text, " ")
	v := ptxVersion.FindStringSubmatch(text)
	if v == nil {
		return nil, notAnImage, driver.ErrorInvalidImage
	}
	if major, _ := strconv.Atoi(v[1]); major > newestPTX {
		return nil, "PTX version " + v[1] + "." + v[2] + " is newer than this device reads", driver.ErrorUnsupportedPTXVersion
	}
	if !ptxTarget.MatchString(text) {
		return nil, "the PTX has no .target", driver.ErrorInvalidPTX
	}
	kernels := map[string]entry{}
	for _, m := range ptxEntry.FindAllStringSubmatch(text, -1) {
		params, ok := parseParams(m[2])
		if !ok {
			const reason = "the parameters of kernel %s make no sense, or take more than %d bytes: %s"
			return nil, fmt.Sprintf(reason, m[1], mostParams, strings.TrimSpace(m[2])), driver.ErrorInvalidPTX
		}
		kernels[m[1]] = entry{params: params, known: true}
	}
	return kernels, "", driver.Success
}

// mostParams is how many bytes of parameters a kernel can have.
const mostParams = 32764

// parseParams reads a kernel's parameter list.
func parseParams(list string) ([]param, bool) {
	var params []param
	var end uintptr
	if strings.TrimSpace(list) == "" {
		return nil, true
	}
	for decl := range strings.SplitSeq(list, ",") {
		size, align, ok := parseParam(decl)
		if !ok {
			return nil, false
		}
		offset := (end + align - 1) / align * align
		params = append(params, param{offset, size})
		if end = offset + size; end > mostParams {
			return nil, false
		}
	}
	return params, true
}

// parseParam reads one parameter. Neither its size nor its alignment is more than a kernel can have.
func parseParam(decl string) (size, align uintptr, ok bool) {
	m := ptxParam.FindStringSubmatch(decl)
	if m == nil {
		return 0, 0, false
	}
	bits, _ := strconv.Atoi(m[2])
	size = uintptr(bits / 8)
	align = size
	if a := ptxAlign.FindStringSubmatch(decl); a != nil {
		n, err := strconv.ParseUint(a[1], 10, 15)
		if err != nil || n == 0 || n&(n-1) != 0 {
			return 0, 0, false
		}
		align = uintptr(n)
	}
	if m[4] != "" {
		n, err := strconv.ParseUint(m[4], 10, 15)
		if err != nil {
			return 0, 0, false
		}
		size *= uintptr(n)
	}
	return size, align, true
}

// parseCubin reads the kernels of a binary image: each has a section .text.NAME, and .nv.info.NAME tells its parameters.
func parseCubin(image []byte) (map[string]entry, string, driver.Result) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, "the cubin is damaged: " + err.Error(), driver.ErrorInvalidImage
	}
	kernels := map[string]entry{}
	for _, s := range f.Sections {
		name, ok := strings.CutPrefix(s.Name, ".text.")
		if !ok {
			continue
		}
		e := entry{}
		if info := f.Section(".nv.info." + name); info != nil {
			if data, err := info.Data(); err == nil {
				e.params, e.known = cubinParams(data)
			}
		}
		kernels[name] = e
	}
	if len(kernels) == 0 {
		return nil, "the image has no kernels", driver.ErrorInvalidImage
	}
	return kernels, "", driver.Success
}

// cubinParams reads the parameters out of a kernel's .nv.info: attributes of one byte of form, one of kind and two of size or
// value. A parameter is described by 12 bytes: 4 unused here, its number, its offset, and its size in the upper 14 bits.
// Another attribute tells the size of all parameters. ok is false if the two do not agree, or parameters overlap.
func cubinParams(info []byte) (list []param, ok bool) {
	const (
		sized         = 4
		parameterInfo = 0x17
		parameterSize = 0x19
	)
	le := binary.LittleEndian
	params := map[int]param{}
	var total, end uintptr
	for len(info) >= 4 {
		form, kind, n := info[0], info[1], int(le.Uint16(info[2:]))
		info = info[4:]
		if form != sized {
			if kind == parameterSize {
				total = uintptr(n)
			}
			continue
		}
		if n > len(info) {
			return nil, false
		}
		if kind == parameterInfo && n >= 12 {
			params[int(le.Uint16(info[4:]))] = param{uintptr(le.Uint16(info[6:])), uintptr(le.Uint32(info[8:]) >> 18)}
		}
		info = info[n:]
	}
	list = make([]param, len(params))
	for i, p := range params {
		if i >= len(list) {
			return nil, false
		}
		list[i] = p
	}
	for _, p := range list {
		if p.offset < end {
			return nil, false
		}
		end = p.offset + p.size
	}
	return list, end == total
}
