#include "textflag.h"

// func onStack(pc uintptr) byte
TEXT ·onStack(SB), NOSPLIT|NOFRAME, $0-9
	MOVD pc+0(FP), R0
	MOVD 8(g), R3 // g.stack.hi
	MOVD RSP, R4  // frames lie above here, each above the one before
	MOVD R29, R1

frame:
	CBZ  R1, none
	CMP  R4, R1
	BLS  cut
	CMP  R3, R1
	BHS  cut
	MOVD 8(R1), R2 // the return address stands above the saved frame pointer
	CMP  R0, R2
	BEQ  found
	MOVD R1, R4
	MOVD 0(R1), R1
	B    frame

found:
	MOVD $1, R0
	MOVB R0, ret+8(FP)
	RET

none:
	MOVB ZR, ret+8(FP)
	RET

cut:
	MOVD $2, R0
	MOVB R0, ret+8(FP)
	RET
