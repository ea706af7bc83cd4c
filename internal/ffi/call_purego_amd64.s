//go:build linux && (!cgo || hostlaunch_purego)

#include "go_asm.h"
#include "textflag.h"

// These are C functions: arguments in DI, SI, DX, CX, R8, R9 and then on the
// stack, the result in AX, SP a multiple of 16 at every call. A frame that is a
// multiple of 16 gives that, together with the return address and the BP that
// the assembler saves. No other callee-saved register is used.

DATA ·crossPC(SB)/8, $cross<>(SB)
GLOBL ·crossPC(SB), NOPTR|RODATA, $8

// int invoke(Call *c): call c->fn with c->args.
TEXT invoke<>(SB), NOSPLIT, $48-0
	MOVQ DI, R11
	CMPQ Call_n(R11), $6
	JLS  registers

	MOVOU (Call_Args+6*8)(R11), X0
	MOVOU (Call_Args+8*8)(R11), X1
	MOVOU (Call_Args+10*8)(R11), X2
	MOVOU X0, (0*8)(SP)
	MOVOU X1, (2*8)(SP)
	MOVOU X2, (4*8)(SP)

registers:
	MOVQ (Call_Args+0*8)(R11), DI
	MOVQ (Call_Args+1*8)(R11), SI
	MOVQ (Call_Args+2*8)(R11), DX
	MOVQ (Call_Args+3*8)(R11), CX
	MOVQ (Call_Args+4*8)(R11), R8
	MOVQ (Call_Args+5*8)(R11), R9
	MOVQ Call_fn(R11), R11
	CALL R11
	RET

// Locals of cross.
#define CALL_ 0(SP)
#define FORMER 8(SP)
#define RESULT 16(SP)

// int cross(Call *c): invoke c with c->ctx current. See Call.Do.
TEXT cross<>(SB), NOSPLIT, $32-0
	MOVQ DI, CALL_
	CMPQ Call_ctx(DI), $0
	JEQ  bound

	// get(&former)
	MOVQ  $0, FORMER
	MOVQ  Call_get(DI), R11
	LEAQ  FORMER, DI
	CALL  R11
	TESTL AX, AX
	JNZ   return
	MOVQ  CALL_, R11
	MOVQ  Call_ctx(R11), DI
	CMPQ  DI, FORMER
	JEQ   bound
	MOVQ  Call_also(R11), AX
	CMPQ  AX, FORMER
	JEQ   bound

	// set(ctx)
	MOVQ  Call_set(R11), R11
	CALL  R11
	TESTL AX, AX
	JNZ   return

	MOVQ CALL_, DI
	CALL invoke<>(SB)
	MOVL AX, RESULT

	// set(former)
	MOVQ CALL_, R11
	MOVQ FORMER, DI
	MOVQ Call_set(R11), R11
	CALL R11
	MOVL RESULT, AX
	RET

bound:
	MOVQ CALL_, DI
	CALL invoke<>(SB)

return:
	RET
