#include "go_asm.h"
#include "textflag.h"

DATA ·cellEntryPC(SB)/8, $cellEntry<>(SB)
GLOBL ·cellEntryPC(SB), NOPTR|RODATA, $8

DATA ·copyFuncPC(SB)/8, $copyFunc<>(SB)
GLOBL ·copyFuncPC(SB), NOPTR|RODATA, $8

// These are C functions: the argument in R0, RSP always a multiple of 16. They keep their own frame records (NOFRAME), because
// the assembler's would lie below RSP for a moment, where C allows signal handlers to write. No callee-saved register is used,
// which includes R27, the assembler's scratch register: so variables are reached through their address.

// void copyFunc(CopyArgs *)
TEXT copyFunc<>(SB), NOSPLIT|NOFRAME, $0-0
	STP.W (R29, R30), -16(RSP)
	MOVD  RSP, R29
	MOVD  CopyArgs_N(R0), R2
	MOVD  CopyArgs_Src(R0), R1
	MOVD  CopyArgs_StreamFrom(R0), R3
	MOVD  CopyArgs_Dst(R0), R0
	CBNZ  R3, told
	MOVD  $const_streamFrom, R3

told:
	BL    ·moveC(SB)
	LDP.P 16(RSP), (R29, R30)
	RET

// Locals of cellEntry.
#define CELL 0(RSP)
#define SLOT 8(RSP)

// void cellEntry(Cell *). See Cell; run is the same in Go.
TEXT cellEntry<>(SB), NOSPLIT|NOFRAME, $0-0
	SUB  $32, RSP
	STP  (R29, R30), 16(RSP)
	ADD  $16, RSP, R29
	MOVD R0, CELL

	// Take a run that is due.
	ADD  $Cell_state, R0, R1
	MOVD $(const_oneBegun-const_oneDue), R4

take:
	LDAXR (R1), R2
	CBZW  R2, nothing
	ADD   R4, R2, R3
	STLXR R3, (R1), R5
	CBNZW R5, take

	// Have the thread known.
	MRS  TPIDR_EL0, R6
	MOVD $·known+threadTable_threads(SB), R1
	MOVD $const_MarkSlots, R7

know:
	LDAXR (R1), R2
	CMP   R2, R6
	BEQ   isKnown
	CBNZ  R2, knowNext
	STLXR R6, (R1), R5
	CBNZW R5, know
	B     isKnown

knowNext:
	ADD  $8, R1
	SUB  $1, R7
	CBNZ R7, know
	MOVD $·known+threadTable_more(SB), R1
	MOVW $1, R2
	STLRW R2, (R1)

isKnown:
	CLREX

	// Mark it. The slot is kept as its address; 0: there was none.
	MOVD $·marks+threadTable_threads(SB), R1
	MOVD $const_MarkSlots, R7

mark:
	LDAXR (R1), R2
	CBNZ  R2, markNext
	STLXR R6, (R1), R5
	CBNZW R5, mark
	B     marked

markNext:
	ADD  $8, R1
	SUB  $1, R7
	CBNZ R7, mark
	MOVD ZR, R1

marked:
	CLREX
	MOVD R1, SLOT

	MOVD CELL, R0
	MOVD Cell_fn(R0), R9
	MOVD Cell_data(R0), R0
	BL   (R9)

	// Unmark it.
	MOVD SLOT, R1
	CBZ  R1, unmarked
	STLR ZR, (R1)

unmarked:
	// Count the end. The first that nobody has collected puts the cell on the list.
	MOVD CELL, R0
	ADD  $Cell_ended, R0, R1

count:
	LDAXR (R1), R2
	ADD   $1, R2, R3
	STLXR R3, (R1), R5
	CBNZW R5, count
	CBNZ  R2, return
	MOVD  Cell_list(R0), R1
	MOVD  Cell_index(R0), R3

push:
	MOVD (R1), R2
	MOVD R2, Cell_next(R0) // not within the exclusive access, which a store may end

pushed:
	LDAXR (R1), R4
	CMP   R2, R4
	BNE   push
	STLXR R3, (R1), R5
	CBNZW R5, pushed
	B     return

nothing:
	CLREX

return:
	LDP 16(RSP), (R29, R30)
	ADD $32, RSP
	RET
