/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The trace event of the module: its fields are struct etrace_record and the payload. target.h
 * writes it, text.c prints it; trace_etrace_record() is never called.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM etrace

#if !defined(ETRACE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define ETRACE_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(etrace_record,
	    TP_PROTO(s64 upid, u64 time_ns, u16 cpu, u16 flags, const u8 *payload, u32 len),
	    TP_ARGS(upid, time_ns, cpu, flags, payload, len),
	    TP_STRUCT__entry(__field(s64, upid)
			     __field(u64, time_ns)
			     __field(u16, cpu)
			     __field(u16, flags)
			     __dynamic_array(u8, payload, len)),
	    TP_fast_assign(__entry->upid = upid;
			   __entry->time_ns = time_ns;
			   __entry->cpu = cpu;
			   __entry->flags = flags;
			   memcpy(__get_dynamic_array(payload), payload, len);),
	    TP_printk("upid=%lld time=%llu cpu=%u flags=%u payload=%d bytes",
		      __entry->upid, __entry->time_ns, __entry->cpu, __entry->flags,
		      __get_dynamic_array_len(payload))
);

#endif /* ETRACE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH record
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
