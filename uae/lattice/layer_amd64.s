//go:build amd64 && !purego

#include "textflag.h"

// Four butterflies: x at (DI), y at (DI)(DX*1). Y8 = w, Y9 = w>>32, Y10 = f,
// Y11 = f>>32, Y15 = c, X14 = shift. Leaves x+y in Y6 and writes (x-y)w.
//
// With d = x-y+c in halves d1, d0, the quotient h is d1*f1 + (d1*f0>>32) +
// (d0*f1>>32), at most 2 too small, and the result d*w - h*q mod 2^64, where
// h*q = (h<<shift) - (h<<14) + h.
#define BUTTERFLY \
	VMOVDQU  (DI), Y0          \
	VMOVDQU  (DI)(DX*1), Y1    \
	VPADDQ   Y1, Y0, Y6        \
	VPADDQ   Y15, Y0, Y0       \
	VPSUBQ   Y1, Y0, Y0        \
	VPSRLQ   $32, Y0, Y1       \
	VPMULUDQ Y10, Y1, Y2       \
	VPMULUDQ Y11, Y0, Y3       \
	VPMULUDQ Y11, Y1, Y4       \
	VPSRLQ   $32, Y2, Y2       \
	VPSRLQ   $32, Y3, Y3       \
	VPADDQ   Y2, Y4, Y4        \
	VPADDQ   Y3, Y4, Y4        \
	VPMULUDQ Y8, Y1, Y2        \
	VPMULUDQ Y9, Y0, Y3        \
	VPMULUDQ Y8, Y0, Y5        \
	VPADDQ   Y2, Y3, Y3        \
	VPSLLQ   $32, Y3, Y3       \
	VPADDQ   Y3, Y5, Y5        \
	VPSUBQ   Y4, Y5, Y5        \
	VPSLLQ   $14, Y4, Y2       \
	VPSLLQ   X14, Y4, Y3       \
	VPADDQ   Y2, Y5, Y5        \
	VPSUBQ   Y3, Y5, Y5        \
	VMOVDQU  Y5, (DI)(DX*1)

#define FACTORS \
	VPBROADCASTQ (SI), Y8      \
	VPBROADCASTQ 8(SI), Y10    \
	VPSRLQ       $32, Y8, Y9   \
	VPSRLQ       $32, Y10, Y11 \
	ADDQ         $16, SI

// func layer(v *uint64, factors *twist, blocks, step int, c uint64, shift int, reduce bool)
TEXT ·layer(SB), NOSPLIT, $0-49
	MOVQ         v+0(FP), DI
	MOVQ         factors+8(FP), SI
	MOVQ         blocks+16(FP), CX
	MOVQ         step+24(FP), DX
	VPBROADCASTQ c+32(FP), Y15
	VMOVQ        shift+40(FP), X14
	CMPB         reduce+48(FP), $0
	JNE          reduceBlock

plainBlock:
	FACTORS
	MOVQ DX, R8

plainLoop:
	BUTTERFLY
	VMOVDQU Y6, (DI)
	ADDQ    $32, DI
	SUBQ    $32, R8
	JNE     plainLoop
	ADDQ    DX, DI
	DECQ    CX
	JNE     plainBlock
	VZEROUPPER
	RET

reduceBlock:
	VPCMPEQQ Y12, Y12, Y12
	VPSLLQ   X14, Y12, Y13
	VPXOR    Y13, Y12, Y12 // the low shift bits

reduceNext:
	FACTORS
	MOVQ DX, R8

reduceLoop:
	BUTTERFLY

	// x - k*q for k = x>>shift: the low bits and k*(2^14 - 1).
	VPSRLQ  X14, Y6, Y2
	VPAND   Y12, Y6, Y6
	VPSLLQ  $14, Y2, Y3
	VPSUBQ  Y2, Y3, Y3
	VPADDQ  Y3, Y6, Y6
	VMOVDQU Y6, (DI)
	ADDQ    $32, DI
	SUBQ    $32, R8
	JNE     reduceLoop
	ADDQ    DX, DI
	DECQ    CX
	JNE     reduceNext
	VZEROUPPER
	RET
