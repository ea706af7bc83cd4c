#include "textflag.h"

// func callerPC() uintptr
//
// This function has no frame, so R29 is CallerPC's frame pointer: 0(R29) is that
// of the function that called CallerPC, and the word above a frame's saved frame
// pointer is its return address.
TEXT ·callerPC(SB), NOSPLIT|NOFRAME, $0-8
	MOVD 0(R29), R0
	MOVD 8(R0), R0
	MOVD R0, ret+0(FP)
	RET
