# SPDX-License-Identifier: Apache-2.0
"""Programs that clang instruments -> their reports; the examples of the documents."""

from __future__ import annotations

import csv
import doctest
import io
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from xray import samples

from etrace import xray
from etrace.xray.account import account
from etrace.xray.names import Names
from etrace.xray.session import Session

CLANG, LLVM_XRAY = "clang++-19", "llvm-xray-19"
SOURCE = """
#include <cstdio>
#include <pthread.h>
#define XI [[clang::xray_always_instrument]]
static long counts[4];
XI __attribute__((noinline)) int leaf(int x) { __atomic_fetch_add(counts + 0, 1, 5); return x + 1; }
XI __attribute__((noinline)) int twice(int x) {
	__atomic_fetch_add(counts + 1, 1, 5);
	return leaf(leaf(x));
}
XI __attribute__((noinline)) void *worker(void *n) {
	__atomic_fetch_add(counts + 2, 1, 5);
	int s = 0;
	for (long i = 0; i < (long)n; i++) s += i % 3 ? twice(s) : leaf(s);
	asm volatile("" :: "r"(s));
	return nullptr;
}
XI int main() {
	pthread_t t[3];
	for (long i = 0; i < 3; i++) pthread_create(t + i, nullptr, worker, (void *)(20000 * (i + 1)));
	for (auto one : t) pthread_join(one, nullptr);
	std::printf("leaf(int) %ld\\ntwice(int) %ld\\n", counts[0], counts[1]);
	std::printf("worker(void*) %ld\\n", counts[2]);
}
"""


def need(command: str) -> None:
    if shutil.which(command) is None:
        pytest.fail(f"{command} is missing: apt-get install clang-19 llvm-19 libclang-rt-19-dev")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need(CLANG)
    place = tmp_path_factory.mktemp("xray")
    (place / "p.cpp").write_text(SOURCE)
    control = samples.DATA / "src" / "ctl.cpp"
    for command in (
        [CLANG, "-O1", "-g", "-fxray-instrument", "-c", "p.cpp"],
        [CLANG, "-O1", "-c", str(control), "-o", "ctl.o"],
        [CLANG, "-fxray-instrument", "-pthread", "-Wl,--wrap=main", "p.o", "ctl.o", "-o", "p"],
    ):
        subprocess.run(command, cwd=place, check=True)
    return place / "p"


def record(program: Path, place: Path, options: str) -> tuple[Path, str]:
    """Run the program in Flight Data Recorder mode; return its log and what it printed."""
    place.mkdir(exist_ok=True)
    env = os.environ | {
        "XRAY_OPTIONS": f"patch_premain=true xray_mode=xray-fdr verbosity=0 "
        f"xray_logfile_base={place}/log.",
        "XRAY_FDR_OPTIONS": f"func_duration_threshold_us=0 {options}",
    }
    done = subprocess.run([program], env=env, capture_output=True, text=True, check=True, cwd=place)
    (log,) = place.glob("log.*")
    return log, done.stdout


@pytest.mark.parametrize("options", ["buffer_max=1000", "buffer_size=1048576 buffer_max=100"])
def test_counts_are_those_that_the_program_prints(
    program: Path, tmp_path: Path, options: str
) -> None:
    log, printed = record(program, tmp_path / "run", options)
    names = Names([xray.InstrumentationMap.from_elf(program)])
    report = account(Session([str(log)], names))
    wanted = {line.rpartition(" ")[0]: int(line.split()[-1]) for line in printed.splitlines()}
    got = {row.name: row.count for row in report.rows}
    assert {name: got.get(name) for name in wanted} == wanted
    assert report.n_unmatched_exits == 0
    assert xray.read(log).damage.n_problems == 0


def test_llvm_xray_sees_the_same_records(program: Path, tmp_path: Path) -> None:
    need(LLVM_XRAY)
    log, _ = record(program, tmp_path / "run", "buffer_size=1048576 buffer_max=100")
    command = [LLVM_XRAY, "convert", "-f", "yaml", "-m", str(program), "-y", str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    llvm = Counter((r["function"], r["kind"]) for r in samples.yaml_records(done.stdout))
    kinds = ("function-enter", "function-exit", "function-tail-exit", "function-enter-arg")
    columns = xray.read(log).records
    ours = Counter(
        (str(f), kinds[k]) for f, k in zip(columns["function"], columns["kind"], strict=True)
    )
    assert ours == llvm


def test_accounts_of_one_thread_are_those_of_llvm_xray(tmp_path: Path) -> None:
    need(LLVM_XRAY)
    need(CLANG)
    source, control = (samples.DATA / "src" / name for name in ("big.cpp", "ctl.cpp"))
    subprocess.run([CLANG, "-O1", "-c", control, "-o", "ctl.o"], cwd=tmp_path, check=True)
    subprocess.run(
        [CLANG, "-O1", "-fxray-instrument", "-Wl,--wrap=main", source, "ctl.o", "-o", "big"],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    # one buffer: llvm-xray fails on more than 16 of one thread
    log, _ = record(tmp_path / "big", tmp_path / "run", "buffer_size=33554432 buffer_max=4")
    command = [LLVM_XRAY, "account", "-f", "csv", "-m", str(tmp_path / "big"), str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wanted = {row["function"]: row for row in csv.DictReader(io.StringIO(done.stdout))}
    names = Names([xray.InstrumentationMap.from_elf(tmp_path / "big")])
    report = account(Session([str(log)], names, hz="header"))
    assert {row.name: row.count for row in report.rows} == {
        name: int(row["count"]) for name, row in wanted.items()
    }
    seconds = report.clock.seconds
    for row in report.rows:
        assert f"{seconds(row.median):e}" == wanted[row.name]["median"]
        assert f"{seconds(row.total):e}" == wanted[row.name]["sum"]


TOP = Path(__file__).parents[2]


def test_the_page_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(samples.folder())
    failed, n_run = doctest.testfile(str(TOP / "docs" / "xray.md"), module_relative=False)
    assert n_run > 5
    assert failed == 0


def test_the_docstring_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(samples.folder())
    failed, n_run = doctest.testmod(xray)
    assert n_run > 3
    assert failed == 0
