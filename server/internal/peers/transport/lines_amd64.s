#include "textflag.h"

// func lines(p unsafe.Pointer, n int)
//
// PREFETCHT0: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2B.
TEXT ·lines(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX
line:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	SUBQ $1, CX
	JGT line
	RET
