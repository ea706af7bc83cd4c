//go:build linux && (!cgo || hostlaunch_purego)

#include "go_asm.h"
#include "textflag.h"

// These are C functions: arguments in R0 to R7 and then on the stack, the
// result in R0, RSP always a multiple of 16. They keep their own frame records
// (NOFRAME), because the assembler's would lie below RSP for a moment, where C
// allows signal handlers to write. No callee-saved register is used, which
// includes R27, the assembler's scratch register.

DATA ·crossPC(SB)/8, $cross<>(SB)
GLOBL ·crossPC(SB), NOPTR|RODATA, $8

// int invoke(Call *c): call c->fn with c->args.
TEXT invoke<>(SB), NOSPLIT|NOFRAME, $0-0
	SUB  $48, RSP
	STP  (R29, R30), 32(RSP)
	ADD  $32, RSP, R29
	MOVD R0, R9

	LDP (Call_Args+8*8)(R9), (R10, R11)
	LDP (Call_Args+10*8)(R9), (R12, R13)
	STP (R10, R11), 0(RSP)
	STP (R12, R13), 16(RSP)

	LDP  (Call_Args+0*8)(R9), (R0, R1)
	LDP  (Call_Args+2*8)(R9), (R2, R3)
	LDP  (Call_Args+4*8)(R9), (R4, R5)
	LDP  (Call_Args+6*8)(R9), (R6, R7)
	MOVD Call_fn(R9), R9
	BL   (R9)

	LDP 32(RSP), (R29, R30)
	ADD $48, RSP
	RET

// Locals of cross.
#define CALL_ 0(RSP)
#define FORMER 8(RSP)
#define RESULT 16(RSP)

// int cross(Call *c): invoke c with c->ctx current. See Call.Do.
TEXT cross<>(SB), NOSPLIT|NOFRAME, $0-0
	SUB  $48, RSP
	STP  (R29, R30), 32(RSP)
	ADD  $32, RSP, R29
	MOVD R0, CALL_
	MOVD Call_ctx(R0), R1
	CBZ  R1, bound

	// get(&former)
	MOVD ZR, FORMER
	MOVD Call_get(R0), R9
	ADD  $8, RSP, R0
	BL   (R9)
	CBNZW R0, return
	MOVD CALL_, R9
	MOVD Call_ctx(R9), R0
	MOVD FORMER, R1
	CMP  R0, R1
	BEQ  bound
	MOVD Call_also(R9), R2
	CMP  R2, R1
	BEQ  bound

	// set(ctx)
	MOVD  Call_set(R9), R9
	BL    (R9)
	CBNZW R0, return

	MOVD CALL_, R0
	BL   invoke<>(SB)
	MOVW R0, RESULT

	// set(former)
	MOVD CALL_, R9
	MOVD FORMER, R0
	MOVD Call_set(R9), R9
	BL   (R9)
	MOVW RESULT, R0
	B    return

bound:
	MOVD CALL_, R0
	BL   invoke<>(SB)

return:
	LDP 32(RSP), (R29, R30)
	ADD $48, RSP
	RET
