#include "textflag.h"

// func onStack(pc uintptr) bool
TEXT ·onStack(SB), NOSPLIT|NOFRAME, $0-9
	MOVD pc+0(FP), R0
	MOVD R29, R1

frame:
	CBZ  R1, none
	MOVD 8(R1), R2 // the return address stands above the saved frame pointer
	CMP  R0, R2
	BEQ  found
	MOVD 0(R1), R1
	B    frame

found:
	MOVD $1, R0
	MOVB R0, ret+8(FP)
	RET

none:
	MOVB ZR, ret+8(FP)
	RET
