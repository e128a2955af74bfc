# SPDX-License-Identifier: Apache-2.0
"""Translate Cython modules to C, many in one process, and only those whose sources changed.

Starting the compiler costs as much as translating two modules, so Meson calls this once for a
folder. A module is translated again when the content of its source, of a file that it cimports,
the options or Cython changed. C that comes out the same keeps its time, so that Ninja compiles
nothing.
"""

import argparse
import hashlib
import multiprocessing
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import Cython
from Cython.Build.Dependencies import create_dependency_tree
from Cython.Compiler import Options, Pipeline  # Pipeline: loaded before the workers are forked
from Cython.Compiler.Errors import CompileError
from Cython.Compiler.Main import CompilationOptions, Context
from Cython.Compiler.Main import compile as compile_module

assert Pipeline

#: what every module is translated with: nothing here is pickled, and the C is not for reading
DIRECTIVES = ["auto_pickle=False", "emit_code_comments=False"]


@dataclass(frozen=True, slots=True)
class Module:
    """A source and the C that is made of it; `key` changes when it has to be made again."""

    name: str
    source: Path
    output: Path
    key: str

    @property
    def stamp(self) -> Path:
        """Where the key of the C that is there is kept."""
        return self.output.with_suffix(".stamp")

    def is_current(self) -> bool:
        """Whether the C that is there was made with this key."""
        return (
            self.output.is_file()
            and self.stamp.is_file()
            and self.stamp.read_text("ascii") == self.key
        )


def main() -> int:
    """Translate what is stale; 1 when a module has errors."""
    arguments = parse_arguments()
    Options.warning_errors = arguments.werror
    modules = list(find_modules(arguments))
    write_depfile(arguments.depfile, modules, arguments.root)
    stale = [module for module in modules if not module.is_current()]
    return 0 if translate_all(stale, arguments) else 1


def parse_arguments() -> argparse.Namespace:
    """Read the command line; paths become absolute, as Cython names them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=absolute, required=True, help="the folder of the package")
    parser.add_argument("--output", type=Path, required=True, help="the folder of the C files")
    parser.add_argument("--depfile", type=Path, required=True)
    parser.add_argument("--werror", action="store_true", help="a warning is an error")
    parser.add_argument("--shared", help="the module that holds what Cython's modules share")
    parser.add_argument(
        "-X", dest="directives", action="append", default=DIRECTIVES, metavar="NAME=VALUE"
    )
    parser.add_argument("sources", type=absolute, nargs="+")
    return parser.parse_args()


def absolute(text: str) -> Path:
    """Return a path that compares with another one."""
    return Path(text).resolve()


def find_modules(arguments: argparse.Namespace) -> Iterator[Module]:
    """Yield the module of each source, with the key of all that its C is made of."""
    options = options_of(arguments, arguments.output)
    script = Path(__file__).read_text("utf-8")
    tool = [Cython.__version__, script, arguments.shared, arguments.werror]
    tree = create_dependency_tree(Context.from_options(options), quiet=True)
    for source in arguments.sources:
        name = ".".join(source.relative_to(arguments.root).with_suffix("").parts)
        read = [digest(Path(path)) for path in sorted(tree.all_dependencies(str(source)))]
        key = hashlib.sha256(repr([tool, arguments.directives, read]).encode()).hexdigest()
        yield Module(name, source, arguments.output / f"{name}.c", key)


@cache
def digest(path: Path) -> str:
    """Return a file's content in short; the same declarations are read by most modules."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_depfile(depfile: Path, modules: list[Module], root: Path) -> None:
    """Name every declaration file: which module reads which is found out again at each run."""
    read = [str(path).replace(" ", "\\ ") for path in sorted(root.rglob("*.pxd"))]
    depfile.write_text(f"{modules[0].output}: {' '.join([*read, __file__])}\n", "utf-8")


def options_of(arguments: argparse.Namespace, output: Path) -> CompilationOptions:
    """Return Cython's options for the C file `output`."""
    return CompilationOptions(
        Options.default_options,
        include_path=[str(arguments.root)],
        language_level=3,
        output_file=str(output),
        compiler_directives=Options.parse_directive_list(",".join(arguments.directives)),
        shared_utility_qualified_name=arguments.shared,
    )


def translate_all(modules: list[Module], arguments: argparse.Namespace) -> bool:
    """Translate on every processor that this process may use; False when a module has errors."""
    workers = min(len(modules), len(os.sched_getaffinity(0)))
    if workers < 2:
        return all(list(map(translate, modules, [arguments] * len(modules))))
    # forked, not spawned: the compiler is loaded once
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        return all(list(pool.map(translate, modules, [arguments] * len(modules))))


def translate(module: Module, arguments: argparse.Namespace) -> bool:
    """Replace the C of a module whole, and only when it differs."""
    fresh = module.output.with_suffix(".new.c")
    # a context of its own for each: Cython cannot yet translate two modules in one
    try:
        result = compile_module(str(module.source), options_of(arguments, fresh), module.name)
    except CompileError:
        return False  # Cython has said where
    if result.num_errors:
        fresh.unlink(missing_ok=True)
        return False
    if module.output.is_file() and module.output.read_bytes() == fresh.read_bytes():
        fresh.unlink()
    else:
        fresh.replace(module.output)
    module.stamp.write_text(module.key, "ascii")
    return True


if __name__ == "__main__":
    sys.exit(main())
