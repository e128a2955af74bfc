# SPDX-License-Identifier: Apache-2.0
"""A signal ends whatever works in threads or other processes, within seconds."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from traced_builds import BIN, trace

from etrace.cli import main
from etrace.threads import mapped

TOP = Path(__file__).resolve().parents[1]
POOLS = re.compile(r"ThreadPool|ProcessPool|concurrent\.futures|multiprocessing|\.Thread\(")
#: file -> why a signal ends it
ENDED = {
    "etrace/threads.py": "daemons; tested here",
    "etrace/nfsdb/hashing.py": "daemons; tested here",
    "etrace/fleet/closures.py": "the pool is terminated; tested here",
    "etrace/report/comparison/build.py": "daemons, which multiprocessing terminates; tested here",
    "etrace/query/sql.py": "interrupts the statement: tests/query/test_sql.py",
    "etrace/cli/xray/options.py": "draws the progress, and looks ten times a second",
}
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
LATE_S = 20


def test_every_pool_is_listed() -> None:
    found = {
        str(path.relative_to(TOP))
        for path in (TOP / "etrace").rglob("*.py")
        if POOLS.search(path.read_text())
    }
    assert found == set(ENDED)


def ended(words: Sequence[str | Path], number: int, cwd: Path, **more: str) -> int:
    """Start a program, wait until it works, send a signal; return the status of its end."""
    process = subprocess.Popen(
        words, cwd=cwd, env=os.environ | more, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    began = time.monotonic()
    try:
        while not is_busy(process.pid) and time.monotonic() < began + LATE_S:
            time.sleep(0.05)
        assert process.poll() is None, process.communicate()
        process.send_signal(number)
        process.communicate(timeout=LATE_S)
    finally:
        process.kill()
        process.wait()
    return process.returncode


def is_busy(pid: int) -> bool:
    """Whether a program has threads or children; it has, when its pool works."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return True
    return len(tasks) > 1 or bool(children)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a build that read a file of two terabytes, which takes no room."""
    folder = tmp_path_factory.mktemp("build")
    (folder / "x.c").write_text("int x;\n")
    with (folder / "large").open("wb") as stream:
        stream.truncate(2 << 40)
    command = "gcc -c x.c; head -c1 large >> x.o; gcc -shared -o y.so x.o"
    return trace(folder, command, {})


@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_a_signal_ends_hashing(tree: Path, number: int, status: int) -> None:
    words: list[str | Path] = [
        BIN / "cas",
        "export",
        "sbom",
        "y.so",
        "--max-hashed",
        "4096G",
        "-o",
        "out.json",
    ]
    before = sorted(tree.iterdir())
    assert ended(words, number, tree) == status
    assert sorted(tree.iterdir()) == before


@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_a_signal_ends_the_hashing_of_a_trace(
    tree: Path, tmp_path: Path, number: int, status: int
) -> None:
    (tmp_path / ".nfsdb").write_bytes((tree / ".nfsdb").read_bytes())
    assert ended([BIN / "cas", "parse", "--hash"], number, tmp_path) == status


def test_a_file_that_is_too_large_has_no_hash(tree: Path) -> None:
    words: list[str | Path] = [BIN / "cas", "export", "sbom", "y.so", "-o", "sbom.json"]
    done = subprocess.run(words, cwd=tree, capture_output=True, text=True, check=True)
    (tree / "sbom.json").unlink()
    assert "without a hash, larger than 17,179,869,184 bytes (--max-hashed): 1 file" in done.stderr


#: in the place of what takes long
SLOW = """\
import os, sys, time
import etrace.{module} as module
module.{name} = lambda *_: time.sleep(1000)
"""
BEGIN = """\
import sys
from pathlib import Path
from etrace.cli import early
from etrace.cli.ending import guarded, stop_on_sigterm
sys.argv[0] = "cas"
stop_on_sigterm()
early.settle()
"""


@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_a_signal_ends_the_processes_of_a_fleet(tmp_path: Path, number: int, status: int) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOW.format(module="fleet.closures", name="closure"))
    body = "from etrace.fleet.closures import by_processes\n"
    body += "if __name__ == '__main__':\n    sys.exit(guarded('cas', lambda: len(list(by_processes"
    body += "(['a', 'b', 'c'], 'x', 2)))))\n"
    (tmp_path / "main.py").write_text(BEGIN + body)
    words = [sys.executable, "main.py"]
    assert ended(words, number, tmp_path, PYTHONPATH=str(tmp_path)) == status
    assert [pid for pid in pids() if str(tmp_path) in environment(pid)] == []


@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_a_signal_ends_the_processes_of_a_comparison(
    tmp_path: Path, number: int, status: int
) -> None:
    body = """\
import time
from types import SimpleNamespace
from etrace.report.comparison.build import _find_at_once

def slow():
    while True:
        time.sleep(1000)

sys.exit(guarded("etrace", lambda: _find_at_once([SimpleNamespace(find=slow)] * 3)))
"""
    (tmp_path / "main.py").write_text(BEGIN + body)
    words = [sys.executable, "main.py"]
    assert ended(words, number, tmp_path, PYTHONPATH=str(tmp_path)) == status
    assert [pid for pid in pids() if str(tmp_path) in environment(pid)] == []


def pids() -> list[str]:
    return [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]


def environment(pid: str) -> str:
    """Return what a living process of this user began with."""
    try:
        return os.fsdecode(Path(f"/proc/{pid}/environ").read_bytes())
    except OSError:
        return ""


@pytest.mark.parametrize("name", ["attest", "fleet", "import", "report", "timeline"])
def test_sigterm_ends_a_command_through_its_cleanups(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_: object) -> int:
        signal.raise_signal(signal.SIGTERM)
        return 0

    command = SimpleNamespace(name=name, load=lambda _: list, run=run)
    monkeypatch.setattr(main, "_find", lambda _: command)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with pytest.raises(SystemExit) as ending:
            main.etrace([name])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ending.value.code == 143


# ---- threads ----


def test_results_come_in_the_order_of_the_items() -> None:
    assert list(mapped(lambda n: n * n, range(1000), 4)) == [n * n for n in range(1000)]
    assert list(mapped(lambda n: n, [], 4)) == []


def test_the_first_error_is_raised_and_the_rest_is_not_begun() -> None:
    begun = []

    def work(n: int) -> int:
        begun.append(n)
        return 1 // n

    with pytest.raises(ZeroDivisionError):
        list(mapped(work, [1, 0, *range(1, 10_000)], 2))
    assert len(begun) < 100


@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_a_signal_ends_threads(tmp_path: Path, number: int, status: int) -> None:
    body = "import time\nfrom etrace.threads import mapped\n"
    body += "sys.exit(guarded('cas', lambda: len(list(mapped(time.sleep, [1000] * 9, 2)))))\n"
    (tmp_path / "main.py").write_text(BEGIN + body)
    assert ended([sys.executable, "main.py"], number, tmp_path) == status
