#include "textflag.h"

// func callerPC() uintptr
//
// This function has no frame, so BP is CallerPC's frame pointer: 0(BP) is that
// of the function that called CallerPC, and the word above a frame's saved frame
// pointer is its return address.
TEXT ·callerPC(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ 0(BP), AX
	MOVQ 8(AX), AX
	MOVQ AX, ret+0(FP)
	RET
