// Package cudatest is the conformance suite: the contract, rule by rule, as cases that run through the public API on any driver.
//
// A driver package's test calls Run. The cases come in a fixed order, each named by its rule's id, and print the rule when
// they fail. After each case nothing may be left: no goroutine, no open object, no pinned byte, no waiting function.
package cudatest

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/hostlaunch/cuda"
)

// Config is what a driver package's test hands the suite.
type Config struct {
	// Open opens the driver, with the kernels of internal/testkernels. An error means that there is no GPU here.
	Open func(...cuda.Option) (*cuda.Driver, error)
	// OpenChecked opens the driver with devices that lack concurrent managed access, and that can tell whether the host may
	// touch managed memory. nil: there are none, and cases that want one run on Open's devices.
	OpenChecked func(...cuda.Option) (*cuda.Driver, error)
	// OpenSpin opens the driver so that host functions of mode Spin run on goroutines of the library, as on an NVIDIA driver before
	// CUDA 13.2. nil: Open's does already, or never does.
	OpenSpin func(...cuda.Option) (*cuda.Driver, error)
	// PTX are those kernels.
	PTX []byte
	// Native is a function of internal/nativetest by its name: "add", "append", "note", "hold" or "sum". Noted is nativetest's.
	Native func(name string) cuda.NativeFunc
	Noted  func() (data uintptr, times int)
	// Callback makes a C function `void f(void *)` that calls fn, in a program that can call C. It stays for good.
	Callback func(fn func()) cuda.NativeFunc
	// ConditionalPTX are kernels that set conditions of graphs, which drivers before CUDA 12.3 cannot load.
	ConditionalPTX []byte
	// Test is the name of the test that calls Run, for cases that need a process of their own.
	Test string
}

// Case is a check of one rule.
type Case struct {
	ID      string // the rule
	Name    string // what of it is checked; unique within the rule
	Devices int    // how many devices it needs, if not one
	// Child: the case spoils its process, or watches it end, so it runs in one of its own. It opens its driver itself.
	Child bool
	// Exit is what a Child's process must end with, as in "exit status 2"; "" means well.
	Exit string
	Run  func(*T)
}

// Cases are all cases, in their order.
func Cases() []Case {
	return slices.Concat(hostCases, hostFailureCases, hostManyCases, streamCases, eventCases, kernelCases, copyCases, lifeCases,
		waitCases,
		callbackCases, attributeCases, contextCases, memOpCases,
		managedCases, accessCases, greenCases,
		captureCases, captureEndCases, captureBesideCases, hostNodeCases, graphNodeCases, graphLifeCases, graphChangeCases, graphCondCases,
		graphInnerCases, nativeCases, nativeGraphCases, nativeFailCases, hostCopyCases,
		stagedCases, stagedManyCases, pinnedCases,
		reportCases, borrowCases,
		spinCases, watchdogCases,
		taskCases, taskHoldCases, taskTurnCases, taskThreadCases, taskGraphCases, taskGraphWaitCases,
		traceCases,
	)
}

// requireVariable is the environment variable that says how many GPUs there must be: with it, what would be skipped fails.
const requireVariable = "HOSTLAUNCH_REQUIRE_GPU"

// required is how many GPUs the environment says there are.
func required() int {
	n, err := strconv.Atoi(os.Getenv(requireVariable))
	if err != nil {
		return 0
	}
	return n
}

// Run runs the whole suite.
func Run(t *testing.T, cfg Config) { RunSome(t, cfg, func(Case) bool { return true }) }

// RunSome runs the cases that which picks.
func RunSome(t *testing.T, cfg Config, which func(Case) bool) {
	// Lazily loaded kernels would be loaded at their first launch, which can wait for a host function that runs.
	t.Setenv("CUDA_MODULE_LOADING", "EAGER")
	if runChild(t, cfg) {
		return
	}
	b := newBoard(t, cfg)
	for _, c := range Cases() {
		if !which(c) {
			continue
		}
		t.Run(c.ID+"/"+c.Name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("%s: %s", c.ID, Rules[c.ID])
				}
			})
			if c.Child {
				parent(t, cfg, c)
				return
			}
			runCase(t, cfg, c, b)
		})
	}
}

// open opens the driver or skips the test.
func open(t *testing.T, cfg Config, opts ...cuda.Option) *cuda.Driver {
	t.Helper()
	d, err := cfg.Open(opts...)
	if err != nil && required() == 0 {
		t.Skipf("no GPU: %v", err)
	}
	if err != nil {
		t.Fatalf("%s is set, but there is no GPU: %v", requireVariable, err)
	}
	return d
}

func runCase(t *testing.T, cfg Config, c Case, b *board) {
	d := b.Driver
	if need := max(c.Devices, 1); d.DeviceCount() < need {
		if required() >= need {
			t.Fatalf("needs %d devices, there are %d", need, d.DeviceCount())
		}
		t.Skipf("no GPU: needs %d devices, there are %d", need, d.DeviceCount())
	}
	before := takeCensus(d)
	t.Run("run", func(t *testing.T) { c.Run(&T{T: t, board: b, cfg: cfg}) })
	before.compare(t, d)
}

// Native reports whether c is about native host functions or HostCopy.
func (c Case) Native() bool {
	native := slices.Concat(nativeCases, nativeGraphCases, nativeFailCases, hostCopyCases)
	return slices.ContainsFunc(native, func(other Case) bool { return c.ID == other.ID && c.Name == other.Name })
}
