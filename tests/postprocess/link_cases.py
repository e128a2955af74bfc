# SPDX-License-Identifier: Apache-2.0
"""Ways to link and to archive, each in a folder of its own with a few objects, and what they make.

A case's script runs in `sh` in its folder, which holds SOURCES and what PREPARE makes of them. It
needs those of TOOLS that it names.
`modules` are the paths below the folder in order, each with its Kind and the name
of the program whose execution it belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass

from etrace.postprocess.module_kinds import Kind

#: a word of a script: the tool that it needs, which not every machine has, and its package
TOOLS = {
    "ld.gold": ("ld.gold", "binutils-gold"),
    "ld.lld": ("ld.lld", "lld"),
    "ld.lld-19": ("ld.lld-19", "lld-19"),
    "/usr/lib/llvm-19/bin/lld": ("/usr/lib/llvm-19/bin/lld", "lld-19"),
    "clang": ("clang", "clang"),
    "-fuse-ld=lld": ("ld.lld", "lld"),
    "llvm-ar": ("llvm-ar", "llvm"),
    "mold": ("mold", "mold"),
    "-fuse-ld=mold": ("ld.mold", "mold"),
    "tcc": ("tcc", "tcc"),
    "rustc": ("rustc", "rustc"),
    "aarch64-linux-gnu-gcc": ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
}
EXE, LIB, PART, AR = Kind.EXECUTABLE, Kind.SHARED, Kind.PARTIAL, Kind.ARCHIVE


@dataclass(frozen=True, slots=True)
class Case:
    """One way: its name is its folder's."""

    name: str
    script: str
    modules: tuple[tuple[str, Kind, str], ...]

    @property
    def tools(self) -> list[tuple[str, str]]:
        """Return the tools that not every machine has, each with its package."""
        return [TOOLS[word] for word in self.script.split() if word in TOOLS]


def made(name: str, script: str, *modules: tuple[str, Kind, str]) -> Case:
    """Write a case short."""
    return Case(name, script, modules)


SOURCES = {
    "main.c": "int part(void); int main(void) { return part(); }\n",
    "part.c": "int part(void) { return 0; }\n",
    "alone.c": "int main(void) { return 0; }\n",
    "alone.rs": "fn main() {}\n",
}
PREPARE = """
for c in main part; do gcc -c -O0 -fno-pic -ffreestanding $c.c; done
gcc -c -fPIC -o pic.o part.c
"""
LD = "ld -e main"

LINKS = (
    made("separate", f"{LD} -o out main.o part.o", ("out", EXE, "ld")),
    made("joined", f"{LD} -oout main.o part.o", ("out", EXE, "ld")),
    made("long", f"{LD} --output out main.o part.o", ("out", EXE, "ld")),
    made("long-joined", f"{LD} --output=out main.o part.o", ("out", EXE, "ld")),
    made("default", f"{LD} main.o part.o", ("a.out", EXE, "ld")),
    made("last-counts", f"{LD} -o one -o two main.o part.o", ("two", EXE, "ld")),
    made("value-that-looks-like-it", "ld -shared -soname -odd -o x.so pic.o", ("x.so", LIB, "ld")),
    made("partial", "ld -r -o both.o main.o part.o", ("both.o", PART, "ld")),
    made("shared", "ld -shared -o libx.so pic.o", ("libx.so", LIB, "ld")),
    made("pie", f"{LD} -pie -o out main.o pic.o", ("out", EXE, "ld")),
    made("failed-at-once", "ld -o out nothing.o || true"),
    made("failed-late", f"{LD} -o out main.o || true"),
    made("only-asked", "ld --version; ld -v; gcc -print-prog-name=ld"),
    made("null", f"{LD} -o /dev/null main.o part.o"),
    made("versioned-object", "cp part.o .tmp_x.o && ld -r -o x.o .tmp_x.o"),
    made("absolute", f'{LD} -o "$PWD/out" main.o part.o', ("out", EXE, "ld")),
    made("dots", f"mkdir a && {LD} -o a/../out main.o part.o", ("out", EXE, "ld")),
    made(
        "linked-folder",
        f"mkdir a && ln -s a b && {LD} -o b/out main.o part.o",
        ("a/out", EXE, "ld"),
    ),
    made(
        "linked-cwd",
        f"mkdir a && ln -s a b && cd b && {LD} -o out ../main.o ../part.o",
        ("a/out", EXE, "ld"),
    ),
    made("odd-name", f"{LD} -o 'o \"u\\t' main.o part.o", ('o "u\\t', EXE, "ld")),
    made("driver", "gcc -o prog main.o part.o", ("prog", EXE, "ld")),
    made("driver-default", "gcc main.o part.o", ("a.out", EXE, "ld")),
    made("driver-shared", "gcc -shared -o libx.so pic.o", ("libx.so", LIB, "ld")),
    made("driver-partial", "gcc -r -o both.o main.o part.o", ("both.o", PART, "ld")),
    made("driver-map", "gcc -Wl,-Map=prog.map -o prog main.o part.o", ("prog", EXE, "ld")),
    made("compile-and-link", "gcc -o prog main.c part.c", ("prog", EXE, "ld")),
    made("lto", "gcc -O1 -flto -o prog main.c part.c", ("prog", EXE, "ld")),
    made("cross", "aarch64-linux-gnu-gcc -o prog alone.c", ("prog", EXE, "ld")),
)
LINKERS = (
    made("gold", "ld.gold -e main -o out main.o part.o", ("out", EXE, "ld.gold")),
    made("bfd", "ld.bfd -e main -o out main.o part.o", ("out", EXE, "ld.bfd")),
    made(
        "full-name",
        "x86_64-linux-gnu-ld.bfd -e main -o out main.o part.o",
        ("out", EXE, "x86_64-linux-gnu-ld.bfd"),
    ),
    made("lld", "ld.lld -e main -o out main.o part.o", ("out", EXE, "ld.lld")),
    made("lld-version", "ld.lld-19 -e main -o out main.o part.o", ("out", EXE, "ld.lld-19")),
    made("lld-default", "ld.lld -e main main.o part.o", ("a.out", EXE, "ld.lld")),
    made(
        "lld-flavour",
        "/usr/lib/llvm-19/bin/lld -flavor gnu -e main -o out main.o part.o",
        ("out", EXE, "lld"),
    ),
    made("lld-driver", "clang -fuse-ld=lld -o prog main.o part.o", ("prog", EXE, "ld.lld")),
    made(
        "rust-lld",  # which is lld, wherever a rustc brings it
        "ln -s /usr/lib/llvm-19/bin/lld rust-lld"
        " && ./rust-lld -flavor gnu -e main -o out main.o part.o",
        ("out", EXE, "rust-lld"),
    ),
    made("rustc", "rustc -C link-arg=-fuse-ld=bfd -o prog alone.rs", ("prog", EXE, "ld.bfd")),
    made("mold", "mold -e main -o out main.o part.o", ("out", EXE, "mold")),
    made("mold-no-fork", "mold -no-fork -e main -o out main.o part.o", ("out", EXE, "mold")),
    made("mold-driver", "clang -fuse-ld=mold -o prog main.o part.o", ("prog", EXE, "ld.mold")),
    made("tcc", "tcc -o prog main.c part.c", ("prog", EXE, "tcc")),
    made("tcc-compiles", "tcc -c -o x.o part.c"),
    made(
        "argv0-alone",
        'cp "$(command -v ld.bfd)" tool'
        " && bash -c 'exec -a ld ./tool -e main -o out main.o part.o'",
        ("out", EXE, "tool"),
    ),
    made(
        "script-before-it",
        "mkdir bin && printf '#!/bin/sh\\nexec /usr/bin/ld \"$@\"\\n' > bin/ld && chmod +x bin/ld"
        " && gcc -Bbin -o prog main.o part.o",
        ("prog", EXE, "ld"),
    ),
)
RESPONSES = (
    made(
        "response",
        "mv part.o 'p a\"rt.o' && printf '%s' 'main.o \"p a\\\"rt.o\" -o '\"'my prog'\" > link.rsp"
        " && gcc @link.rsp",
        ("my prog", EXE, "ld"),
    ),
    made(
        "nested-response",
        f"echo '@in\\ ner.rsp main.o' > a.rsp; echo '-o out part.o' > 'in ner.rsp'; {LD} @a.rsp",
        ("out", EXE, "ld"),
    ),
    made(
        "gone-response",
        "echo 'main.o part.o -o prog' > link.rsp && gcc @link.rsp && rm link.rsp",
        ("prog", EXE, "ld"),
    ),
    made(
        "gone-archive-response",
        "echo 'rcs libx.a part.o' > ar.rsp && ar @ar.rsp && rm ar.rsp",
        ("libx.a", AR, "ar"),
    ),
    made(
        "gone-response-of-letters",
        "echo 'rcs' > ar.rsp && ar @ar.rsp libx.a part.o && rm ar.rsp",
        ("libx.a", AR, "ar"),
    ),
    made(
        "archive-response",
        "echo 'part.o \"main.o\"' > ar.rsp && ar rcs libx.a @ar.rsp",
        ("libx.a", AR, "ar"),
    ),
)
ARCHIVES = (
    made("archive", "ar rcs libx.a part.o", ("libx.a", AR, "ar")),
    made("dash", "ar -r -c -s libx.a part.o", ("libx.a", AR, "ar")),
    made(
        "any-extension",
        "ar cr built-in.o part.o; ar qc x.lib part.o",
        ("built-in.o", AR, "ar"),
        ("x.lib", AR, "ar"),
    ),
    made("no-extension", "ar rc archive part.o", ("archive", AR, "ar")),
    made("thin", "ar rcT libx.a part.o", ("libx.a", AR, "ar")),
    made("thin-long", "ar rcs --thin libx.a part.o", ("libx.a", AR, "ar")),
    made("gcc-ar", "gcc-ar rcs libx.a part.o", ("libx.a", AR, "ar")),
    made("llvm-ar", "llvm-ar rcs libx.a part.o", ("libx.a", AR, "llvm-ar")),
    made("llvm-ar-format", "llvm-ar --format=gnu rcs libx.a part.o", ("libx.a", AR, "llvm-ar")),
    made(
        "full-ar-name",
        "x86_64-linux-gnu-ar rcs libx.a part.o",
        ("libx.a", AR, "x86_64-linux-gnu-ar"),
    ),
    made(
        "every-mode",
        "ar rc a.a part.o main.o && ar t a.a && ar p a.a >/dev/null && ar x a.a main.o && ar s a.a"
        " && ranlib a.a && cp a.a b.a && cp a.a c.a && cp a.a d.a"
        " && ar d b.a main.o && ar m c.a main.o && ar rb part.o d.a pic.o",
        ("a.a", AR, "ar"),
        ("b.a", AR, "ar"),
        ("c.a", AR, "ar"),
        ("d.a", AR, "ar"),
    ),
    made(
        "script",
        "printf 'CREATE x.a\\nADDMOD part.o\\nSAVE\\nEND\\n' | ar -M",
        ("x.a", AR, "ar"),
    ),
    made(
        "script-of-two",
        "printf 'CREATE x.a\\nADDMOD part.o\\nSAVE\\nCREATE y.a\\nADDMOD main.o\\nSAVE\\nEND\\n'"
        " > mri && ar -M < mri",
        ("x.a", AR, "ar"),
        ("y.a", AR, "ar"),
    ),
    made(
        "llvm-script",
        "printf 'CREATE x.a\\nADDMOD part.o\\nSAVE\\nEND\\n' | llvm-ar -M",
        ("x.a", AR, "llvm-ar"),
    ),
    made("failed-archive", "ar rcs libx.a nothing.o || true"),
    made("renamed-archive", "ar rcs x.a.tmp part.o && mv x.a.tmp x.a", ("x.a", AR, "mv")),
    made("renamed-program", "gcc main.o part.o && mv a.out prog", ("prog", EXE, "mv")),
)
CASES = LINKS + LINKERS + RESPONSES + ARCHIVES
