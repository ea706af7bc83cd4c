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
//
// Variables are read through their address, because a direct load would use
// R27, which C expects to be left alone.

// void hostEntry(void *data)
TEXT hostEntry<>(SB), NOSPLIT|NOFRAME, $0-0
	SUB  $32, RSP
	STP  (R29, R30), 16(RSP)
	ADD  $16, RSP, R29
	MOVD R0, entryFrame_data(RSP)
	MOVD $·goHostEntry(SB), R0
	MOVD (R0), R0
	MOVD (R0), R0
	MOVD RSP, R1
	MOVD ZR, R2
	MOVD ZR, R3
	BL   crosscall2(SB)
	LDP  16(RSP), (R29, R30)
	ADD  $32, RSP
	RET

// void statusEntry(void *stream, int status, void *data)
TEXT statusEntry<>(SB), NOSPLIT|NOFRAME, $0-0
	SUB  $32, RSP
	STP  (R29, R30), 16(RSP)
	ADD  $16, RSP, R29
	MOVD R2, entryFrame_data(RSP)
	MOVW R1, entryFrame_status(RSP)
	MOVD $·goStatusEntry(SB), R0
	MOVD (R0), R0
	MOVD (R0), R0
	MOVD RSP, R1
	MOVD ZR, R2
	MOVD ZR, R3
	BL   crosscall2(SB)
	LDP  16(RSP), (R29, R30)
	ADD  $32, RSP
	RET
