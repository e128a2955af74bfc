# SPDX-License-Identifier: Apache-2.0
"""The fuzz targets build and survive a short run; `make test-long` and `make fuzz` run longer."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from trying import amount


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    """Load run.py, which is a program and in no package."""
    spec = importlib.util.spec_from_file_location("fuzz_run", Path(__file__).with_name("run.py"))
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz_run"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all targets: the modules that they share are built once."""
    return tmp_path_factory.mktemp("fuzz")


WITH_MODULES = pytest.mark.long("builds libetrace's modules with a sanitizer, in a minute")


@pytest.mark.slow
@pytest.mark.timeout(1200)  # it ends by its number of runs, which takes long on a loaded machine
@pytest.mark.parametrize(
    "target",
    [
        pytest.param("dwarf", marks=WITH_MODULES),
        "collect",
        "format",
        pytest.param("parser", marks=WITH_MODULES),
        "patterns",
        "windows",
        pytest.param("xray", marks=WITH_MODULES),
    ],
)
def test_a_short_run_finds_nothing(runner: ModuleType, target: str, folder: Path) -> None:
    runs = amount(1_000, 20_000)
    figures = runner.fuzz(target, folder, runner.Limits(runs, seconds=1000, input_seconds=60))
    assert figures.executions >= runs
    assert figures.n_edges > 50


@pytest.mark.slow
def test_a_crash_fails_the_run_and_names_the_input(
    runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "crash.c"
    source.write_text(
        "#include <stddef.h>\n#include <stdlib.h>\n"
        "int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)\n"
        "{ if (size > 3 && data[0] == data[1]) abort(); return 0; }\n"
    )

    def build(out: Path) -> Path:
        program = out / "crash"
        command = [runner.compiler(), "-fsanitize=fuzzer,address", "-o", program, source]
        runner.run_build([str(word) for word in command])
        return program

    monkeypatch.setitem(runner.TARGETS, "format", runner.Target(build, max_len=8))
    with pytest.raises(runner.FuzzError, match="did not survive"):
        runner.fuzz("format", tmp_path, runner.Limits(runs=1_000_000, seconds=60))
    assert list(tmp_path.glob("format.crash-*"))
