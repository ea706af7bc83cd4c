#include "textflag.h"

// func onStack(pc uintptr) byte
TEXT ·onStack(SB), NOSPLIT|NOFRAME, $0-9
	MOVQ pc+0(FP), AX
	MOVQ (TLS), CX
	MOVQ 8(CX), DX // g.stack.hi
	MOVQ SP, CX    // frames lie above here, each above the one before
	MOVQ BP, BX

frame:
	TESTQ BX, BX
	JZ    none
	CMPQ  BX, CX
	JBE   cut
	CMPQ  BX, DX
	JAE   cut
	CMPQ  AX, 8(BX) // the return address stands above the saved frame pointer
	JEQ   found
	MOVQ  BX, CX
	MOVQ  0(BX), BX
	JMP   frame

found:
	MOVB $1, ret+8(FP)
	RET

none:
	MOVB $0, ret+8(FP)
	RET

cut:
	MOVB $2, ret+8(FP)
	RET
