// Package native holds the few assembly routines that the rest of the module
// needs: who called, on which thread.
//
// It uses no cgo and imports nothing but the standard library, so every build
// may import it. Where a routine has no assembly for an architecture, portable
// Go with the same result stands in.
package native
