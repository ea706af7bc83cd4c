//go:build linux && (amd64 || arm64) && (!cgo || hostlaunch_purego)

package nativetest

var addPC, appendPC, notePC, holdPC, sumPC uintptr

func address(which int) uintptr {
	return [functions]uintptr{addPC, appendPC, notePC, holdPC, sumPC}[which]
}
