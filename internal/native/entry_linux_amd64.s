#include "go_asm.h"
#include "textflag.h"

DATA ·cellEntryPC(SB)/8, $cellEntry<>(SB)
GLOBL ·cellEntryPC(SB), NOPTR|RODATA, $8

DATA ·copyFuncPC(SB)/8, $copyFunc<>(SB)
GLOBL ·copyFuncPC(SB), NOPTR|RODATA, $8

// These are C functions: the argument in DI, SP a multiple of 16 at every call. A frame that is a multiple of 16 gives that,
// together with the return address and the BP that the assembler saves. No other callee-saved register is used.

// void copyFunc(CopyArgs *)
TEXT copyFunc<>(SB), NOSPLIT, $0-0
	MOVQ    CopyArgs_N(DI), DX
	MOVQ    CopyArgs_Src(DI), SI
	MOVQ    CopyArgs_StreamFrom(DI), R8
	MOVQ    CopyArgs_Dst(DI), DI
	MOVL    $const_streamFrom, AX
	TESTQ   R8, R8
	CMOVQEQ AX, R8
	CALL    ·moveC(SB)
	RET

// Locals of cellEntry.
#define CELL 0(SP)
#define SLOT 8(SP)

// void cellEntry(Cell *). See Cell; run is the same in Go.
TEXT cellEntry<>(SB), NOSPLIT, $16-0
	// Take a run that is due.
	MOVQ Cell_state(DI), AX

take:
	TESTL AX, AX
	JZ    return
	MOVQ  $(const_oneBegun-const_oneDue), CX
	ADDQ  AX, CX
	LOCK
	CMPXCHGQ CX, Cell_state(DI)
	JNE   take
	MOVQ  DI, CELL

	// Have the thread known.
	BYTE $0x64; BYTE $0x4c; BYTE $0x8b; BYTE $0x04; BYTE $0x25 // MOVQ FS:0, R8; see ThreadPointer
	BYTE $0x00; BYTE $0x00; BYTE $0x00; BYTE $0x00
	LEAQ ·known+threadTable_threads(SB), R9
	XORL CX, CX

know:
	MOVQ  (R9)(CX*8), AX
	CMPQ  AX, R8
	JEQ   isKnown
	TESTQ AX, AX
	JNZ   knowNext
	LOCK
	CMPXCHGQ R8, (R9)(CX*8)
	JEQ   isKnown

knowNext:
	INCL CX
	CMPL CX, $const_MarkSlots
	JLT  know
	MOVL $1, ·known+threadTable_more(SB)

isKnown:
	// Mark it.
	LEAQ ·marks+threadTable_threads(SB), R9
	XORL CX, CX

mark:
	XORL AX, AX
	CMPQ (R9)(CX*8), AX
	JNE  markNext
	LOCK
	CMPXCHGQ R8, (R9)(CX*8)
	JEQ  marked

markNext:
	INCL CX
	CMPL CX, $const_MarkSlots
	JLT  mark

marked:
	MOVQ CX, SLOT

	MOVQ Cell_fn(DI), R11
	MOVQ Cell_data(DI), DI
	CALL R11

	// Unmark it, if there was a slot.
	MOVQ SLOT, CX
	CMPL CX, $const_MarkSlots
	JEQ  unmarked
	LEAQ ·marks+threadTable_threads(SB), R9
	MOVQ $0, (R9)(CX*8)

unmarked:
	// Count the end. The first that nobody has collected puts the cell on the list.
	MOVQ  CELL, DI
	MOVL  $1, AX
	LOCK
	XADDQ AX, Cell_ended(DI)
	TESTQ AX, AX
	JNZ   return
	MOVQ  Cell_list(DI), R9
	MOVQ  Cell_index(DI), CX
	MOVQ  (R9), AX

push:
	MOVQ AX, Cell_next(DI)
	LOCK
	CMPXCHGQ CX, (R9)
	JNE  push

return:
	RET
