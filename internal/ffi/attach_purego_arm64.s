//go:build linux && !cgo

#include "textflag.h"

DATA ·detachThreadPC(SB)/8, $detachThread<>(SB)
GLOBL ·detachThreadPC(SB), NOPTR|RODATA, $8

// func keyCreated() *uintptr
TEXT ·keyCreated(SB), NOSPLIT, $0-8
	MOVD _cgo_pthread_key_created(SB), R0
	MOVD R0, ret+0(FP)
	RET

// func setBindThread()
TEXT ·setBindThread(SB), NOSPLIT, $0-0
	MOVD $bindThread<>(SB), R0
	MOVD R0, _cgo_bindm(SB)
	RET

// void bindThread(void *g), called by the runtime when it has attached a
// thread: pthread_setspecific(threadKey, g). Variables are read through their
// address, because a direct load would use R27, which C expects to be left
// alone.
TEXT bindThread<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVD  R0, R1
	MOVD  $·threadKey(SB), R0
	MOVWU (R0), R0
	MOVD  $·pthreadSetspecific(SB), R2
	MOVD  (R2), R2
	JMP   (R2)

// void detachThread(void *g), the key's destructor: crosscall2(0, g, 0, 0),
// which the runtime understands as the end of the thread.
TEXT detachThread<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVD R0, R1
	MOVD ZR, R0
	MOVD ZR, R2
	MOVD ZR, R3
	JMP  crosscall2(SB)
