//go:build linux && (!cgo || hostlaunch_purego)

#include "go_asm.h"
#include "textflag.h"

DATA ·hostEntryPC(SB)/8, $hostEntry<>(SB)
GLOBL ·hostEntryPC(SB), NOPTR|RODATA, $8

DATA ·statusEntryPC(SB)/8, $statusEntry<>(SB)
GLOBL ·statusEntryPC(SB), NOPTR|RODATA, $8

// The entries are C functions that end in
//
//	crosscall2(fn, frame, 0, 0)
//
// the C runtime's way into Go. It saves the callee-saved registers, attaches
// the thread to the Go runtime if need be, and calls fn(frame) on a goroutine.

// void hostEntry(void *data)
TEXT hostEntry<>(SB), NOSPLIT, $16-0
	MOVQ DI, entryFrame_data(SP)
	MOVQ ·goHostEntry(SB), DI
	MOVQ (DI), DI
	MOVQ SP, SI
	XORL DX, DX
	XORL CX, CX
	CALL crosscall2(SB)
	RET

// void statusEntry(void *stream, int status, void *data)
TEXT statusEntry<>(SB), NOSPLIT, $16-0
	MOVQ DX, entryFrame_data(SP)
	MOVL SI, entryFrame_status(SP)
	MOVQ ·goStatusEntry(SB), DI
	MOVQ (DI), DI
	MOVQ SP, SI
	XORL DX, DX
	XORL CX, CX
	CALL crosscall2(SB)
	RET
