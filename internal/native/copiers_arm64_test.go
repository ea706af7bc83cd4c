package native

import "unsafe"

// copiers are the ways to copy: past the caches, and not.
func copiers() []copier {
	return []copier{
		{"streaming", func(dst, src unsafe.Pointer, n uintptr) { move(dst, src, n, 0) }},
		{"through the caches", func(dst, src unsafe.Pointer, n uintptr) { move(dst, src, n, 1<<40) }},
		{"Copy", Copy},
	}
}
