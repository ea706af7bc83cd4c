#include "go_asm.h"
#include "textflag.h"

DATA ·partsPC(SB)/8, $partsC<>(SB)
GLOBL ·partsPC(SB), NOPTR|RODATA, $8

#define FUTEX 98
#define WAIT_PRIVATE 128
#define WAKE_PRIVATE 129

// void partsC(Work *): a C function. RunParts is the same in Go. R19 is the work, R20 the board, R21 a queue, R22 the looks left,
// R23 a count, R24 what a look costs. A part is read before it is taken: if nobody else has taken it meanwhile, nobody has
// replaced it either.
TEXT partsC<>(SB), NOSPLIT|NOFRAME, $0-0
	SUB  $80, RSP
	STP  (R29, R30), 64(RSP)
	ADD  $64, RSP, R29
	STP  (R19, R20), 0(RSP)
	STP  (R21, R22), 16(RSP)
	STP  (R23, R24), 32(RSP)
	MOVD R0, R19
	MOVD Work_Board(R19), R20
	MOVWU Work_Park(R19), R0
	CBZW R0, begin

	ADD  $Board_Sleepers, R20, R1

asleep:
	LDAXRW (R1), R2
	ADDW $1, R2
	STLXRW R2, (R1), R3
	CBNZW R3, asleep
	ADD  $Board_Bell, R20, R0
	MOVD $WAIT_PRIVATE, R1
	MOVWU Work_Seen(R19), R2
	ADD  $Work_Seconds, R19, R3
	MOVD ZR, R4
	MOVD ZR, R5
	MOVD $FUTEX, R8
	SVC
	ADD  $Board_Sleepers, R20, R1

awake:
	LDAXRW (R1), R2
	SUBW $1, R2
	STLXRW R2, (R1), R3
	CBNZW R3, awake
	MOVD $const_WorkTimedOut, R6
	CMN  $110, R0 // TIMED_OUT
	BEQ  out

begin:
	MOVD Work_Looks(R19), R22

look:
	MOVD Work_Home(R19), R21
	CBZ  R21, scan
	MOVD $const_WorkHome, R6
	ADD  $Queue_Ticket, R21, R1
	LDAR (R1), R0
	MOVD Work_Target(R19), R1
	CMP  R1, R0
	BHS  out

scan:
	ADD  $Board_n, R20, R1
	LDARW (R1), R23
	MOVD $8, R24 // what a look costs if nothing waits

queue:
	SUBSW $1, R23
	BMI  none
	MOVWU Work_next(R19), R1
	ADDW $1, R1
	ADD  $Board_n, R20, R2
	LDARW (R2), R2
	CMPW R2, R1
	BLO  inside
	MOVD ZR, R1

inside:
	MOVW R1, Work_next(R19)
	ADD  $Board_active, R20, R2
	ADD  R1<<3, R2
	LDAR (R2), R21
	CBZ  R21, queue
	ADD  $Queue_Ticket, R21, R0
	LDAR (R0), R1
	ADD  $Queue_Tail, R21, R2
	LDAR (R2), R2
	CMP  R2, R1
	BHS  queue
	MOVD $1, R24
	AND  $(const_QueueParts-1), R1, R2
	MOVD Queue_ring(R21), R3
	ADD  R2<<7, R3
	MOVD Queue_Word(R21), R4
	LDARW (R4), R4
	MOVWU Part_Value(R3), R5
	SUBW R5, R4, R4
	TBNZ $31, R4, queue

	FLDPQ 0(R3), (F0, F1)
	FLDPQ 32(R3), (F2, F3)
	FLDPQ 64(R3), (F4, F5)
	FMOVQ 96(R3), F6
	DMB  $0xb // what was read of the part is read before the ticket is taken
	ADD  $1, R1, R2
	LDAXR (R0), R4
	CMP  R4, R1
	BNE  queue
	STLXR R2, (R0), R5
	CBNZW R5, queue
	ADD  $Work_part, R19, R3
	FSTPQ (F0, F1), 0(R3)
	FSTPQ (F2, F3), 32(R3)
	FSTPQ (F4, F5), 64(R3)
	FMOVQ F6, 96(R3)
	MOVD Work_Did(R19), R4
	ADD  $1, R4
	MOVD R4, Work_Did(R19)

	// Wake another one if there is more for it.
	ADD  $Queue_Tail, R21, R4
	LDAR (R4), R4
	SUB  R2, R4
	CMP  $const_partsToWake, R4
	BLO  copy
	ADD  $Board_Sleepers, R20, R1
	LDARW (R1), R2
	CBZW R2, copy
	ADD  $Board_Bell, R20, R0

ring:
	LDAXRW (R0), R2
	ADDW $1, R2
	STLXRW R2, (R0), R3
	CBNZW R3, ring
	MOVD $WAKE_PRIVATE, R1
	MOVD $1, R2
	MOVD $FUTEX, R8
	SVC

copy:
	MOVD (Work_part+Part_Rows)(R19), R23

row:
	MOVD (Work_part+Part_Dst)(R19), R0
	MOVD (Work_part+Part_Src)(R19), R1
	MOVD (Work_part+Part_N)(R19), R2
	MOVD $-1, R3
	MOVWU (Work_part+Part_Flags)(R19), R4
	TBZ  $0, R4, cached // PartStream
	MOVD $1, R3

cached:
	BL   ·moveC(SB)
	SUBS $1, R23
	BLE  copied
	MOVD (Work_part+Part_Dst)(R19), R0
	MOVD (Work_part+Part_DstStep)(R19), R1
	ADD  R1, R0
	MOVD R0, (Work_part+Part_Dst)(R19)
	MOVD (Work_part+Part_Src)(R19), R0
	MOVD (Work_part+Part_SrcStep)(R19), R1
	ADD  R1, R0
	MOVD R0, (Work_part+Part_Src)(R19)
	B    row

copied:
	DMB  $0xb // streaming stores are not ordered by what follows
	MOVD (Work_part+Part_Done)(R19), R0
	CBZ  R0, count
	MOVD (Work_part+Part_Bytes)(R19), R1

add:
	LDAXR (R0), R2
	ADD  R1, R2
	STLXR R2, (R0), R3
	CBNZW R3, add

count:
	MOVD (Work_part+Part_Left)(R19), R0

less:
	LDAXRW (R0), R2
	SUBW $1, R2
	STLXRW R2, (R0), R3
	CBNZW R3, less
	CBNZW R2, begin
	MOVD (Work_part+Part_Release)(R19), R1
	MOVWU (Work_part+Part_ReleaseValue)(R19), R2
	STLRW R2, (R1)
	MOVD $1, R2
	ADD  $Left_Over, R0, R1
	STLRW R2, (R1)
	MOVD $const_WorkReport, R6
	MOVWU (Work_part+Part_Flags)(R19), R4
	TBNZ $1, R4, out // PartReports
	B    begin

none:
	YIELD
	SUBS R24, R22
	BGT  look
	MOVD $const_WorkIdle, R6

out:
	MOVW R6, Work_Outcome(R19)
	LDP  0(RSP), (R19, R20)
	LDP  16(RSP), (R21, R22)
	LDP  32(RSP), (R23, R24)
	LDP  64(RSP), (R29, R30)
	ADD  $80, RSP
	RET

// func partsGo(w *Work)
TEXT ·partsGo(SB), NOSPLIT, $16-8
	MOVD w+0(FP), R0
	BL   partsC<>(SB)
	RET
