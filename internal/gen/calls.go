package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A call is a row of calls.txt.
type call struct {
	function string
	version  int
	since    int // 0: required
	method   string
	bound    bool // the method takes a context
	unbound  bool // but none need be current
	args     []argument
}

type argument struct {
	name, typ string
	out       bool
}

// What an ffi.Call holds.
const maxArgs, maxOuts, maxKept = 12, 4, 3

// taken are the names that a method uses itself.
var taken = []string{"nv", "c", "r", "ctx"}

// calls writes libcuda's symbol table, and a method for each function that has one.
func calls(rows [][]string) (map[string]string, error) {
	var names, table, methods strings.Builder
	seen := map[string]bool{}
	for _, row := range rows {
		c, err := parseCall(row)
		if err != nil {
			return nil, fmt.Errorf("row %v: %w", row, err)
		}
		if seen[c.function] || seen[c.method] {
			return nil, fmt.Errorf("row %v: named twice", row)
		}
		seen[c.function], seen[c.method] = true, c.method != ""
		fmt.Fprintf(&names, "%s\n", c.constant())
		fmt.Fprintf(&table, "%s: {\"%s\", %d, %d},\n", c.constant(), c.symbol(), c.version, c.since)
		if c.method != "" {
			writeMethod(&methods, c)
		}
	}
	text := "//go:build linux && (amd64 || arm64)\n\npackage libcuda\n\n" +
		"import (\n\"math\"\n\"unsafe\"\n\n\"github.com/hostlaunch/cuda/internal/driver\"\n\"github.com/hostlaunch/cuda/internal/ffi\"\n)\n\n" +
		"// The functions of the driver, as indexes of symbols.\nconst (\n" +
		strings.Replace(names.String(), "\n", " function = iota\n", 1) + "functions\n)\n\n" +
		"// symbols says which version of each function to ask for, and which CUDA brought those that may be missing.\n" +
		"var symbols = [functions]symbol{\n" + table.String() + "}\n" + methods.String()
	return map[string]string{"libcuda/zcalls.go": text}, nil
}

func (c *call) constant() string { return "fn" + strings.TrimPrefix(c.function, "cu") }

// symbol is the name to ask for: function, without what tells it apart in the table.
func (c *call) symbol() string { return variant.ReplaceAllString(c.function, "") }

var variant = regexp.MustCompile(`_v\d+$`)

// parseCall reads FUNCTION VERSION SINCE METHOD ARGUMENTS...
func parseCall(row []string) (c *call, err error) {
	if len(row) < 4 {
		return nil, fmt.Errorf("want FUNCTION VERSION SINCE METHOD and arguments")
	}
	c = &call{function: row[0]}
	if !strings.HasPrefix(c.function, "cu") {
		return nil, fmt.Errorf("%s is no function of the driver", c.function)
	}
	if c.version, err = strconv.Atoi(row[1]); err != nil {
		return nil, err
	}
	if c.since, err = parseSince(row[2]); err != nil {
		return nil, err
	}
	if row[3] != "-" {
		c.method = row[3]
	}
	for i, field := range row[4:] {
		if i == 0 && (field == "ctx" || field == "ctx?") {
			c.bound, c.unbound = true, field == "ctx?"
			continue
		}
		a, err := parseArgument(field)
		if err != nil {
			return nil, err
		}
		c.args = append(c.args, a)
	}
	return c, c.fits()
}

// parseSince turns "12.4" into 12040, and "-" into 0.
func parseSince(s string) (int, error) {
	if s == "-" {
		return 0, nil
	}
	major, minor, _ := strings.Cut(s, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	if errA != nil || errB != nil {
		return 0, fmt.Errorf("since %q: want MAJOR.MINOR or -", s)
	}
	return 1000*a + 10*b, nil
}

func parseArgument(field string) (argument, error) {
	name, typ, ok := strings.Cut(field, ":")
	a := argument{typ: typ}
	a.name, a.out = strings.CutPrefix(name, ">")
	if !ok || a.name == "" {
		return a, fmt.Errorf("argument %q: want name:type", field)
	}
	t, known := types[typ]
	if !known || a.out && t.result == "" || !a.out && t.word == "" && t.kept == "" {
		return a, fmt.Errorf("argument %q: no such type here", field)
	}
	return a, nil
}

func (c *call) fits() error {
	outs, kept := 0, 0
	for _, a := range c.args {
		if a.out {
			outs++
		} else if types[a.typ].kept != "" {
			kept++
		}
		if c.method != "" && slices.Contains(taken, a.name) {
			return fmt.Errorf("argument %s: the name is taken", a.name)
		}
	}
	if c.method != "" && (len(c.args) > maxArgs || outs > maxOuts || kept > maxKept) {
		return fmt.Errorf("more than an ffi.Call holds")
	}
	return nil
}

// A goType says how a type of the table is spelled in Go, becomes an argument word, and is read from an out parameter.
type goType struct {
	name   string // in a signature
	word   string // the argument, as a uintptr
	result string // from the word that the driver wrote; "": never a result
	kept   string // the Go memory that the argument points to
}

// types are the types of the table. An int is a C int as a result and a size_t as an argument.
var types = map[string]goType{
	"int":     {name: "int", word: "uintptr(%s)", result: "int(int32(%s))"},
	"int32":   {name: "int32", word: "uintptr(%s)", result: "int32(%s)"},
	"uint8":   {name: "uint8", word: "uintptr(%s)"},
	"uint16":  {name: "uint16", word: "uintptr(%s)"},
	"uint32":  {name: "uint32", word: "uintptr(%s)", result: "uint32(%s)"},
	"uint64":  {name: "uint64", word: "uintptr(%s)", result: "%s"},
	"uintptr": {name: "uintptr", word: "%s", result: "uintptr(%s)"},
	"float32": {name: "float32", result: "math.Float32frombits(uint32(%s))"},

	"Device":    {name: "driver.Device", word: "uintptr(%s)", result: "driver.Device(%s)"},
	"Context":   {name: "driver.Context", word: "uintptr(%s)", result: "driver.Context(%s)"},
	"Stream":    {name: "driver.Stream", word: "uintptr(%s)", result: "driver.Stream(%s)"},
	"Event":     {name: "driver.Event", word: "uintptr(%s)", result: "driver.Event(%s)"},
	"Module":    {name: "driver.Module", word: "uintptr(%s)", result: "driver.Module(%s)"},
	"Function":  {name: "driver.Function", word: "uintptr(%s)", result: "driver.Function(%s)"},
	"DevicePtr": {name: "driver.DevicePtr", word: "uintptr(%s)", result: "driver.DevicePtr(%s)"},

	"GreenContext":  {name: "driver.GreenContext", word: "uintptr(%s)", result: "driver.GreenContext(%s)"},
	"ResourceDesc":  {name: "driver.ResourceDesc", word: "uintptr(%s)", result: "driver.ResourceDesc(%s)"},
	"Graph":         {name: "driver.Graph", word: "uintptr(%s)", result: "driver.Graph(%s)"},
	"GraphNode":     {name: "driver.GraphNode", word: "uintptr(%s)", result: "driver.GraphNode(%s)"},
	"GraphExec":     {name: "driver.GraphExec", word: "uintptr(%s)", result: "driver.GraphExec(%s)"},
	"UserObject":    {name: "driver.UserObject", word: "uintptr(%s)", result: "driver.UserObject(%s)"},
	"Conditional":   {name: "driver.ConditionalHandle", word: "uintptr(%s)", result: "driver.ConditionalHandle(%s)"},
	"CaptureMode":   {name: "driver.CaptureMode", word: "uintptr(%s)", result: "driver.CaptureMode(%s)"},
	"CaptureStatus": {name: "driver.CaptureStatus", result: "driver.CaptureStatus(%s)"},
	"NodeType":      {name: "driver.NodeType", result: "driver.NodeType(%s)"},

	"pointer": {name: "unsafe.Pointer", word: "uintptr(%s)", result: "*(*unsafe.Pointer)(unsafe.Pointer(&%s))", kept: "%s"},
	"string":  {name: "string", kept: "cstring(%s)"},
}

// writeMethod writes the method that calls c.
func writeMethod(b *strings.Builder, c *call) {
	fmt.Fprintf(b, "\n// %s calls %s.\nfunc (nv *nvidia) %s(%s) %s {\nc := ffi.NewCall()\n",
		c.method, c.function, c.method, c.parameters(), c.results())
	outs, kept := 0, 0
	for i, a := range c.args {
		t := types[a.typ]
		word := fmt.Sprintf(t.word, a.name)
		switch {
		case a.out:
			word = fmt.Sprintf("c.Ref(%d)", outs)
			outs++
		case t.kept != "":
			fmt.Fprintf(b, "c.Keep[%d] = %s\n", kept, fmt.Sprintf(t.kept, a.name))
			word = fmt.Sprintf("uintptr(c.Keep[%d])", kept)
			kept++
		}
		fmt.Fprintf(b, "c.Args[%d] = %s\n", i, word)
	}
	ctx, call := "0", "call"
	if c.bound {
		ctx = "ctx"
	}
	if c.unbound {
		call = "callUnbound"
	}
	fmt.Fprintf(b, "r := nv.%s(c, %s, %s, %d)\n", call, ctx, c.constant(), len(c.args))
	c.writeReturn(b, outs)
}

// writeReturn frees the Call, once its results are read.
func (c *call) writeReturn(b *strings.Builder, outs int) {
	var words, values []string
	for _, a := range c.args {
		if a.out {
			word := fmt.Sprintf("o%d", len(words))
			words = append(words, word)
			values = append(values, fmt.Sprintf(types[a.typ].result, word))
		}
	}
	if outs > 0 {
		fmt.Fprintf(b, "%s := ", strings.Join(words, ", "))
		for i := range words {
			words[i] = fmt.Sprintf("c.Out[%d]", i)
		}
		fmt.Fprintf(b, "%s\n", strings.Join(words, ", "))
	}
	fmt.Fprintf(b, "c.Free()\nreturn %s\n}\n", strings.Join(append(values, "r"), ", "))
}

// parameters are the method's: the context first, then the arguments that go in.
func (c *call) parameters() string {
	var list []string
	if c.bound {
		list = append(list, "ctx driver.Context")
	}
	for _, a := range c.args {
		if !a.out {
			list = append(list, a.name+" "+types[a.typ].name)
		}
	}
	return strings.Join(list, ", ")
}

// results are the method's: what the driver writes, then its result code. They have names where there are several.
func (c *call) results() string {
	var named, bare []string
	for _, a := range c.args {
		if a.out {
			named = append(named, a.name+" "+types[a.typ].name)
			bare = append(bare, types[a.typ].name)
		}
	}
	switch len(named) {
	case 0:
		return "driver.Result"
	case 1:
		return "(" + bare[0] + ", driver.Result)"
	}
	return "(" + strings.Join(named, ", ") + ", _ driver.Result)"
}
