package softcuda

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hostlaunch/cuda/internal/driver"
)

func TestParsePTX(t *testing.T) {
	const head = ".version 8.0\n.target sm_90\n.address_size 64\n"
	for _, c := range []struct {
		name, text string
		want       map[string][]param
		r          driver.Result
	}{
		{name: "no kernels", text: head},
		{name: "no parameters", text: head + ".visible .entry a()\n{\nret;\n}\n.entry b\n{ret;}", want: map[string][]param{"a": nil, "b": nil}},
		{name: "sizes", text: head + ".entry k(.param .u8 a, .param .s16 b, .param .b32 c, .param .f64 d)",
			want: map[string][]param{"k": {{0, 1}, {2, 2}, {4, 4}, {8, 8}}}},
		{name: "over lines", text: head + ".visible .entry k(\n\t.param .u64 k_param_0,\n\t.param .u32 k_param_1\n)\n{ }",
			want: map[string][]param{"k": {{0, 8}, {8, 4}}}},
		{name: "structs", text: head + ".entry k(.param .u8 a, .param .align 8 .b8 b[24], .param .align 4 .b8 c[5], .param .u8 d)",
			want: map[string][]param{"k": {{0, 1}, {8, 24}, {32, 5}, {37, 1}}}},
		{name: "pointers", text: head + ".entry k(.param .u64 .ptr .global .align 16 a, .param .u32 b)",
			want: map[string][]param{"k": {{0, 8}, {8, 4}}}},
		{name: "mangled", text: head + ".entry _Z1kPf$x(.param .u64 _Z1kPf_param_0)", want: map[string][]param{"_Z1kPf$x": {{0, 8}}}},
		{name: "comments", text: "/* .version 1.0 */ " + head + "// .entry no()\n/* .entry\nno() */ .entry k(.param .u32 /* , */ a // b\n)",
			want: map[string][]param{"k": {{0, 4}}}},
		{name: "zero at the end", text: head + ".entry a()\x00", want: map[string][]param{"a": nil}},
		{name: "functions are no kernels", text: head + ".func (.param .u32 r) f(.param .u32 a)\n{}\n.entry a()", want: map[string][]param{"a": nil}},
		{name: "the newest", text: ".version 9.3\n.target sm_120a\n.entry a()", want: map[string][]param{"a": nil}},
		{name: "too new", text: ".version 10.0\n.target sm_90\n", r: driver.ErrorUnsupportedPTXVersion},
		{name: "no version", text: ".target sm_90\n", r: driver.ErrorInvalidImage},
		{name: "empty", text: "", r: driver.ErrorInvalidImage},
		{name: "no target", text: ".version 8.0\n", r: driver.ErrorInvalidPTX},
		{name: "nonsense parameters", text: head + ".entry k(.param u32 a)", r: driver.ErrorInvalidPTX},
		{name: "as many bytes as there can be", text: head + ".entry k(.param .b8 a[32764])", want: map[string][]param{"k": {{0, 32764}}}},
		{name: "too many bytes", text: head + ".entry k(.param .b8 a[32764], .param .u8 b)", r: driver.ErrorInvalidPTX},
		{name: "an array too long", text: head + ".entry k(.param .u64 a[2305843009213693953])", r: driver.ErrorInvalidPTX},
		{name: "no power of two", text: head + ".entry k(.param .align 3 .b8 a[3])", r: driver.ErrorInvalidPTX},
		{name: "no alignment", text: head + ".entry k(.param .align 0 .b8 a[3])", r: driver.ErrorInvalidPTX},
		{name: "too far apart", text: head + ".entry k(.param .u8 a, .param .align 9223372036854775807 .b8 b[1])", r: driver.ErrorInvalidPTX},
		{name: "a comma too many", text: head + ".entry k(.param .u32 a,)", r: driver.ErrorInvalidPTX},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, log, r := parseImage([]byte(c.text))
			if r != c.r || (log == "") != (r == driver.Success) {
				t.Fatalf("%s, %q; want %s and a reason", r.Name(), log, c.r.Name())
			}
			wantKernels(t, got, c.want)
		})
	}
}

// TestNotAnImage: the refusal of what is no image has a text that is one.
func TestNotAnImage(t *testing.T) {
	_, log, r := parseImage([]byte("hello"))
	if r != driver.ErrorInvalidImage || !strings.Contains(log, "nvcc -ptx") {
		t.Errorf("%s, %q", r.Name(), log)
	}
	_, quoted, _ := strings.Cut(log, "each kernel: ")
	text, err := strconv.Unquote(quoted)
	if err != nil {
		t.Fatalf("%v: %q", err, log)
	}
	got, log, r := parseImage([]byte(text))
	if r != driver.Success {
		t.Fatalf("%s, %q", r.Name(), log)
	}
	wantKernels(t, got, map[string][]param{"add": {{0, 8}, {8, 4}}})
}

func wantKernels(t *testing.T, got map[string]entry, want map[string][]param) {
	t.Helper()
	if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(g, w) {
		t.Fatalf("kernels %q, want %q", g, w)
	}
	for name, params := range want {
		if !got[name].known || !slices.Equal(got[name].params, params) {
			t.Errorf("parameters of %s: %v, known: %v; want %v", name, got[name].params, got[name].known, params)
		}
	}
}

// section is a section of a made-up cubin.
type section struct {
	name string
	data []byte
}

// cubin makes an ELF file with the sections.
func cubin(t testing.TB, sections ...section) []byte {
	t.Helper()
	const headSize, entrySize = 64, 64
	names := []byte("\x00")
	var body bytes.Buffer
	entries := make([]elf.Section64, 1)
	add := func(s section, kind elf.SectionType) {
		entries = append(entries, elf.Section64{
			Name: uint32(len(names)), Type: uint32(kind), Off: uint64(headSize + body.Len()), Size: uint64(len(s.data)), Addralign: 1,
		})
		names = append(append(names, s.name...), 0)
		body.Write(s.data)
	}
	for _, s := range sections {
		add(s, elf.SHT_PROGBITS)
	}
	last := section{".shstrtab", append(append(bytes.Clone(names), ".shstrtab"...), 0)}
	add(last, elf.SHT_STRTAB)
	head := elf.Header64{
		Ident:   [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:    uint16(elf.ET_EXEC),
		Machine: uint16(elf.EM_CUDA), Version: uint32(elf.EV_CURRENT),
		Shoff: uint64(headSize + body.Len()), Ehsize: headSize,
		Shentsize: entrySize, Shnum: uint16(len(entries)), Shstrndx: uint16(len(entries) - 1),
	}
	var file bytes.Buffer
	for _, v := range []any{head, body.Bytes(), entries} {
		if err := binary.Write(&file, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	return file.Bytes()
}

// info makes a .nv.info section: the parameters, last one first as compilers write them, and the size of all.
func info(name string, total uint16, params ...param) section {
	le := binary.LittleEndian
	data := le.AppendUint16([]byte{3, 0x19}, total)
	for i := range params {
		n := len(params) - 1 - i
		data = le.AppendUint16(append(data, 4, 0x17), 12)
		data = le.AppendUint32(data, 0)
		data = le.AppendUint16(le.AppendUint16(data, uint16(n)), uint16(params[n].offset))
		data = le.AppendUint32(data, uint32(params[n].size)<<18|0x1f000)
	}
	data = append(data, 4, 0x1c, 4, 0, 9, 9, 9, 9, 1, 0x4c, 0, 0) // of other kinds
	return section{".nv.info." + name, data}
}

func TestParseCubin(t *testing.T) {
	code := make([]byte, 16)
	t.Run("kernels", func(t *testing.T) {
		got, log, r := parseImage(cubin(t, section{".nv.info", code}, info("store", 12, param{0, 8}, param{8, 4}), info("nothing", 0),
			section{".text.store", code}, section{".text.nothing", code}, section{".text._Z1k", code}, info("_Z1k", 24, param{0, 1}, param{8, 16}),
			section{".nv.constant0.store", code}))
		if r != driver.Success {
			t.Fatalf("%s, %s", r.Name(), log)
		}
		wantKernels(t, got, map[string][]param{"store": {{0, 8}, {8, 4}}, "nothing": nil, "_Z1k": {{0, 1}, {8, 16}}})
	})
	for name, s := range map[string][]section{
		"without info":            {{".text.k", code}},
		"parameters left out":     {{".text.k", code}, info("k", 16, param{0, 8})},
		"overlapping":             {{".text.k", code}, info("k", 12, param{8, 4}, param{0, 12})},
		"cut off":                 {{".text.k", code}, {".nv.info.k", []byte{4, 0x17, 200, 0, 1, 2}}},
		"numbers that have holes": {{".text.k", code}, {".nv.info.k", []byte{3, 0x19, 8, 0, 4, 0x17, 12, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0x20, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, r := parseImage(cubin(t, s...))
			if e, ok := got["k"]; r != driver.Success || !ok || e.known {
				t.Errorf("%s, kernels %v; want one with unknown parameters", r.Name(), got)
			}
		})
	}
	for name, image := range map[string][]byte{
		"no kernels": cubin(t, section{".nv.info", code}),
		"no more":    []byte(elf.ELFMAG),
		"half":       cubin(t, section{".text.k", code})[:100],
		"noise":      append([]byte(elf.ELFMAG), bytes.Repeat([]byte{0xff}, 200)...),
	} {
		t.Run(name, func(t *testing.T) {
			if got, log, r := parseImage(image); r != driver.ErrorInvalidImage || log == "" || got != nil {
				t.Errorf("%s, %q, %v; want an invalid image", r.Name(), log, got)
			}
		})
	}
}
