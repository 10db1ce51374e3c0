#include "textflag.h"

// The frame is larger than the code needs: for small ones the assembler leaves
// out the stack check.

// func spinWait(word *atomic.Uint32, old uint32, n int)
TEXT ·spinWait(SB), 0, $256-24
	MOVQ word+0(FP), AX
	MOVL old+8(FP), BX
	MOVQ n+16(FP), CX

loop:
	MOVL (AX), DX
	CMPL DX, BX
	JNE  done
	PAUSE
	DECQ CX
	JNE  loop

done:
	RET
