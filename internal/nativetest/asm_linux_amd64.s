//go:build !cgo || hostlaunch_purego

#include "textflag.h"

DATA ·addPC(SB)/8, $add<>(SB)
GLOBL ·addPC(SB), NOPTR|RODATA, $8
DATA ·appendPC(SB)/8, $append<>(SB)
GLOBL ·appendPC(SB), NOPTR|RODATA, $8
DATA ·notePC(SB)/8, $note<>(SB)
GLOBL ·notePC(SB), NOPTR|RODATA, $8
DATA ·holdPC(SB)/8, $hold<>(SB)
GLOBL ·holdPC(SB), NOPTR|RODATA, $8
DATA ·sumPC(SB)/8, $sum<>(SB)
GLOBL ·sumPC(SB), NOPTR|RODATA, $8

// C functions: the argument in DI.

TEXT add<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVL $1, AX
	LOCK
	XADDQ AX, (DI)
	RET

TEXT append<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ (DI), AX
	MOVQ 8(DI), DX
	MOVQ (AX), CX
	MOVQ DX, 8(AX)(CX*8)
	INCQ CX
	MOVQ CX, (AX)
	RET

TEXT note<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ DI, ·last(SB)
	MOVL $1, AX
	LOCK
	XADDQ AX, ·times(SB)
	RET

TEXT hold<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVL $1, 4(DI)

wait:
	PAUSE
	CMPL (DI), $0
	JEQ  wait
	RET

TEXT sum<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ (DI), R8
	MOVQ 8(DI), CX
	XORL AX, AX

next:
	TESTQ   CX, CX
	JZ      out
	DECQ    CX
	MOVBLZX 16(DI)(CX*1), DX
	ADDQ    DX, AX
	JMP     next

out:
	MOVQ AX, (R8)
	RET
