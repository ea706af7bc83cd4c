#include "textflag.h"

// func callerPCs(pcs []uintptr) int
//
// As for callerPC, BP is CallerPCs' frame pointer.
TEXT ·callerPCs(SB), NOSPLIT|NOFRAME, $0-32
	MOVQ pcs_base+0(FP), DI
	MOVQ pcs_len+8(FP), SI
	MOVQ (TLS), CX
	MOVQ 8(CX), DX // g.stack.hi
	MOVQ BP, CX    // frames lie above here, each above the one before
	MOVQ 0(BP), BX
	XORQ AX, AX

frame:
	CMPQ AX, SI
	JGE  done
	CMPQ BX, CX
	JBE  done
	CMPQ BX, DX
	JAE  done
	MOVQ 8(BX), R8
	MOVQ R8, (DI)(AX*8)
	INCQ AX
	MOVQ BX, CX
	MOVQ 0(BX), BX
	JMP  frame

done:
	MOVQ AX, ret+24(FP)
	RET
