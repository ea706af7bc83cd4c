#include "textflag.h"

// func onStack(pc uintptr) bool
TEXT ·onStack(SB), NOSPLIT|NOFRAME, $0-9
	MOVQ pc+0(FP), AX
	MOVQ BP, BX

frame:
	TESTQ BX, BX
	JZ    none
	CMPQ  AX, 8(BX) // the return address stands above the saved frame pointer
	JEQ   found
	MOVQ  0(BX), BX
	JMP   frame

found:
	MOVB $1, ret+8(FP)
	RET

none:
	MOVB $0, ret+8(FP)
	RET
