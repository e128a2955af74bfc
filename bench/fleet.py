# SPDX-License-Identifier: Apache-2.0
"""Fleets of 100, 1,000 and 10,000 builds: size on disk, and the time of questions.

The builds are made of three real ones with changes: Lua's (tests/golden), Lua's ten times as one
build, and programs of this tree, traced here with hashes and usage. A build of a project differs
from the one before in its times (by 3 % noise, and a step that becomes slower), in what was edited
(contents, sizes and a new source) and in packages that were updated.

    python bench/fleet.py [--keep DIR] [--spark] [N]...
"""

from __future__ import annotations

import argparse
import datetime
import gc
import hashlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import samples

from etrace.fleet.dataset import Dataset, filling, open_dataset
from etrace.fleet.duck import Duck, literal
from etrace.fleet.keeping import compact
from etrace.fleet.parts import SINGLE, Part, key_of
from etrace.fleet.questions import question
from etrace.fleet.record import About, Record
from etrace.fleet.redaction import Redactor
from etrace.fleet.schema import TABLES, VERSION
from etrace.fleet.spark import Spark
from etrace.nfsdb.store import open_database

sys.path.insert(0, str(samples.TOP / "tests"))

from databases import write_processed_lua

Tables = dict[str, Any]
NUMBERS = (100, 1_000, 10_000)
#: builds of a project: a fleet grows by days
N_PROJECTS, A_DAY = 20, 5
BEGIN = datetime.datetime(2026, 1, 1, 8)
TEAMS = ("base", "media", "tools")
ROUNDS = 3
#: by share of the projects
KINDS = ("lua", "lua", "lua", "lua", "lua", "lua", "programs", "programs", "programs", "large")
QUESTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("time-by-label", ("team",)), ("time-by-program", ()), ("slowest-steps", ()),
    ("compilers", ()), ("products-with-file", ("src/lvm.h",)),
    ("products-with-compiler", ("gcc",)), ("products-with-package", ("libc6-dev",)),
    ("builds-with-file", ("/usr/include/stdio.h",)), ("builds-with-hash", ("0" * 64,)),
    ("files-like", ("%/lvm.h",)), ("slower-since", ("c00010",)),
)  # fmt: skip
#: what a question reads, by the engine alone
SCANS = {
    "products-with-file": "SELECT module, build, kind FROM closures WHERE path = 'src/lvm.h'",
    "builds-with-file": "SELECT build, execution FROM opens WHERE path = '/usr/include/stdio.h'",
    "time-by-program": "SELECT program, count(*), sum(elapsed_ns), sum(user_ns + system_ns), "
    "count(DISTINCT build) FROM executions GROUP BY 1",
}


def traced_programs(folder: Path) -> Path:
    """Trace the compilation of this tree's small programs, with hashes and usage."""
    script = f"""
    for f in {samples.TOP}/native/format/*.c; do
        gcc -O1 -c $f -I{samples.TOP}/native/format -I{samples.TOP}/kmod/include || true; done
    ar rcs libformat.a *.o
    for f in {samples.TOP}/bench/programs/*.c; do gcc -O1 $f -o $(basename $f .c) -lpthread || true
    done
    """
    folder.mkdir()
    run = ["etrace", "run", "-q", "--hash", "--backend", "ptrace", "--", "sh", "-c", script]
    for words in (run, ["cas", "parse", "-q"], ["cas", "pp", "-q"]):
        command = [str(samples.PROGRAMS / words[0]), *words[1:]]
        subprocess.run(command, cwd=folder, check=True, stderr=subprocess.DEVNULL)
    return folder


def tables_of(place: Path) -> Tables:
    """Return the rows of a real build."""
    image = open_database(place)
    own = About("?", "?", BEGIN)
    return {t.name: rows for t, rows in Record(image, own, Redactor(image))}


def real_builds(folder: Path) -> dict[str, Tables]:
    """Return the rows of the three real builds."""
    large = samples.database("fleet-large", 10)
    subprocess.run([samples.CAS, "pp", "-q", "--db", str(large)], check=True)
    return {
        "lua": tables_of(write_processed_lua(folder / "lua")),
        "programs": tables_of(traced_programs(folder / "programs")),
        "large": tables_of(large),
    }


# ---- changes


def _replaced(rows: Any, name: str, values: Any) -> Any:
    at = rows.schema.get_field_index(name)
    field = rows.schema.field(at)
    return rows.set_column(at, field, pa.chunked_array([values]).cast(field.type))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _files(rows: Any, draw: random.Random, commit: int, month: int) -> Any:
    """Edit some files since a commit, and update packages each month."""
    paths, kinds = rows["path"].to_pylist(), rows["kind"].to_pylist()
    hashes, sizes, packages = [], [], []
    for path, kind, size, package in zip(
        paths, kinds, rows["size_bytes"].to_pylist(), rows["package"].to_pylist(), strict=True
    ):
        own = kind in ("source", "header") and not path.startswith("/")
        edit = commit // (1 + len(path) % 17) if own else month if package else 0
        is_file = kind not in ("directory", "device", "temporary")
        hashes.append(_digest(f"{path} {edit}") if is_file else None)
        sizes.append(None if size is None else size + edit % 100)
        name, at, version = (package or "").partition("@")
        packages.append(f"{name}@{month}.{version}" if at else None)
    draw.random()
    rows = _replaced(rows, "sha256", pa.array(hashes, pa.string()))
    rows = _replaced(rows, "git_blob", pa.array([h and h[:40] for h in hashes], pa.string()))
    rows = _replaced(rows, "size_bytes", pa.array(sizes, pa.int64()))
    return _replaced(rows, "package", pa.array(packages, pa.string()))


def _executions(rows: Any, draw: random.Random, commit: int) -> Any:
    """Change the times of commands by chance, and those of one program since commit 10."""
    noise = [max(0.5, draw.gauss(1, 0.03)) for _ in range(rows.num_rows)]
    for at, step in enumerate(rows["step"].to_pylist()):
        if step == "cc1 lvm.c" and commit >= 10:
            noise[at] *= 1.4
    factor = pa.array(noise, pa.float64())
    for name in ("elapsed_ns", "user_ns", "system_ns", "rchar_bytes", "start_ns"):
        changed = pc.cast(pc.multiply(pc.cast(rows[name], pa.float64()), factor), pa.int64(), False)
        rows = _replaced(rows, name, changed.combine_chunks())
    return rows


def varied(base: Tables, number: int) -> tuple[Part, str, Tables]:
    """Return one build of a fleet."""
    draw = random.Random(number)
    project, sequence = number % N_PROJECTS, number // N_PROJECTS
    when = BEGIN + datetime.timedelta(days=sequence // A_DAY, minutes=37 * (sequence % A_DAY))
    build, commit = f"ci-{number:07d}", sequence // 2
    name = f"project-{project:02d}"
    labels = [("commit", f"c{commit:05d}"), ("team", TEAMS[project % len(TEAMS)]),
              ("runner", f"r{draw.randrange(40)}")]  # fmt: skip
    tables = {}
    for table in TABLES:
        rows = base[table]
        rows = _replaced(rows, "build", pa.repeat(build, rows.num_rows))
        if table == "files":
            rows = _files(rows, draw, commit, when.month)
        elif table == "executions":
            rows = _executions(rows, draw, commit)
        elif table == "builds":
            rows = _replaced(rows, "project", pa.array([name]))
            rows = _replaced(rows, "time", pa.array([when], pa.timestamp("us")))
            rows = _replaced(rows, "date", pa.array([when.date()]))
            rows = _replaced(rows, "labels", pa.array([labels], rows.schema.field("labels").type))
            elapsed = int(rows["elapsed_ns"][0].as_py() * max(0.5, draw.gauss(1, 0.05)))
            rows = _replaced(rows, "elapsed_ns", pa.array([elapsed]))
        tables[table] = rows
    key = key_of(build)
    return Part(VERSION, name, when.date().isoformat(), SINGLE + key), build, tables


def grow(dataset: Dataset, bases: dict[str, Tables], first: int, last: int) -> float:
    """Add builds; return the seconds that each took, its changes included."""
    begin = time.perf_counter()
    dataset.store.check(make=True)
    for number in range(first, last):
        base = bases[KINDS[number % N_PROJECTS % len(KINDS)]]
        part, build, tables = varied(base, number)
        named = [(TABLES[name], rows) for name, rows in tables.items()]
        fill = filling(partial(iter, named))
        dataset.store.publish(part, {key_of(build): build}, fill)
    return (time.perf_counter() - begin) / max(1, last - first)


# ---- figures


def sizes(place: Path) -> dict[str, int]:
    """Return the bytes of each table on disk."""
    found = dict.fromkeys(TABLES, 0)
    for path in place.rglob("*.parquet"):
        found[path.stem] += path.stat().st_size
    return found


def timed(call: Callable[[], Any]) -> tuple[float, int]:
    """Return the median of the seconds, and how many rows came."""
    took, n_rows = [], 0
    for _ in range(ROUNDS):
        gc.collect()
        begin = time.perf_counter()
        n_rows = sum(1 for _ in call())
        took.append(time.perf_counter() - begin)
    return statistics.median(took), n_rows


def scan(dataset: Dataset, statement: str) -> Iterator[Any]:
    """Run a statement by DuckDB alone, over all files of a table that match a pattern."""
    table = next(name for name in TABLES if f"FROM {name}" in statement)
    files = literal(f"{dataset.store.place}/v1/*/*/*/{table}.parquet")
    source = f"read_parquet({files}, hive_partitioning = false)"
    yield from (
        duckdb.connect().execute(statement.replace(f"FROM {table}", f"FROM {source}")).fetchall()
    )


def ask(dataset: Dataset, name: str, words: tuple[str, ...]) -> Iterator[Any]:
    """Answer a question by DuckDB."""
    own = question(name)
    yield from Duck(dataset).ask(own.for_duckdb, own.values(words), is_trusted=True).rows


def measure(dataset: Dataset) -> dict[str, tuple[float, int, float | None]]:
    """Return seconds, rows, and the seconds of the engine's own scan, by question."""
    found = {}
    for name, words in QUESTIONS:
        seconds, n_rows = timed(partial(ask, dataset, name, words))
        own = timed(partial(scan, dataset, SCANS[name]))[0] if name in SCANS else None
        found[name] = seconds, n_rows, own
        print(f"    {name:24} {seconds:7.2f} s  {n_rows:6} rows"
              + (f"  scan alone {own:.2f} s" if own is not None else ""), flush=True)  # fmt: skip
    return found


def report(dataset: Dataset, n: int) -> None:
    """Print the sizes of a fleet."""
    counts = {t: next(scan(dataset, f"SELECT count(*) FROM {t}"))[0] for t in TABLES}
    own = sizes(Path(dataset.store.place))
    total = sum(own.values())
    print(f"  {total / samples.MEGA:.1f} MB, {total / n / 1e3:.1f} kB a build, "
          f"{len(list(dataset.store.parts())):,} parts")  # fmt: skip
    for table in TABLES:
        print(
            f"    {table:14} {counts[table]:12,} rows {own[table] / max(1, counts[table]):8.1f} B"
        )
    print(f"    all tables: {total / counts['executions']:.0f} B an execution", flush=True)


def by_spark(dataset: Dataset) -> None:
    """Answer the questions by Spark on this machine."""
    with Spark(dataset) as spark:
        for name, words in QUESTIONS:
            own = question(name)
            begin = time.perf_counter()
            n_rows = sum(1 for _ in spark.ask(own.sql, own.values(words)).rows)
            print(f"    spark {name:24} {time.perf_counter() - begin:7.2f} s  {n_rows:6} rows",
                  flush=True)  # fmt: skip


def main(words: list[str] | None = None) -> None:
    """Grow a fleet, and measure it at each number of builds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", metavar="N", type=int, nargs="*", default=list(NUMBERS))
    parser.add_argument("--keep", metavar="DIR", type=Path, help="put the fleet there, and keep it")
    parser.add_argument("--spark", action="store_true", help="also ask Spark")
    args = parser.parse_args([] if words is None else words)
    folder = Path(tempfile.mkdtemp(prefix="etrace-fleet-"))
    dataset = open_dataset(args.keep or folder / "fleet")
    try:
        bases = real_builds(folder)
        for kind, tables in bases.items():
            shown = ", ".join(f"{tables[t].num_rows:,} {t}" for t in ("executions", "opens"))
            print(f"{kind}: {shown}")
        done = 0
        for n in sorted(args.numbers):
            each = grow(dataset, bases, done, n)
            print(f"{n:,} builds; {each * 1e3:.0f} ms to make and add one", flush=True)
            done = n
            report(dataset, n)
            measure(dataset)
            begin = time.perf_counter()
            n_before, n_after = compact(dataset, by_month=True)
            print(f"  compact --by month: {n_before:,} parts became {n_after:,} in "
                  f"{time.perf_counter() - begin:.1f} s", flush=True)  # fmt: skip
            report(dataset, n)
            measure(dataset)
            if args.spark:
                by_spark(dataset)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
