//go:build linux && !cgo

#include "textflag.h"

DATA ·detachThreadPC(SB)/8, $detachThread<>(SB)
GLOBL ·detachThreadPC(SB), NOPTR|RODATA, $8

// func keyCreated() *uintptr
TEXT ·keyCreated(SB), NOSPLIT, $0-8
	MOVQ _cgo_pthread_key_created(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func setBindThread()
TEXT ·setBindThread(SB), NOSPLIT, $0-0
	LEAQ bindThread<>(SB), AX
	MOVQ AX, _cgo_bindm(SB)
	RET

// void bindThread(void *g), called by the runtime when it has attached a
// thread: pthread_setspecific(threadKey, g).
TEXT bindThread<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ DI, SI
	MOVL ·threadKey(SB), DI
	MOVQ ·pthreadSetspecific(SB), R11
	JMP  R11

// void detachThread(void *g), the key's destructor: crosscall2(0, g, 0, 0),
// which the runtime understands as the end of the thread.
TEXT detachThread<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ DI, SI
	XORL DI, DI
	XORL DX, DX
	XORL CX, CX
	JMP  crosscall2(SB)
