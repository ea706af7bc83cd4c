//go:build linux && (!cgo || hostlaunch_purego)

#include "textflag.h"

DATA ·acceptEntryPC(SB)/8, $acceptEntry<>(SB)
GLOBL ·acceptEntryPC(SB), NOPTR|RODATA, $8

// int acceptEntry()
TEXT acceptEntry<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVD ZR, R0
	RET
