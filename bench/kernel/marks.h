/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions that do nothing and that nobody else has: calls.c executes them around what is
 * measured, plugin/instructions.c sees them. nopl 0x65740001(%rax,%rax,1), x86-64.
 */
#ifndef MARKS_H
#define MARKS_H

#define MARK_BEGIN "\x0f\x1f\x84\x00\x01\x00\x74\x65"
#define MARK_END "\x0f\x1f\x84\x00\x02\x00\x74\x65"
#define MARK_BYTES 8

#endif /* MARKS_H */
