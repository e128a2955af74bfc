/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that the preload library and its collector share. One layout for 64 and 32 bits.
 *
 * A writer takes a free chunk, appends whole records and moves `head` when one is complete: a writer
 * that is killed within a record leaves nothing of it. A full chunk is given back as RING_FULL; the
 * collector frees it when it has read it. Nothing here is trusted, neither by the collector nor by
 * the library: all processes of the build can write to all of it, with whatever rights they have.
 */
#ifndef ETRACE_PRELOAD_RING_H
#define ETRACE_PRELOAD_RING_H

#include <stdint.h>

#define RING_MAGIC 0x45544c50u
#define RING_VERSION 1u

#define CHUNK_BYTES 8192u
#define MAX_CHUNKS 4096u
#define FIRST_CHUNKS 64u /* 512 KB: what every program maps, and most need no more */
#define RING_PID_LIMIT (1 << 22) /* the kernel has no higher ones (PID_MAX_LIMIT) */
#define PRELOAD_MAX 1024 /* bytes of the library's name in LD_PRELOAD */

enum ring_state { RING_FREE, RING_TAKEN, RING_FULL };

/* What the library has to record beside the usual. */
enum { RING_WANTS_ENVIRONMENT = 1, RING_WANTS_RESPONSES = 2 };

struct ring_chunk {
	uint32_t state;
	uint32_t pid; /* of the writer */
	uint32_t head; /* bytes of whole records */
	uint32_t unused;
};

struct ring_header {
	uint32_t magic;
	uint32_t version;
	uint32_t n_chunks; /* that have memory; grows */
	uint32_t is_open; /* 0: nobody reads */
	uint32_t lost; /* records for which there was no room */
	uint32_t unused[3];
	struct ring_chunk chunks[MAX_CHUNKS];
};

#define RING_HEADER_BYTES ((sizeof(struct ring_header) + 4095u) / 4096u * 4096u)
#define RING_FIRST_BYTES (RING_HEADER_BYTES + FIRST_CHUNKS * CHUNK_BYTES)
#define RING_BYTES (RING_HEADER_BYTES + MAX_CHUNKS * CHUNK_BYTES)

/*
 * The variable that names the shared memory, what is wanted (a digit), and the library as LD_PRELOAD
 * names it, with colons between. No other process can change it.
 */
#define RING_VARIABLE "ETRACE_PRELOAD"
#define RING_VALUE_MAX (PRELOAD_MAX + 64)

/* The abstract name of the collector's socket is that of the shared memory. */
#define RING_SOCKET_MAX 64

enum ring_kind {
	RING_BORN = 1, /* parent */
	RING_FORK, /* child */
	RING_INTENT, /* n_args, is_spawned, has_no_library; path, cwd, arguments: a program is about to be executed */
	RING_EXEC_FAILED,
	RING_STARTED, /* n_args, n_env, n_objects, parent; execfn, program, cwd, whether those are all and bits of the open descriptors, lists */
	RING_OPEN, /* flags, mode, fd, has_unknown_directory; resolved, name, directory */
	RING_CLOSE, /* fd */
	RING_CLOSE_RANGE, /* first, last */
	RING_PIPE, /* fd, fd, flags */
	RING_DUP, /* from, to, flags */
	RING_RENAME, /* result, form, flags, found; from, to */
	RING_LINK, /* likewise */
	RING_SYMLINK, /* has_resolved; target, link (empty: unknown), resolved */
	RING_CWD, /* cwd */
	RING_EXIT, /* status */
	RING_CHILD_END, /* pid, wait status */
	RING_MOUNT, /* result, flags; source, target, type */
	RING_UMOUNT, /* result, flags; target */
	RING_CONFINED, /* the process restricted its own system calls */
	RING_OBJECTS, /* n; objects that the dynamic linker opened since */
	RING_RESPONSE, /* 0; path, content: a response file; or how many were missed */
	RING_LEFT, /* a child began in another PID namespace: nothing follows of it */
	RING_OUTSIDE, /* path; a program without the shared memory: the collector's own record */
	N_RING_KINDS,
};

/* Forms of RING_RENAME and RING_LINK. */
enum { FORM_PLAIN, FORM_WITH_FLAGS };

/* What RING_RENAME and RING_LINK know of the names. */
enum { FOUND_SOURCE_PATH = 1, FOUND_SOURCE = 2, FOUND_DESTINATION = 4 };

#define RING_N_ARGS 4

/*
 * The head of a record; its strings follow, each a length (u32) and that many bytes. A record that
 * does not fit into its chunk goes on in another: all parts but the last have RING_MORE.
 */
struct ring_record {
	uint32_t size; /* with this head, a multiple of 8 */
	uint16_t kind;
	uint16_t part;
	uint32_t pid;
	uint32_t cpu;
	uint64_t time_ns __attribute__((aligned(8)));
	uint32_t id; /* of the record in its process */
	uint32_t n_bytes; /* of the strings in this part */
	uint32_t flags;
	uint32_t unused;
	int32_t args[RING_N_ARGS];
};

#define RING_MORE 1u

#endif /* ETRACE_PRELOAD_RING_H */
