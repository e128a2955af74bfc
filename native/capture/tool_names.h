/* SPDX-License-Identifier: Apache-2.0 */
/* Rendered from etrace/compilers by `make generate`: do not edit. Programs that read response files. */
#ifndef ETRACE_TOOL_NAMES_H
#define ETRACE_TOOL_NAMES_H

/* No pointers: the preload library would have each relocated in every program. */

enum quoting {
	QUOTING_GNU,
	QUOTING_WINDOWS,
	QUOTING_OTHER, /* of files that name no others */
};

/* responses.toml */
struct response_form {
	unsigned char quoting;
	unsigned char is_unicode;
	unsigned char is_nested;
	unsigned char is_doubled;
};

static const struct response_form response_forms[] = {
	{ QUOTING_GNU, 0, 1, 0 }, /* gnu */
	{ QUOTING_GNU, 1, 1, 0 }, /* llvm */
	{ QUOTING_WINDOWS, 1, 1, 0 }, /* llvm-windows */
	{ QUOTING_WINDOWS, 1, 0, 0 }, /* msvc */
	{ QUOTING_OTHER, 0, 0, 1 }, /* java */
	{ QUOTING_OTHER, 0, 0, 0 }, /* rust */
	{ QUOTING_OTHER, 0, 1, 0 }, /* go */
	{ QUOTING_GNU, 0, 1, 0 }, /* swift */
	{ QUOTING_GNU, 0, 1, 0 }, /* arm */
	{ QUOTING_WINDOWS, 0, 1, 0 }, /* arm-windows */
	{ QUOTING_WINDOWS, 0, 1, 0 }, /* iar */
	{ QUOTING_GNU, 0, 1, 0 }, /* nvcc */
	{ QUOTING_GNU, 0, 1, 0 }, /* intel */
	{ QUOTING_WINDOWS, 0, 1, 0 }, /* intel-windows */
};

/* Options that choose another form. */
struct form_choice {
	char option[22];
	unsigned char from;
	unsigned char to;
};

static const struct form_choice form_choices[] = {
	{ "--rsp-quoting=windows", 1, 2 },
	{ "--rsp-quoting=posix", 1, 1 },
	{ "--driver-mode=cl", 1, 2 },
	{ "--rsp-quoting=windows", 2, 2 },
	{ "--rsp-quoting=posix", 2, 1 },
};

/* Options that name a file beside `@`, by group; with the name in the next word or after them. */
struct response_option {
	char text[16];
	unsigned char group;
	unsigned char is_joined;
};

static const struct response_option response_options[] = {
	{ "--via", 1, 0 },
	{ "--via=", 1, 1 },
	{ "--options-file", 2, 0 },
	{ "--options-file=", 2, 1 },
	{ "-optf", 2, 0 },
	{ "-optf=", 2, 1 },
	{ "-@", 3, 0 },
	{ "-f", 4, 0 },
	{ "--f", 4, 0 },
};

/* Sorted as bytes; their forms and groups of options, 0 for none. */
struct tool_name {
	char name[25];
	unsigned char form;
	unsigned char group;
};

static const struct tool_name tool_names[] = {
	{ "ar", 0, 0 },
	{ "armar", 8, 1 },
	{ "armcc", 8, 1 },
	{ "armclang", 1, 0 },
	{ "armlink", 8, 1 },
	{ "as", 0, 0 },
	{ "buildcache", 0, 0 },
	{ "c++", 0, 0 },
	{ "c89", 0, 0 },
	{ "c99", 0, 0 },
	{ "cachepot", 0, 0 },
	{ "cc", 0, 0 },
	{ "cc1", 0, 0 },
	{ "cc1obj", 0, 0 },
	{ "cc1objplus", 0, 0 },
	{ "cc1plus", 0, 0 },
	{ "ccache", 0, 0 },
	{ "cl", 3, 0 },
	{ "clang", 1, 0 },
	{ "clang++", 1, 0 },
	{ "clang-cl", 2, 0 },
	{ "clcache", 0, 0 },
	{ "clippy-driver", 5, 0 },
	{ "collect-ld", 0, 0 },
	{ "com.sun.tools.javac.Main", 4, 0 },
	{ "d21", 0, 0 },
	{ "distcc", 0, 0 },
	{ "dpcpp", 1, 0 },
	{ "emar", 0, 0 },
	{ "f77", 0, 0 },
	{ "f95", 0, 0 },
	{ "f951", 0, 0 },
	{ "flang", 1, 0 },
	{ "flang-new", 1, 0 },
	{ "g++", 0, 0 },
	{ "g77", 0, 0 },
	{ "gcc", 0, 0 },
	{ "gcc-ar", 0, 0 },
	{ "gccgo", 0, 0 },
	{ "gdc", 0, 0 },
	{ "gfortran", 0, 0 },
	{ "gnat1", 0, 0 },
	{ "gnatgcc", 0, 0 },
	{ "go1", 0, 0 },
	{ "gold", 0, 0 },
	{ "gomacc", 0, 0 },
	{ "iarchive", 10, 4 },
	{ "icc", 12, 0 },
	{ "icc430", 10, 4 },
	{ "icc8051", 10, 4 },
	{ "iccarm", 10, 4 },
	{ "iccavr", 10, 4 },
	{ "iccavr32", 10, 4 },
	{ "iccrh850", 10, 4 },
	{ "iccriscv", 10, 4 },
	{ "iccrl78", 10, 4 },
	{ "iccrx", 10, 4 },
	{ "iccstm8", 10, 4 },
	{ "iccv850", 10, 4 },
	{ "icecc", 0, 0 },
	{ "icerun", 0, 0 },
	{ "icpc", 12, 0 },
	{ "icpx", 1, 0 },
	{ "icx", 1, 0 },
	{ "ifort", 12, 0 },
	{ "ifx", 1, 0 },
	{ "ilinkarm", 10, 4 },
	{ "ilinkavr", 10, 4 },
	{ "ilinkrh850", 10, 4 },
	{ "ilinkriscv", 10, 4 },
	{ "ilinkrl78", 10, 4 },
	{ "ilinkrx", 10, 4 },
	{ "ilinkstm8", 10, 4 },
	{ "javac", 4, 0 },
	{ "ld", 0, 0 },
	{ "ld-classic", 0, 0 },
	{ "ld-new", 0, 0 },
	{ "ld-prime", 0, 0 },
	{ "ld.bfd", 0, 0 },
	{ "ld.eld", 1, 0 },
	{ "ld.gold", 0, 0 },
	{ "ld.lld", 1, 0 },
	{ "ld.mold", 0, 0 },
	{ "ld.qcld", 1, 0 },
	{ "ld.wild", 0, 0 },
	{ "ld64", 0, 0 },
	{ "ld64.lld", 1, 0 },
	{ "ld64.mold", 0, 0 },
	{ "lld", 1, 0 },
	{ "lld-link", 2, 0 },
	{ "llvm-ar", 1, 0 },
	{ "llvm-lib", 2, 0 },
	{ "llvm-libtool-darwin", 1, 0 },
	{ "lto1", 0, 0 },
	{ "mold", 0, 0 },
	{ "musl-gcc", 0, 0 },
	{ "nasm", 0, 3 },
	{ "nvcc", 11, 2 },
	{ "pump", 0, 0 },
	{ "real-ld", 0, 0 },
	{ "recc", 0, 0 },
	{ "rewrapper", 0, 0 },
	{ "rust-lld", 1, 0 },
	{ "rust-wasm-ld", 1, 0 },
	{ "rustc", 5, 0 },
	{ "sccache", 0, 0 },
	{ "sold", 0, 0 },
	{ "swift-frontend", 7, 0 },
	{ "swiftc", 7, 0 },
	{ "tcc", 0, 0 },
	{ "vsyasm", 0, 3 },
	{ "wasm-ld", 1, 0 },
	{ "wild", 0, 0 },
	{ "xg++", 0, 0 },
	{ "xgcc", 0, 0 },
	{ "yasm", 0, 3 },
	{ "zig", 1, 0 },
};

/* Programs that run another one in their own process: patterns of their names, and options with a value. */
struct runner {
	char name[17];
	unsigned char group;
	unsigned char reads_files; /* itself, before it knows the program, */
	unsigned char form;	   /* in this form */
};

static const struct runner runners[] = {
	{ "ld-linux*.so*", 47, 0, 0 },
	{ "ld-musl-*.so*", 47, 0, 0 },
	{ "ld64.so*", 47, 0, 0 },
	{ "ld.so", 47, 0, 0 },
	{ "ld.so.*", 47, 0, 0 },
	{ "ld-2.*.so", 47, 0, 0 },
	{ "ld-uClibc*.so*", 47, 0, 0 },
	{ "libc.musl-*.so*", 47, 0, 0 },
	{ "qemu-*", 48, 0, 0 },
	{ "*-binfmt-P", 49, 0, 0 },
	{ "box64", 50, 0, 0 },
	{ "box86", 50, 0, 0 },
	{ "FEXInterpreter", 50, 0, 0 },
	{ "FEX", 50, 0, 0 },
	{ "FEXLoader", 50, 0, 0 },
	{ "blink", 50, 0, 0 },
	{ "wine", 50, 0, 0 },
	{ "wine64", 50, 0, 0 },
	{ "wine-stable", 50, 0, 0 },
	{ "wine64-preloader", 50, 0, 0 },
	{ "wine-preloader", 50, 0, 0 },
	{ "wibo", 50, 0, 0 },
	{ "valgrind", 51, 0, 0 },
	{ "valgrind.bin", 51, 0, 0 },
	{ "busybox", 52, 0, 0 },
	{ "busybox.static", 52, 0, 0 },
	{ "toybox", 52, 0, 0 },
	{ "llvm", 52, 0, 0 },
	{ "java", 53, 1, 4 },
};

struct runner_option {
	char text[23];
	unsigned char group;
};

static const struct runner_option runner_options[] = {
	{ "--argv0", 47 },
	{ "--library-path", 47 },
	{ "--preload", 47 },
	{ "--audit", 47 },
	{ "--inhibit-rpath", 47 },
	{ "--glibc-hwcaps-prepend", 47 },
	{ "--glibc-hwcaps-mask", 47 },
	{ "-0", 48 },
	{ "--argv0", 48 },
	{ "-g", 48 },
	{ "-L", 48 },
	{ "-s", 48 },
	{ "-cpu", 48 },
	{ "-E", 48 },
	{ "-U", 48 },
	{ "-r", 48 },
	{ "-B", 48 },
	{ "-R", 48 },
	{ "-d", 48 },
	{ "-dfilter", 48 },
	{ "-D", 48 },
	{ "-p", 48 },
	{ "-seed", 48 },
	{ "-trace", 48 },
	{ "-plugin", 48 },
	{ "-accel", 48 },
	{ "-jitdump", 48 },
	{ "--cpu", 48 },
	{ "-cp", 53 },
	{ "-classpath", 53 },
	{ "--class-path", 53 },
	{ "-p", 53 },
	{ "--module-path", 53 },
	{ "--upgrade-module-path", 53 },
	{ "--add-modules", 53 },
	{ "--limit-modules", 53 },
	{ "--add-exports", 53 },
	{ "--add-opens", 53 },
	{ "--add-reads", 53 },
	{ "--patch-module", 53 },
	{ "--enable-native-access", 53 },
	{ "--source", 53 },
	{ "-d", 53 },
	{ "--describe-module", 53 },
};

#define N_OF(array) (sizeof(array) / sizeof(*(array)))

#endif /* ETRACE_TOOL_NAMES_H */
