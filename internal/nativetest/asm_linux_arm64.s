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

// C functions: the argument in R0.

TEXT add<>(SB), NOSPLIT|NOFRAME, $0-0
again:
	LDAXR (R0), R1
	ADD   $1, R1
	STLXR R1, (R0), R2
	CBNZW R2, again
	RET

TEXT append<>(SB), NOSPLIT|NOFRAME, $0-0
	LDP  (R0), (R1, R2)
	MOVD (R1), R3
	ADD  $1, R3
	MOVD R2, (R1)(R3<<3)
	MOVD R3, (R1)
	RET

TEXT note<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVD $·last(SB), R1
	STLR R0, (R1)
	MOVD $·times(SB), R1

again:
	LDAXR (R1), R2
	ADD   $1, R2
	STLXR R2, (R1), R3
	CBNZW R3, again
	RET

TEXT hold<>(SB), NOSPLIT|NOFRAME, $0-0
	ADD   $4, R0, R1
	MOVD  $1, R2
	STLRW R2, (R1)

wait:
	LDARW (R0), R2
	CBZW  R2, wait
	RET

TEXT sum<>(SB), NOSPLIT|NOFRAME, $0-0
	LDP (R0), (R1, R2)
	ADD $16, R0
	MOVD ZR, R3

next:
	CBZ     R2, out
	SUB     $1, R2
	MOVBU.P 1(R0), R4
	ADD     R4, R3
	B       next

out:
	MOVD R3, (R1)
	RET
