#include "textflag.h"

// func callerPCs(pcs []uintptr) int
//
// As for callerPC, R29 is CallerPCs' frame pointer.
TEXT ·callerPCs(SB), NOSPLIT|NOFRAME, $0-32
	MOVD pcs_base+0(FP), R5
	MOVD pcs_len+8(FP), R6
	MOVD 8(g), R3    // g.stack.hi
	MOVD R29, R4     // frames lie above here, each above the one before
	MOVD 0(R29), R1
	MOVD ZR, R0

frame:
	CMP  R6, R0
	BGE  done
	CMP  R4, R1
	BLS  done
	CMP  R3, R1
	BHS  done
	MOVD 8(R1), R2
	MOVD R2, (R5)(R0<<3)
	ADD  $1, R0
	MOVD R1, R4
	MOVD 0(R1), R1
	B    frame

done:
	MOVD R0, ret+24(FP)
	RET
