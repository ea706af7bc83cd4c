#include "go_asm.h"
#include "textflag.h"

DATA ·partsPC(SB)/8, $partsC<>(SB)
GLOBL ·partsPC(SB), NOPTR|RODATA, $8

#define FUTEX 202
#define WAIT_PRIVATE 128
#define WAKE_PRIVATE 129
#define TIMED_OUT -110

// void partsC(Work *): a C function. RunParts is the same in Go. BX is the work, R12 the board, R13 a queue, R14 the looks left,
// R15 a count. A part is read before it is taken: if nobody else has taken it meanwhile, nobody has replaced it either.
TEXT partsC<>(SB), NOSPLIT, $48-0
	MOVQ  BX, 0(SP)
	MOVQ  R12, 8(SP)
	MOVQ  R13, 16(SP)
	MOVQ  R14, 24(SP)
	MOVQ  R15, 32(SP)
	MOVQ  DI, BX
	MOVQ  Work_Board(BX), R12
	CMPL  Work_Park(BX), $0
	JEQ   begin

	LOCK
	INCL  Board_Sleepers(R12)
	LEAQ  Board_Bell(R12), DI
	MOVL  $WAIT_PRIVATE, SI
	MOVL  Work_Seen(BX), DX
	LEAQ  Work_Seconds(BX), R10
	XORL  R8, R8
	XORL  R9, R9
	MOVL  $FUTEX, AX
	SYSCALL
	LOCK
	DECL  Board_Sleepers(R12)
	MOVL  $const_WorkTimedOut, CX
	CMPQ  AX, $TIMED_OUT
	JEQ   out

begin:
	MOVQ  Work_Looks(BX), R14

look:
	MOVQ  Work_Home(BX), R13
	TESTQ R13, R13
	JEQ   scan
	MOVL  $const_WorkHome, CX
	MOVQ  Queue_Ticket(R13), AX
	CMPQ  AX, Work_Target(BX)
	JAE   out

scan:
	MOVL  Board_n(R12), R15
	MOVL  $8, R11 // what a look costs if nothing waits

queue:
	DECL  R15
	JLT   none
	MOVL  Work_next(BX), CX
	INCL  CX
	CMPL  CX, Board_n(R12)
	JB    inside
	XORL  CX, CX

inside:
	MOVL  CX, Work_next(BX)
	MOVQ  Board_active(R12)(CX*8), R13
	TESTQ R13, R13
	JEQ   queue
	MOVQ  Queue_Ticket(R13), AX
	CMPQ  AX, Queue_Tail(R13)
	JAE   queue
	MOVL  $1, R11
	MOVL  AX, CX
	ANDL  $(const_QueueParts-1), CX
	SHLQ  $7, CX
	ADDQ  Queue_ring(R13), CX
	MOVQ  Queue_Word(R13), DX
	MOVL  (DX), DX
	SUBL  Part_Value(CX), DX
	JMI   queue

	MOVOU 0(CX), X0
	MOVOU 16(CX), X1
	MOVOU 32(CX), X2
	MOVOU 48(CX), X3
	MOVOU 64(CX), X4
	MOVOU 80(CX), X5
	MOVOU 96(CX), X6
	LEAQ  1(AX), DX
	LOCK
	CMPXCHGQ DX, Queue_Ticket(R13)
	JNE   queue
	MOVOU X0, (Work_part+0)(BX)
	MOVOU X1, (Work_part+16)(BX)
	MOVOU X2, (Work_part+32)(BX)
	MOVOU X3, (Work_part+48)(BX)
	MOVOU X4, (Work_part+64)(BX)
	MOVOU X5, (Work_part+80)(BX)
	MOVOU X6, (Work_part+96)(BX)
	INCQ  Work_Did(BX)

	// Wake another one if there is more for it.
	MOVQ  Queue_Tail(R13), AX
	SUBQ  DX, AX
	CMPQ  AX, $const_partsToWake
	JB    copy
	CMPL  Board_Sleepers(R12), $0
	JEQ   copy
	LOCK
	INCL  Board_Bell(R12)
	LEAQ  Board_Bell(R12), DI
	MOVL  $WAKE_PRIVATE, SI
	MOVL  $1, DX
	MOVL  $FUTEX, AX
	SYSCALL

copy:
	MOVQ  (Work_part+Part_Rows)(BX), R15

row:
	MOVQ  (Work_part+Part_Dst)(BX), DI
	MOVQ  (Work_part+Part_Src)(BX), SI
	MOVQ  (Work_part+Part_N)(BX), DX
	MOVQ  $-1, R8
	TESTL $const_PartStream, (Work_part+Part_Flags)(BX)
	JEQ   cached
	MOVL  $1, R8

cached:
	CALL  ·moveC(SB)
	DECQ  R15
	JLE   copied
	MOVQ  (Work_part+Part_DstStep)(BX), AX
	ADDQ  AX, (Work_part+Part_Dst)(BX)
	MOVQ  (Work_part+Part_SrcStep)(BX), AX
	ADDQ  AX, (Work_part+Part_Src)(BX)
	JMP   row

copied:
	MOVQ  (Work_part+Part_Done)(BX), AX
	TESTQ AX, AX
	JEQ   count
	MOVQ  (Work_part+Part_Bytes)(BX), CX
	LOCK
	XADDQ CX, (AX)

count:
	MOVQ  (Work_part+Part_Left)(BX), DX
	MOVL  $-1, AX
	LOCK
	XADDL AX, Left_Parts(DX)
	CMPL  AX, $1
	JNE   begin
	MOVQ  (Work_part+Part_Release)(BX), CX
	MOVL  (Work_part+Part_ReleaseValue)(BX), AX
	MOVL  AX, (CX)
	MOVL  $1, Left_Over(DX)
	MOVL  $const_WorkReport, CX
	TESTL $const_PartReports, (Work_part+Part_Flags)(BX)
	JNE   out
	JMP   begin

none:
	PAUSE
	SUBQ  R11, R14
	JGT   look
	MOVL  $const_WorkIdle, CX

out:
	MOVL  CX, Work_Outcome(BX)
	MOVQ  0(SP), BX
	MOVQ  8(SP), R12
	MOVQ  16(SP), R13
	MOVQ  24(SP), R14
	MOVQ  32(SP), R15
	RET

// func partsGo(w *Work)
TEXT ·partsGo(SB), NOSPLIT, $16-8
	MOVQ w+0(FP), DI
	CALL partsC<>(SB)
	RET
