/* SPDX-License-Identifier: Apache-2.0 */
/* Rendered from etrace/compilers by `make generate`: do not edit. Programs that read `@FILE`. */
#ifndef ETRACE_TOOL_NAMES_H
#define ETRACE_TOOL_NAMES_H

/* Sorted as bytes. No pointers: the preload library would have each relocated in every program. */
static const char tool_names[][20] = {
	"ar", "armar", "armcc", "armclang", "armlink", "as", "buildcache", "c++", "c89", "c99",
	"cc", "cc1", "cc1obj", "cc1objplus", "cc1plus", "ccache", "cl", "clang", "clang++",
	"clang-cl", "clippy-driver", "collect-ld", "d21", "distcc", "dpcpp", "emar", "f77",
	"f95", "f951", "flang", "flang-new", "g++", "g77", "gcc", "gcc-ar", "gccgo", "gdc",
	"gfortran", "gnat1", "gnatgcc", "go1", "gold", "iarchive", "icc", "icc430", "icc8051",
	"iccarm", "iccavr", "iccavr32", "iccrh850", "iccriscv", "iccrl78", "iccrx", "iccstm8",
	"iccv850", "icecc", "icerun", "icpc", "icpx", "icx", "ifort", "ifx", "ilinkarm",
	"ilinkavr", "ilinkrh850", "ilinkriscv", "ilinkrl78", "ilinkrx", "ilinkstm8", "javac",
	"ld", "ld-classic", "ld-new", "ld-prime", "ld.bfd", "ld.eld", "ld.gold", "ld.lld",
	"ld.mold", "ld.qcld", "ld.wild", "ld64", "ld64.lld", "ld64.mold", "lld", "lld-link",
	"llvm-ar", "llvm-lib", "llvm-libtool-darwin", "lto1", "mold", "musl-gcc", "nasm",
	"nvcc", "pump", "real-ld", "rust-lld", "rust-wasm-ld", "rustc", "sccache", "sold",
	"swift-frontend", "swiftc", "tcc", "vsyasm", "wasm-ld", "wild", "xg++", "xgcc", "yasm",
	"zig",
};

#define N_TOOL_NAMES (sizeof(tool_names) / sizeof(*tool_names))

#endif /* ETRACE_TOOL_NAMES_H */
