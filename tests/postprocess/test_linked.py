# SPDX-License-Identifier: Apache-2.0
"""Linked modules of real linkers and archivers, each way to call them, captured once."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from posixpath import basename
from typing import Literal

import pytest
from backends import need_tool
from builders import O_RDWR, TraceBuilder
from databases import capture_database, database_of
from libetrace.depend.configuration import Config, load
from libetrace.image.file import Image
from postprocess.link_cases import CASES, PREPARE, SOURCES, Case

from etrace.nfsdb.products import StringTable
from etrace.postprocess.linked import PHASE, Module, find_modules
from etrace.postprocess.module_kinds import ElfType, Kind, read_elf_type
from etrace.postprocess.outputs import Outputs
from etrace.postprocess.run import Work, say_nothing


@dataclass(frozen=True, slots=True)
class Found:
    """One module: its path below the folder of all cases, its kind and whose execution made it."""

    path: str
    kind: Kind
    program: str


def prepare(folder: Path) -> None:
    """Write the sources and compile them, once."""
    folder.mkdir()
    for name, text in SOURCES.items():
        (folder / name).write_text(text)
    subprocess.run(["sh", "-ec", PREPARE], cwd=folder, check=True)


def status_of(work: Path, case: Case) -> Path:
    """Return the file with the status of a case's script."""
    return work.with_name(f"{case.name}.status")


def script_of(work: Path, prepared: Path) -> str:
    """Return a script that runs all cases; one that fails, as without a tool, ends alone."""
    lines = []
    for case in CASES:
        shutil.copytree(prepared, work / case.name)
        place, status = (
            shlex.quote(str(path)) for path in (work / case.name, status_of(work, case))
        )
        lines.append(f"( set -e; cd {place}\n{case.script}\n)\necho $? > {status}")
    return "\n".join(lines)


def modules(image: Image) -> list[Module]:
    """Run the phase."""
    return find_modules(Work(image, StringTable(image), load(Path()), 1, say_nothing))


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of all cases, before anything is linked in it."""
    folder = Path(os.path.realpath(tmp_path_factory.mktemp("links"))) / "work"
    folder.mkdir()
    prepare(folder.with_name("prepared"))
    return folder


@pytest.fixture(scope="module")
def built(work: Path) -> Image:
    """Return the database of all cases."""
    script = work.with_name("script")
    script.write_text(script_of(work, work.with_name("prepared")))
    return capture_database(work.parent, ["sh", script], work)


@pytest.fixture(scope="module")
def found(work: Path, built: Image) -> list[Found]:
    """Return all modules that were found in the cases."""
    binary = built["executions"]["binary"]

    def say(module: Module) -> Found:
        path = os.fsdecode(built.path_string(module.path))
        program = os.fsdecode(basename(built.path_string(binary[module.execution])))
        return Found(str(Path(path).relative_to(work)), Kind(module.kind), program)

    return [say(module) for module in modules(built)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_way_to_link_is_understood(work: Path, found: list[Found], case: Case) -> None:
    for tool, package in case.tools:
        need_tool(tool, package)
    assert status_of(work, case).read_text() == "0\n"
    own = [each for each in found if each.path.startswith(f"{case.name}/")]
    assert sorted((each.path.partition("/")[2], each.kind, each.program) for each in own) == sorted(
        case.modules
    )


def test_readelf_and_ar_say_the_same_of_every_module(work: Path, found: list[Found]) -> None:
    types = {Kind.EXECUTABLE: ("EXEC", "DYN"), Kind.SHARED: ("DYN",), Kind.PARTIAL: ("REL",)}
    for each in found:
        path = work / each.path
        if each.kind is Kind.ARCHIVE:
            subprocess.run(["ar", "t", path], check=True, stdout=subprocess.DEVNULL)
            continue
        header = subprocess.run(["readelf", "-h", path], check=True, capture_output=True, text=True)
        (line,) = [line for line in header.stdout.splitlines() if "Type:" in line]
        assert line.split()[1] in types[each.kind], each
        segments = subprocess.run(
            ["readelf", "-ld", path], check=True, capture_output=True, text=True
        ).stdout
        starts = "INTERP" in segments or "PIE" in segments or line.split()[1] == "EXEC"
        assert starts is (each.kind is Kind.EXECUTABLE), each


def test_every_module_was_opened_for_writing_by_its_execution_or_a_fork_of_it(built: Image) -> None:
    outputs = Outputs(built)
    for module in modules(built):
        assert module.path in {each.path for each in outputs.of_family(module.execution)}


def test_without_the_files_the_options_say_what_was_made(
    work: Path, found: list[Found], built: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("etrace.postprocess.linked.read_elf_type", lambda path: 0)
    assert [Kind(module.kind) for module in modules(built)] == [each.kind for each in found]


@pytest.mark.parametrize(("data", "order"), [(1, "little"), (2, "big")])
def test_a_file_is_read_in_its_own_byte_order(
    tmp_path: Path, data: int, order: Literal["little", "big"]
) -> None:
    path = tmp_path / "program"
    path.write_bytes(bytes((*b"\x7fELF", 2, data, *bytes(10), *(2).to_bytes(2, order))))
    assert read_elf_type(bytes(path)) == ElfType.EXECUTABLE


# ---- what real tools seldom do ----

LINKER = 100


def found_by(
    tmp_path: Path,
    binary: str,
    argv: Sequence[str],
    written: Sequence[str],
    *,
    status: int = 0,
    config: Config | None = None,
) -> list[tuple[str, int, Kind]]:
    """Run one command that writes these files: path, type and kind of what was found."""
    t = TraceBuilder(cwd="/src").exec(LINKER, binary, list(argv))
    for path in written:
        t.use(LINKER, path, flags=O_RDWR)
    folder = tmp_path / str(sum(1 for _ in tmp_path.iterdir()))
    folder.mkdir()
    image = database_of(folder, t.exit(LINKER, status).trace())
    work = Work(image, StringTable(image), config or load(Path()), 1, say_nothing)
    return [
        (os.fsdecode(image.path_string(each.path)), each.type, Kind(each.kind))
        for each in find_modules(work)
    ]


@pytest.mark.parametrize(
    "binary",
    [
        "/usr/bin/arm-none-eabi-ld", "/opt/llvm/bin/ld.lld-19", "/usr/local/bin/wild",
        "/usr/bin/powerpc64le-linux-gnu-ld.gold", "/opt/x/ld64", "/usr/bin/wasm-ld-16",
        "/opt/my-target-ld", "/usr/lib/go-1.19/pkg/tool/linux_amd64/link",
    ],
)  # fmt: skip
def test_linkers_are_known_under_many_names(tmp_path: Path, binary: str) -> None:
    found = found_by(tmp_path, binary, [binary, "-o", "out"], ["/src/out"])
    assert found == [("/src/out", 1, Kind.EXECUTABLE)]


@pytest.mark.parametrize(
    "binary", ["/usr/bin/ldd", "/usr/bin/ld.so", "/lib64/ld-linux-x86-64.so.2", "/usr/bin/build"]
)
def test_other_programs_are_no_linkers(tmp_path: Path, binary: str) -> None:
    assert found_by(tmp_path, binary, [binary, "-o", "out"], ["/src/out"]) == []


def test_the_configuration_adds_linkers_and_archivers(tmp_path: Path) -> None:
    (tmp_path / ".bas_config").write_text('{"ld_spec": ["*/mylink"], "ar_spec": ["/opt/pack?"]}')
    config = load(tmp_path)
    out = ["/src/out"]
    assert found_by(tmp_path, "/x/mylink", ["mylink", "-r", "-oout"], out, config=config) == [
        ("/src/out", 1, Kind.PARTIAL)
    ]
    assert found_by(tmp_path, "/opt/pack1", ["pack1", "rc", "out", "a.o"], out, config=config) == [
        ("/src/out", 0, Kind.ARCHIVE)
    ]
    assert (
        found_by(tmp_path, "/opt/pack12", ["pack12", "rc", "out", "a.o"], out, config=config) == []
    )


def test_a_link_that_failed_made_nothing_though_it_wrote(tmp_path: Path) -> None:
    assert found_by(tmp_path, "/usr/bin/ld", ["ld", "-o", "out"], ["/src/out"], status=1) == []


def test_what_was_named_and_not_written_was_not_made(tmp_path: Path) -> None:
    assert found_by(tmp_path, "/usr/bin/ld", ["ld", "-o", "out"], ["/src/out.map"]) == []


def test_a_linker_without_an_exit_counts(tmp_path: Path) -> None:
    t = TraceBuilder(cwd="/src").exec(LINKER, "/usr/bin/ld", ["ld", "-o", "out"])
    image = database_of(tmp_path, t.use(LINKER, "/src/out", flags=O_RDWR).trace())
    assert [image.path_string(each.path) for each in modules(image)] == [b"/src/out"]


def test_the_file_of_that_name_counts_when_a_link_hides_the_folder(tmp_path: Path) -> None:
    found = found_by(
        tmp_path, "/usr/bin/ld", ["ld", "-o", "link/out"], ["/data/out", "/data/x.map"]
    )
    assert found == [("/data/out", 1, Kind.EXECUTABLE)]


def test_threads_of_a_linker_write_for_it(tmp_path: Path) -> None:
    t = TraceBuilder(cwd="/src").exec(LINKER, "/usr/bin/mold", ["mold", "-o", "out"])
    t.thread(LINKER, 101).thread(101, 102).use(102, "/src/out", flags=O_RDWR)
    image = database_of(tmp_path, t.exit(102).exit(101).exit(LINKER).trace())
    (module,) = modules(image)
    assert image["executions"]["upid"][module.execution] == LINKER
    assert image.path_string(module.path) == b"/src/out"


def test_an_image_without_a_linker_has_no_modules(tmp_path: Path) -> None:
    image = database_of(tmp_path, TraceBuilder().exec(1, "/bin/true").exit(1).trace())
    (table,) = PHASE.run(Work(image, StringTable(image), load(Path()), 1, say_nothing))
    assert (table.name, table.n_rows) == ("linked", 0)
    assert PHASE.describe([table]) == "0 links of 0 modules, archives: 0"
