/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Binary records of the kernel module: what is in the ring buffer, and how it becomes text.
 * Shared by the module (text at read time of trace_pipe) and etrace_cat (raw pages). Host byte
 * order: a record is read on the machine that wrote it.
 *
 * One event is one record, or several when its text would not fit; all of them carry the time, CPU
 * and upid of the event, all but the last ETRACE_RECORD_MORE, all but the first
 * ETRACE_RECORD_CONTINUES. The payload is a sequence of pieces, each 8-byte aligned and padded.
 */
#ifndef ETRACE_RECORD_H
#define ETRACE_RECORD_H

#include "etrace_format.h"

/* Bytes of a record's payload, and of the text that it makes: trace_seq has PAGE_SIZE before Linux
 * 6.8, and a reader that did not clear context-info wants some of it.
 */
#define ETRACE_RECORD_BYTES_MAX 3072
#define ETRACE_RECORD_TEXT_MAX 3500

#define ETRACE_RECORD_MORE 0x1 /* further records of this event follow */
#define ETRACE_RECORD_CONTINUES 0x2 /* records of this event came before */
/*
 * flags >> SHIFT: number of the record in its event, from 0, wrapping. The task may have been on
 * another CPU when it wrote the next record: a reader of several buffers puts the event together
 * by it, and sees what is missing.
 */
#define ETRACE_RECORD_NUMBER_SHIFT 2
#define ETRACE_RECORD_NUMBER_MASK 0x3fff

/* The fields of the trace event `etrace_record` after the common ones; see its `format` file. */
struct etrace_record {
	s64 upid;
	u64 time_ns; /* CLOCK_MONOTONIC */
	u16 cpu;
	u16 flags; /* ETRACE_RECORD_*, number << ETRACE_RECORD_NUMBER_SHIFT */
	u32 payload; /* __data_loc: offset from the start of the entry, length << 16 */
};

enum etrace_piece_kind {
	/*
	 * An event: n_values s64, then one u32 length for each string that the event can have
	 * (ETRACE_ABSENT: it has not), padding to 8, then the bytes of all strings in one run
	 * unless ETRACE_PIECE_LINE_ONLY.
	 */
	ETRACE_PIECE_EVENT = 1,
	ETRACE_PIECE_TEXT, /* `bytes` bytes of the string `what` (enum etrace_data) */
	ETRACE_PIECE_END_OF_ARGS,
};

#define ETRACE_ABSENT 0xffffffffu

/* flags of ETRACE_PIECE_EVENT */
#define ETRACE_PIECE_LINE_ONLY 0x1 /* the strings come in pieces of their own */
/* flags of ETRACE_PIECE_TEXT */
#define ETRACE_PIECE_NUMBERED 0x1 /* `TAG[index]`, else `TAG|` */
#define ETRACE_PIECE_IN_CONT 0x2 /* begins right after a newline of its part: no tag, Cont */
#define ETRACE_PIECE_OPEN 0x4 /* continues in the next piece after a newline, which is in neither */
#define ETRACE_PIECE_END 0x8 /* last part of the string: `TAG_end` where the tag has one */

struct etrace_piece {
	u8 kind; /* enum etrace_piece_kind */
	u8 what; /* enum etrace_event or enum etrace_data */
	u8 flags;
	u8 n_values;
	u32 bytes; /* of the strings, or of the text; without padding */
	u32 index; /* of a numbered text */
	u32 size; /* of the whole piece, this header and padding included: a multiple of 8 */
};

/*
 * Print all lines of one record. False when the payload is malformed: what came before the
 * malformed piece has been printed. Reads only `payload[0..len)`; `payload` is 4-byte aligned.
 */
bool etrace_record_text(struct etrace_out *out, const struct etrace_prefix *prefix,
			const void *payload, size_t len);

#endif /* ETRACE_RECORD_H */
