#include "textflag.h"

// func ThreadPointer() uintptr
TEXT ·ThreadPointer(SB), NOSPLIT, $0-8
	// MOVQ FS:0, AX. The ABI keeps the control block's own address there.
	BYTE $0x64; BYTE $0x48; BYTE $0x8b; BYTE $0x04; BYTE $0x25
	BYTE $0x00; BYTE $0x00; BYTE $0x00; BYTE $0x00
	MOVQ AX, ret+0(FP)
	RET
