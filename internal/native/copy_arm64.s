#include "textflag.h"

// The copy. moveC copies R2 bytes from R1 to R0, as memmove does, and uses nothing but registers that C leaves to a function
// and Go's assembly too: R0 to R11, V0 to V7 and V16 to V23.
//
// Up to 128 bytes everything is read before anything is written. Beyond, blocks of 64 bytes are moved between a head and a
// tail, which are read first and written last; so an overlap does no harm as long as the blocks go away from it. If there are
// at least R3 bytes, the blocks are read and written with the hint that they will not be used again soon.

// The assembler lacks LDNP and STNP for vectors: q1 and q2 at 16*at(base).
#define LDNP_Q(q1, q2, base, at) WORD $(0xac400000 | ((at)<<15) | ((q2)<<10) | ((base)<<5) | (q1))
#define STNP_Q(q1, q2, base, at) WORD $(0xac000000 | ((at)<<15) | ((q2)<<10) | ((base)<<5) | (q1))

TEXT ·moveC(SB), NOSPLIT|NOFRAME, $0-0
	ADD R1, R2, R4 // end of the source
	ADD R0, R2, R5 // end of the destination
	CMP $16, R2
	BLO upto15
	CMP $32, R2
	BLS upto32
	CMP $64, R2
	BLS upto64
	CMP $128, R2
	BLS upto128

	SUBS R1, R0, R6
	BEQ  done // onto itself
	CMP  R2, R6
	BLO  back // the destination begins inside the source

	// The head to align the destination, and the tail.
	FLDPQ (R1), (F16, F17)
	FLDPQ -64(R4), (F18, F19)
	FLDPQ -32(R4), (F20, F21)
	MOVD  R0, R8
	AND   $31, R0, R6
	MOVD  $32, R7
	SUB   R6, R7
	ADD   R7, R0
	ADD   R7, R1
	SUB   $64, R5, R9
	CMP   R3, R2
	BHS   streamAhead

ahead:
	CMP   R9, R0
	BHS   aheadOut
	FLDPQ (R1), (F0, F1)
	FLDPQ 32(R1), (F2, F3)
	FSTPQ (F0, F1), (R0)
	FSTPQ (F2, F3), 32(R0)
	ADD   $64, R1
	ADD   $64, R0
	B     ahead

streamAhead:
	CMP R9, R0
	BHS aheadOut
	LDNP_Q(0, 1, 1, 0)
	LDNP_Q(2, 3, 1, 2)
	STNP_Q(0, 1, 0, 0)
	STNP_Q(2, 3, 0, 2)
	ADD $64, R1
	ADD $64, R0
	B   streamAhead

aheadOut:
	FSTPQ (F18, F19), -64(R5)
	FSTPQ (F20, F21), -32(R5)
	FSTPQ (F16, F17), (R8)
	RET

back:
	FLDPQ -32(R4), (F16, F17)
	FLDPQ (R1), (F18, F19)
	FLDPQ 32(R1), (F20, F21)
	MOVD  R5, R8
	AND   $31, R5, R6
	SUB   R6, R5
	SUB   R6, R4
	ADD   $64, R0, R9
	CMP   R3, R2
	BHS   streamBack

backward:
	CMP   R9, R5
	BLS   backOut
	SUB   $64, R4
	SUB   $64, R5
	FLDPQ 32(R4), (F0, F1)
	FLDPQ (R4), (F2, F3)
	FSTPQ (F0, F1), 32(R5)
	FSTPQ (F2, F3), (R5)
	B     backward

streamBack:
	CMP R9, R5
	BLS backOut
	SUB $64, R4
	SUB $64, R5
	LDNP_Q(0, 1, 4, 2)
	LDNP_Q(2, 3, 4, 0)
	STNP_Q(0, 1, 5, 2)
	STNP_Q(2, 3, 5, 0)
	B   streamBack

backOut:
	FSTPQ (F18, F19), (R0)
	FSTPQ (F20, F21), 32(R0)
	FSTPQ (F16, F17), -32(R8)
	RET

upto128:
	FLDPQ (R1), (F0, F1)
	FLDPQ 32(R1), (F2, F3)
	FLDPQ -64(R4), (F4, F5)
	FLDPQ -32(R4), (F6, F7)
	FSTPQ (F0, F1), (R0)
	FSTPQ (F2, F3), 32(R0)
	FSTPQ (F4, F5), -64(R5)
	FSTPQ (F6, F7), -32(R5)
	RET

upto64:
	FLDPQ (R1), (F0, F1)
	FLDPQ -32(R4), (F2, F3)
	FSTPQ (F0, F1), (R0)
	FSTPQ (F2, F3), -32(R5)
	RET

upto32:
	LDP (R1), (R6, R7)
	LDP -16(R4), (R8, R9)
	STP (R6, R7), (R0)
	STP (R8, R9), -16(R5)
	RET

upto15:
	CMP  $8, R2
	BLO  upto7
	MOVD (R1), R6
	MOVD -8(R4), R7
	MOVD R6, (R0)
	MOVD R7, -8(R5)
	RET

upto7:
	CMP   $4, R2
	BLO   upto3
	MOVWU (R1), R6
	MOVWU -4(R4), R7
	MOVW  R6, (R0)
	MOVW  R7, -4(R5)
	RET

upto3:
	CMP   $2, R2
	BLO   upto1
	MOVHU (R1), R6
	MOVHU -2(R4), R7
	MOVH  R6, (R0)
	MOVH  R7, -2(R5)
	RET

upto1:
	CBZ   R2, done
	MOVBU (R1), R6
	MOVB  R6, (R0)

done:
	RET

// func move(dst, src unsafe.Pointer, n, streamFrom uintptr)
TEXT ·move(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD n+16(FP), R2
	MOVD streamFrom+24(FP), R3
	BL   ·moveC(SB)
	RET
