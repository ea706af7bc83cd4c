//go:build cgo

package main

/*
#include <stdint.h>
#include <time.h>

static void stamp(void *data) { *(int64_t *)data = time(0); }

static uintptr_t stamp_address(void) { return (uintptr_t)stamp; }
*/
import "C"

import "github.com/hostlaunch/cuda"

func stampFunction() (cuda.NativeFunc, error) { return cuda.NativeFunc(C.stamp_address()), nil }
