# SPDX-License-Identifier: Apache-2.0
# Tags and limits of the event lines for the parser.
# Rendered from etrace/spec/events.toml by `make generate`: do not edit.

cdef extern from "etrace/events.h" nogil:
    enum: ETRACE_PART_BYTES
    enum: ETRACE_UPID_PID_BITS
    enum: ETRACE_KEPT_OUTPUT_BYTES
    enum: ETRACE_FULL_OUTPUT_BYTES
    enum: ETRACE_BRIEF_OUTPUT_BYTES
    enum: ETRACE_SIGNAL_STATUS_BASE
    enum: ETRACE_MAX_ARGS
    enum: ETRACE_MAX_DATA

    enum etrace_event:
        ETRACE_EV_NEW_PROC
        ETRACE_EV_SCHED_FORK
        ETRACE_EV_SYS_CLONE
        ETRACE_EV_SYS_CLONE_FAILED
        ETRACE_EV_EXIT
        ETRACE_EV_USAGE
        ETRACE_EV_WRITTEN
        ETRACE_EV_OPEN
        ETRACE_EV_CLOSE
        ETRACE_EV_PIPE
        ETRACE_EV_DUP
        ETRACE_EV_RENAME_FROM
        ETRACE_EV_RENAME2FROM
        ETRACE_EV_RENAME_TO
        ETRACE_EV_RENAME_FAILED
        ETRACE_EV_LINK_FROM
        ETRACE_EV_LINKAT_FROM
        ETRACE_EV_LINK_TO
        ETRACE_EV_LINK_FAILED
        ETRACE_EV_SYMLINK
        ETRACE_EV_MOUNT
        ETRACE_EV_MOUNT_FAILED
        ETRACE_EV_UMOUNT
        ETRACE_EV_UMOUNT_FAILED
        ETRACE_EV_COMM
        ETRACE_EV_UPID
        ETRACE_N_EVENTS

    enum etrace_data:
        ETRACE_DATA_PI
        ETRACE_DATA_PP
        ETRACE_DATA_CW
        ETRACE_DATA_A
        ETRACE_DATA_FN
        ETRACE_DATA_FO
        ETRACE_DATA_RF
        ETRACE_DATA_RT
        ETRACE_DATA_LF
        ETRACE_DATA_LT
        ETRACE_DATA_ST
        ETRACE_DATA_SR
        ETRACE_DATA_SL
        ETRACE_DATA_MS
        ETRACE_DATA_MT
        ETRACE_DATA_MX
        ETRACE_DATA_CN
        ETRACE_DATA_OU
        ETRACE_DATA_ENV
        ETRACE_N_DATA

    struct etrace_data_def:
        const char *tag
        unsigned char tag_len
        unsigned char numbering

    struct etrace_arg_def:
        const char *name
        unsigned char name_len
        signed char size_of
        unsigned char is_unsigned

    struct etrace_event_def:
        const char *tag
        unsigned char tag_len
        unsigned char n_args
        unsigned char n_data
        unsigned char bare
        etrace_arg_def args[7]
        unsigned char data[3]
