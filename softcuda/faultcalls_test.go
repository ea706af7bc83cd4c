package softcuda

import (
	"reflect"
	"testing"

	"github.com/hostlaunch/cuda"
	"github.com/hostlaunch/cuda/internal/driver"
)

// TestEveryCallIsInjectable strikes at each call of the seam that answers with a result, and at no other: the call answers with
// the fault's, and with nothing else. The next call reaches the device, which refuses nonsense without falling over it.
func TestEveryCallIsInjectable(t *testing.T) {
	result := reflect.TypeFor[driver.Result]()
	seam := reflect.TypeFor[driver.Driver]()
	asked := map[string]bool{"DeviceGetCount": true, "DriverGetVersion": true} // by New, which cannot fail
	kinds := 0
	for i := range seam.NumMethod() {
		name, typ := seam.Method(i).Name, seam.Method(i).Type
		if typ.NumOut() == 0 || typ.Out(typ.NumOut()-1) != result {
			if injectable[name] {
				t.Errorf("%s has no result, and counts as injectable", name)
			}
			continue
		}
		if asked[name] && !injectable[name] {
			continue
		}
		kinds++
		t.Run(name, func(t *testing.T) { strikeAt(t, name) })
	}
	if kinds != len(injectable) {
		t.Errorf("the seam has %d calls with a result; %d are injectable", kinds, len(injectable))
	}
}

func strikeAt(t *testing.T, name string) {
	f := new(Faults)
	d := newDriver(Options{Faults: f})
	d.Attach(driver.Upcalls{
		HostFunc: func(uint64) {}, Callback: func(uint64, driver.Result) {}, Lost: func(driver.Context, driver.Result) {}, Log: func(string, ...any) {},
	})
	defer d.Shut()
	if err := f.Add(Fault{Call: name, Result: cuda.ErrOperatingSystem}); err != nil {
		t.Fatal(err)
	}
	call := reflect.ValueOf(d).MethodByName(name)
	out := call.Call(zeros(call.Type()))
	for i, v := range out {
		if last := i == len(out)-1; last && v.Interface() != driver.ErrorOperatingSystem || !last && !v.IsZero() {
			t.Errorf("answer %d is %v", i, v)
		}
	}
	if f.Struck() != 1 || f.Calls("cu"+name) != 1 {
		t.Errorf("struck %d times; %d calls", f.Struck(), f.Calls(name))
	}
	call.Call(zeros(call.Type()))
	if f.Struck() != 1 || f.Calls(name) != 2 {
		t.Errorf("later: struck %d times; %d calls", f.Struck(), f.Calls(name))
	}
}

// zeros are arguments of a call, all zero. What a pointer points to is there, as it always is.
func zeros(f reflect.Type) (args []reflect.Value) {
	for i := range f.NumIn() {
		arg := reflect.Zero(f.In(i))
		if f.In(i).Kind() == reflect.Pointer {
			arg = reflect.New(f.In(i).Elem())
		}
		args = append(args, arg)
	}
	return args
}
