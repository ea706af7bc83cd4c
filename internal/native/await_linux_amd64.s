#include "go_asm.h"
#include "textflag.h"

DATA ·awaitPC(SB)/8, $awaitC<>(SB)
GLOBL ·awaitPC(SB), NOPTR|RODATA, $8

// void awaitC(Await *): a C function that uses no callee-saved register and, to call Fn, leaves the stack as it was.
TEXT awaitC<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ Await_Word(DI), AX
	MOVL Await_Value(DI), CX
	MOVQ Await_Tries(DI), DX

look:
	MOVL (AX), R8
	SUBL CX, R8
	JPL  reached
	PAUSE
	DECQ DX
	JNE  look
	MOVQ DX, Await_Tries(DI)
	RET

reached:
	MOVQ  DX, Await_Tries(DI)
	MOVQ  Await_Fn(DI), AX
	TESTQ AX, AX
	JEQ   done
	MOVQ  Await_Data(DI), DI
	JMP   AX

done:
	RET

// func awaitGo(a *Await)
TEXT ·awaitGo(SB), NOSPLIT, $16-8
	MOVQ a+0(FP), DI
	CALL awaitC<>(SB)
	RET
