#include "textflag.h"

// The copy. moveC copies DX bytes from SI to DI, as memmove does, and uses nothing but registers that C and Go's assembly
// leave to a function: AX, CX, DX, SI, DI, R8 to R11, and vector registers.
//
// Up to 256 bytes everything is read before anything is written. Beyond, blocks of four vectors are moved between a head and
// a tail, which are read first and written last; so an overlap does no harm as long as the blocks go away from it. If there
// are at least R8 bytes, the blocks are written past the caches.

// AHEAD moves forward by blocks of 4*W bytes, with DI aligned to W. R8 and R9 are the ends of the destination.
#define AHEAD(W, LOAD, STORE, BLOCK, V0, V1, V2, V3, V4, V5, V6, V7, V8, top, out) \
	MOVQ DI, R8; \
	LEAQ (DI)(DX*1), R9; \
	LEAQ (SI)(DX*1), R10; \
	LOAD (SI), V8; \
	LOAD (-4*W)(R10), V4; \
	LOAD (-3*W)(R10), V5; \
	LOAD (-2*W)(R10), V6; \
	LOAD (-1*W)(R10), V7; \
	MOVQ DI, AX; \
	ANDQ $(W-1), AX; \
	SUBQ $W, AX; \
	SUBQ AX, DI; \
	SUBQ AX, SI; \
	LEAQ (-4*W)(R9), R11; \
top: \
	CMPQ DI, R11; \
	JAE  out; \
	LOAD (0*W)(SI), V0; \
	LOAD (1*W)(SI), V1; \
	LOAD (2*W)(SI), V2; \
	LOAD (3*W)(SI), V3; \
	BLOCK V0, (0*W)(DI); \
	BLOCK V1, (1*W)(DI); \
	BLOCK V2, (2*W)(DI); \
	BLOCK V3, (3*W)(DI); \
	ADDQ $(4*W), SI; \
	ADDQ $(4*W), DI; \
	JMP  top; \
out: \
	STORE V4, (-4*W)(R9); \
	STORE V5, (-3*W)(R9); \
	STORE V6, (-2*W)(R9); \
	STORE V7, (-1*W)(R9); \
	STORE V8, (R8)

// BACK is AHEAD from the other end.
#define BACK(W, LOAD, STORE, BLOCK, V0, V1, V2, V3, V4, V5, V6, V7, V8, top, out) \
	MOVQ DI, R8; \
	LEAQ (DI)(DX*1), R9; \
	LEAQ (SI)(DX*1), R10; \
	LOAD (-1*W)(R10), V8; \
	LOAD (0*W)(SI), V4; \
	LOAD (1*W)(SI), V5; \
	LOAD (2*W)(SI), V6; \
	LOAD (3*W)(SI), V7; \
	MOVQ R9, DI; \
	MOVQ R9, AX; \
	ANDQ $(W-1), AX; \
	SUBQ AX, DI; \
	SUBQ AX, R10; \
	LEAQ (4*W)(R8), R11; \
top: \
	CMPQ DI, R11; \
	JBE  out; \
	SUBQ $(4*W), R10; \
	SUBQ $(4*W), DI; \
	LOAD (3*W)(R10), V0; \
	LOAD (2*W)(R10), V1; \
	LOAD (1*W)(R10), V2; \
	LOAD (0*W)(R10), V3; \
	BLOCK V0, (3*W)(DI); \
	BLOCK V1, (2*W)(DI); \
	BLOCK V2, (1*W)(DI); \
	BLOCK V3, (0*W)(DI); \
	JMP  top; \
out: \
	STORE V4, (0*W)(R8); \
	STORE V5, (1*W)(R8); \
	STORE V6, (2*W)(R8); \
	STORE V7, (3*W)(R8); \
	STORE V8, (-1*W)(R9)


TEXT ·moveC(SB), NOSPLIT|NOFRAME, $0-0
	CMPQ DX, $16
	JBE  upto16
	CMPQ DX, $32
	JBE  upto32
	CMPQ DX, $64
	JBE  upto64
	CMPQ DX, $128
	JBE  upto128
	CMPQ DX, $256
	JBE  upto256

	MOVBLZX ·copyLevel(SB), CX
	MOVQ    DI, AX
	SUBQ    SI, AX
	JEQ     done // onto itself
	CMPQ    AX, DX
	JB      back // the destination begins inside the source

	CMPQ DX, R8
	JAE  streamAhead
	CMPB CX, $1
	JB   ahead128
	AHEAD(32, VMOVDQU, VMOVDQU, VMOVDQA, Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, a256, b256)
	VZEROUPPER
	RET

ahead128:
	AHEAD(16, MOVOU, MOVOU, MOVOA, X0, X1, X2, X3, X4, X5, X6, X7, X8, a128, b128)
	RET

streamAhead:
	CMPB CX, $1
	JB   streamAhead128
	JA   streamAhead512
	AHEAD(32, VMOVDQU, VMOVDQU, VMOVNTDQ, Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, c256, d256)
	VZEROUPPER
	SFENCE
	RET

streamAhead512:
	AHEAD(64, VMOVDQU64, VMOVDQU64, VMOVNTDQ, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, c512, d512)
	VZEROUPPER
	SFENCE
	RET

streamAhead128:
	AHEAD(16, MOVOU, MOVOU, MOVNTO, X0, X1, X2, X3, X4, X5, X6, X7, X8, c128, d128)
	SFENCE
	RET

back:
	CMPQ DX, R8
	JAE  streamBack
	CMPB CX, $1
	JB   back128
	BACK(32, VMOVDQU, VMOVDQU, VMOVDQA, Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, e256, f256)
	VZEROUPPER
	RET

back128:
	BACK(16, MOVOU, MOVOU, MOVOA, X0, X1, X2, X3, X4, X5, X6, X7, X8, e128, f128)
	RET

streamBack:
	CMPB CX, $1
	JB   streamBack128
	JA   streamBack512
	BACK(32, VMOVDQU, VMOVDQU, VMOVNTDQ, Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, g256, h256)
	VZEROUPPER
	SFENCE
	RET

streamBack512:
	BACK(64, VMOVDQU64, VMOVDQU64, VMOVNTDQ, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, g512, h512)
	VZEROUPPER
	SFENCE
	RET

streamBack128:
	BACK(16, MOVOU, MOVOU, MOVNTO, X0, X1, X2, X3, X4, X5, X6, X7, X8, g128, h128)
	SFENCE
	RET

upto256:
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	MOVOU 64(SI), X4
	MOVOU 80(SI), X5
	MOVOU 96(SI), X6
	MOVOU 112(SI), X7
	MOVOU -128(SI)(DX*1), X8
	MOVOU -112(SI)(DX*1), X9
	MOVOU -96(SI)(DX*1), X10
	MOVOU -80(SI)(DX*1), X11
	MOVOU -64(SI)(DX*1), X12
	MOVOU -48(SI)(DX*1), X13
	MOVOU -32(SI)(DX*1), X14
	MOVOU -16(SI)(DX*1), X15
	MOVOU X0, (DI)
	MOVOU X1, 16(DI)
	MOVOU X2, 32(DI)
	MOVOU X3, 48(DI)
	MOVOU X4, 64(DI)
	MOVOU X5, 80(DI)
	MOVOU X6, 96(DI)
	MOVOU X7, 112(DI)
	MOVOU X8, -128(DI)(DX*1)
	MOVOU X9, -112(DI)(DX*1)
	MOVOU X10, -96(DI)(DX*1)
	MOVOU X11, -80(DI)(DX*1)
	MOVOU X12, -64(DI)(DX*1)
	MOVOU X13, -48(DI)(DX*1)
	MOVOU X14, -32(DI)(DX*1)
	MOVOU X15, -16(DI)(DX*1)
	RET

upto128:
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	MOVOU -64(SI)(DX*1), X4
	MOVOU -48(SI)(DX*1), X5
	MOVOU -32(SI)(DX*1), X6
	MOVOU -16(SI)(DX*1), X7
	MOVOU X0, (DI)
	MOVOU X1, 16(DI)
	MOVOU X2, 32(DI)
	MOVOU X3, 48(DI)
	MOVOU X4, -64(DI)(DX*1)
	MOVOU X5, -48(DI)(DX*1)
	MOVOU X6, -32(DI)(DX*1)
	MOVOU X7, -16(DI)(DX*1)
	RET

upto64:
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU -32(SI)(DX*1), X2
	MOVOU -16(SI)(DX*1), X3
	MOVOU X0, (DI)
	MOVOU X1, 16(DI)
	MOVOU X2, -32(DI)(DX*1)
	MOVOU X3, -16(DI)(DX*1)
	RET

upto32:
	MOVOU (SI), X0
	MOVOU -16(SI)(DX*1), X1
	MOVOU X0, (DI)
	MOVOU X1, -16(DI)(DX*1)
	RET

upto16:
	CMPQ DX, $8
	JB   upto7
	MOVQ (SI), AX
	MOVQ -8(SI)(DX*1), CX
	MOVQ AX, (DI)
	MOVQ CX, -8(DI)(DX*1)
	RET

upto7:
	CMPQ DX, $4
	JB   upto3
	MOVL (SI), AX
	MOVL -4(SI)(DX*1), CX
	MOVL AX, (DI)
	MOVL CX, -4(DI)(DX*1)
	RET

upto3:
	CMPQ DX, $2
	JB   upto1
	MOVW (SI), AX
	MOVW -2(SI)(DX*1), CX
	MOVW AX, (DI)
	MOVW CX, -2(DI)(DX*1)
	RET

upto1:
	TESTQ DX, DX
	JEQ   done
	MOVB  (SI), AX
	MOVB  AX, (DI)

done:
	RET

// func move(dst, src unsafe.Pointer, n, streamFrom uintptr)
TEXT ·move(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), DX
	MOVQ streamFrom+24(FP), R8
	CALL ·moveC(SB)
	RET

// func cpuid(eax, ecx uint32) (a, b, c, d uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL eax+0(FP), AX
	MOVL ecx+4(FP), CX
	CPUID
	MOVL AX, a+8(FP)
	MOVL BX, b+12(FP)
	MOVL CX, c+16(FP)
	MOVL DX, d+20(FP)
	RET

// func xgetbv() (low uint32)
TEXT ·xgetbv(SB), NOSPLIT, $0-4
	XORL CX, CX
	XGETBV
	MOVL AX, low+0(FP)
	RET
