#include "go_asm.h"
#include "textflag.h"

DATA ·awaitPC(SB)/8, $awaitC<>(SB)
GLOBL ·awaitPC(SB), NOPTR|RODATA, $8

// void awaitC(Await *): a C function that uses no callee-saved register and, to call Fn, leaves the stack as it was.
TEXT awaitC<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVD  Await_Word(R0), R1
	MOVWU Await_Value(R0), R2
	MOVD  Await_Tries(R0), R3

look:
	LDARW (R1), R4
	SUBW  R2, R4, R4
	TBZ   $31, R4, reached
	YIELD
	SUB   $1, R3
	CBNZ  R3, look
	MOVD  R3, Await_Tries(R0)
	RET

reached:
	MOVD R3, Await_Tries(R0)
	MOVD Await_Fn(R0), R1
	CBZ  R1, done
	MOVD Await_Data(R0), R0
	JMP  (R1)

done:
	RET

// func awaitGo(a *Await)
TEXT ·awaitGo(SB), NOSPLIT, $16-8
	MOVD a+0(FP), R0
	CALL awaitC<>(SB)
	RET
