package cuda

import (
	"encoding/binary"
	"math"
	"reflect"
	"unsafe"
)

// arguments packs args as kernel k's parameters.
func (p *packer) arguments(op string, c *Context, k *Kernel, args []any) error {
	if k.known && len(args) != len(k.params) {
		return failf(op, ErrInvalidValue, "kernel %s has %d parameters; %d arguments were given", k.name, len(k.params), len(args))
	}
	for i, arg := range args {
		if err := p.argument(op, c, k, i, arg); err != nil {
			return err
		}
	}
	return nil
}

// argument packs one argument at its parameter's offset.
func (p *packer) argument(op string, c *Context, k *Kernel, i int, arg any) error {
	size, align, reason := measure(arg)
	if reason != "" {
		return failf(op, ErrInvalidValue, "argument %d of kernel %s: %s", i, k.name, reason)
	}
	offset := (uintptr(len(p.launch.Params)) + align - 1) &^ (align - 1)
	if k.known {
		want := k.params[i]
		if size != want.size {
			return failf(op, ErrInvalidValue, "argument %d of kernel %s is a %T of %d bytes; the parameter has %d", i, k.name, arg, size, want.size)
		}
		offset = want.offset
	}
	block := p.launch.Params
	for uintptr(len(block)) < offset+size {
		block = append(block, 0)
	}
	p.launch.Params = block
	p.launch.Offsets = append(p.launch.Offsets, uint32(offset))
	return p.write(op, c, k, i, block[offset:offset+size], arg)
}

// measure gives an argument's size and alignment, or why it cannot be one.
func measure(arg any) (size, align uintptr, reason string) {
	switch arg.(type) {
	case *Buffer, *PinnedBuffer, *ManagedBuffer, Condition:
		return 8, 8, ""
	case nil:
		return 0, 0, "nil has no type; for a null pointer say cuda.DevicePtr(0)"
	}
	t := reflect.TypeOf(arg)
	switch t.Kind() {
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		return 0, 0, t.String() + " has another size than C's int; say int32 or int64, or cuda.DevicePtr for an address"
	case reflect.Slice:
		return 0, 0, t.String() + " is Go memory, which a kernel cannot reach; copy it to a Buffer and pass that"
	}
	if where := pointerIn(t); where != "" {
		return 0, 0, "a " + t.String() + " contains Go pointers (" + where + "), which mean nothing to a device"
	}
	if where := unsizedIn(t); where != "" {
		return 0, 0, "a " + t.String() + " contains " + where + ", which has another size than C's int; use int32 or int64"
	}
	if t.Size() == 0 {
		return 0, 0, "a " + t.String() + " has no size"
	}
	return t.Size(), uintptr(t.Align()), ""
}

// unsizedIn finds an int, uint or uintptr inside a struct or array and names it, or returns "".
func unsizedIn(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Array:
		return unsizedIn(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if where := unsizedIn(t.Field(i).Type); where != "" {
				return t.Field(i).Name + " " + where
			}
		}
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		return t.String()
	}
	return ""
}

// write puts the argument's bytes at dst.
func (p *packer) write(op string, c *Context, k *Kernel, i int, dst []byte, arg any) error {
	switch v := arg.(type) {
	case *Buffer:
		if v == nil {
			return failf(op, ErrInvalidValue, "argument %d of kernel %s is a nil *Buffer; for a null pointer say cuda.DevicePtr(0)", i, k.name)
		}
		return p.pointer(op, c, k, i, dst, uint64(v.ptr), v.ctx, v.res)
	case *PinnedBuffer:
		if v == nil {
			return failf(op, ErrInvalidValue, "argument %d of kernel %s is a nil *PinnedBuffer; for a null pointer say cuda.DevicePtr(0)", i, k.name)
		}
		return p.pointer(op, c, k, i, dst, uint64(uintptr(unsafe.Pointer(unsafe.SliceData(v.data)))), v.ctx, v.res)
	case *ManagedBuffer:
		if v == nil {
			return failf(op, ErrInvalidValue, "argument %d of kernel %s is a nil *ManagedBuffer; for a null pointer say cuda.DevicePtr(0)", i, k.name)
		}
		return p.pointer(op, c, k, i, dst, uint64(v.whole.ptr), v.whole.ctx, v.whole.res)
	case Condition:
		if v.of == nil {
			return failf(op, ErrInvalidValue, "argument %d of kernel %s is the zero Condition; make one with Graph.NewCondition", i, k.name)
		}
		binary.NativeEndian.PutUint64(dst, uint64(v.handle))
	case int32:
		binary.NativeEndian.PutUint32(dst, uint32(v))
	case uint32:
		binary.NativeEndian.PutUint32(dst, v)
	case int64:
		binary.NativeEndian.PutUint64(dst, uint64(v))
	case uint64:
		binary.NativeEndian.PutUint64(dst, v)
	case DevicePtr:
		binary.NativeEndian.PutUint64(dst, uint64(v))
	case float32:
		binary.NativeEndian.PutUint32(dst, math.Float32bits(v))
	case float64:
		binary.NativeEndian.PutUint64(dst, math.Float64bits(v))
	default:
		boxed := reflect.New(reflect.TypeOf(arg))
		boxed.Elem().Set(reflect.ValueOf(arg))
		copy(dst, unsafe.Slice((*byte)(boxed.UnsafePointer()), len(dst)))
	}
	return nil
}

// pointer writes the address of a buffer, and holds the buffer open for the launch.
func (p *packer) pointer(op string, c *Context, k *Kernel, i int, dst []byte, addr uint64, of *Context, res *resource) error {
	if of.drv != c.drv {
		return failf(op, ErrInvalidValue, "argument %d of kernel %s belongs to %s and the stream to %s; use one Driver for both", i, k.name, of.describe(), c.describeBeside(of))
	}
	if !res.acquire() {
		return failf(op, ErrClosed, "argument %d of kernel %s is closed", i, k.name)
	}
	p.held = append(p.held, res)
	binary.NativeEndian.PutUint64(dst, addr)
	return nil
}
