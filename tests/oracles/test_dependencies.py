# SPDX-License-Identifier: Apache-2.0
"""Dependencies of real builds against what the tools themselves say.

Oracles: the compilers' depfiles (`-MD`), the compilation units that DWARF names, `ar t`,
`readelf -d` and `ldd`.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

import pytest
from package_builds import Built, Depfile, output_of

pytestmark = pytest.mark.slow

#: what compilers, linkers and archivers read beyond their inputs: (expression for a path, why)
TOOLCHAIN = (
    (
        r"(/usr)?/lib(64|32|exec)?/.*\.so(\.[\d.]+)?",
        "a library or plugin of a tool, or linked against",
    ),
    (
        r"/usr/lib(exec)?/gcc/.*/(cc1|cc1plus|collect2|lto1|lto-wrapper|specs)",
        "a part of the compiler",
    ),
    (r"/usr/lib/.*\.(o|a)", "start files and static libraries"),
    (r"/etc/ld\.so\.(cache|preload)", "where the loader looks"),
    (r"/usr/(lib|share)/locale/.*|/etc/locale\.alias|/usr/.*/gconv/.*", "the language of messages"),
    (r"/tmp/cc\w{6}\.(s|o|res|ltrans.*|cdtor\.[co]|le|ld)", "a temporary file of the driver"),
    (r"<tree>/(.*/)?st\w{6}", "a temporary file of the archiver"),
    (r"/usr/lib/(.*/)?bfd-plugins", "a directory that the archiver looks through"),
    (r"/usr/share/zoneinfo/.*", "the time zone"),
    (r"/proc/.*", "what a tool asks the kernel"),
    (r"/dev/null", "an empty input"),
)
UNIT = re.compile(r"DW_AT_(name|comp_dir)\s*:(?:\s*\([^)]*\):?)*\s*(.*)")


@lru_cache
def sources_of(module: Path) -> set[Path]:
    """Return the translation units of a file, as its debugging information names them."""
    names: dict[str, str] = {}
    found = set()
    text = output_of("readelf", "-W", "--debug-dump=info", "--dwarf-depth=1", module)
    for line in text.split("\n"):
        if "DW_TAG_compile_unit" in line:
            names = {}
        elif match := UNIT.search(line):
            names[match[1]] = match[2].strip()
            if len(names) == 2:
                found.add(Path(names["comp_dir"], names["name"]).resolve())
    return found


def of_module(built: Built, module: Path) -> list[Depfile]:
    """Return the depfiles of all that was compiled into a module."""
    sources = sources_of(module)
    return [depfile for depfile in built.depfiles if depfile.source in sources]


def compiled_into(built: Built, module: Path) -> set[str]:
    """Return a module, the objects that were compiled into it, and what their depfiles name."""
    files = {str(module)}
    for depfile in of_module(built, module):
        files |= {str(depfile.object), *depfile.files}
    return files


def of_generators(built: Built, found: set[str]) -> set[str]:
    """Return what the programs among some files, made and run by the build, were compiled from."""
    made = built.programs & found & {str(module) for module in built.modules}
    return set().union(*(compiled_into(built, Path(program)) for program in made))


def unexplained(built: Built, found: set[str], named: set[str]) -> list[str]:
    """Return what is neither named, nor of a generator that was run, nor of a known class."""
    extra = found - named
    extra -= of_generators(built, extra)
    known = (*TOOLCHAIN, *built.package.generated)
    text = "|".join(f"(?:{expression})" for expression, _ in known)
    classes = re.compile(text.replace("<tree>", re.escape(str(built.tree))))
    return sorted(path for path in extra if not classes.fullmatch(path))


def test_every_object_depends_on_what_its_depfile_names(built: Built) -> None:
    missing = {
        depfile.target: sorted(depfile.files - built.deps(depfile.object))
        for depfile in built.depfiles
    }
    assert {target: files for target, files in missing.items() if files} == {}


def test_what_an_object_has_beyond_its_depfile_is_explained(built: Built) -> None:
    files: dict[Path, set[str]] = {}
    for depfile in built.depfiles:
        files.setdefault(depfile.object, set()).update(depfile.files)
    for path in filter(
        Path.is_file, files.keys() & built.modules.keys()
    ):  # compiled and linked at once
        files[path] |= compiled_into(built, path)
    found = {path: unexplained(built, built.deps(path), named) for path, named in files.items()}
    assert {str(path): extra for path, extra in found.items() if extra} == {}


def test_every_module_depends_on_all_that_was_compiled_into_it(built: Built) -> None:
    for module in built.named_modules:
        depfiles = of_module(built, module)
        named = set().union(*(depfile.files for depfile in depfiles))
        assert (module, len(depfiles)) > (module, 0)
        assert (module, sorted(named - built.deps(module))) == (module, [])


def test_what_a_module_has_beyond_its_depfiles_is_explained(built: Built) -> None:
    named = set().union(*(depfile.files for depfile in built.depfiles))
    named |= {str(depfile.object) for depfile in built.depfiles}
    named |= {str(module) for module in built.modules}
    for module in built.named_modules:
        assert (module, unexplained(built, built.deps(module), named)) == (module, [])


def test_every_archive_was_made_of_its_members(built: Built) -> None:
    archives = [module for module in built.named_modules if module.suffix == ".a"]
    assert archives
    for archive in archives:
        members = output_of("ar", "t", archive).split()
        names = {Path(path).name for path in built.deps(archive, is_direct=True)}
        assert (archive, [name for name in members if name not in names]) == (archive, [])


def test_every_module_depends_on_the_libraries_that_it_needs(built: Built) -> None:
    for module in built.named_modules:
        if module.suffix == ".a":
            continue
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-dW", module))
        places = dict(re.findall(r"(\S+) => (\S+)", output_of("ldd", module)))
        files = {os.path.realpath(places[name]) for name in needed if name in places}
        assert (module, sorted(files - built.deps(module))) == (module, [])
        assert needed
