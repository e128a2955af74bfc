# SPDX-License-Identifier: Apache-2.0
"""Variables that makes, shells and scripts hand on are in every trace, and secrets are hidden."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from traced_builds import BIN, found, keys, trace

from etrace.nfsdb.environment import of_processes
from etrace.nfsdb.store import open_database
from etrace.rules.declared import UNKNOWN

BELOW = "out: $(L)\n\tcat ../x ../y > out\n"
#: of the upper makefile, with L of the lower one in it or not
HANDED = {
    "simple": "export L := ../x ../y\nall:\n\t$(MAKE) -C s out\n",
    "with other variables": "X = ../x\nexport L = $(X) $(Y)\nY = ../y\nall:\n\t$(MAKE) -C s out\n",
    "with functions": "export L = $(addprefix ../,x $(subst z,y,z))\nall:\n\t$(MAKE) -C s out\n",
    "named later": "L = ../x ../y\nV = L\nexport OTHER $(V)\nall:\n\t$(MAKE) -C s out\n",
    "all": "L = ../x ../y\nexport\nall:\n\t$(MAKE) -C s out\n",
    "all by a target": ".EXPORT_ALL_VARIABLES:\nL = ../x ../y\nall:\n\t$(MAKE) -C s out\n",
    "all but it": "export\nL = ../x ../y\nunexport L\nall:\n\t$(MAKE) -C s out\n",
    "not": "L = ../x ../y\nall:\n\t$(MAKE) -C s out\n",
    "in lines": "define L\n../x ../y\nendef\nexport L\nall:\n\t$(MAKE) -C s out\n",
    "continued": "export \\\n  L = ../x \\\n  ../y # why\nall:\n\t$(MAKE) -C s out\n",
    "a target of that name": "all: export\n\t$(MAKE) -C s out\nL = ../x\nexport: ; @:\n",
    "in a file": "include more.mk\nall:\n\t$(MAKE) -C s out\n",
    "before make": "all:\n\tL='../x ../y' $(MAKE) -C s out\n",
    "before make in a folder": "all:\n\tcd s && L=../x V=1 $(MAKE) out\n",
    "exported by a shell": "all:\n\tL='../x ../y'; export L; cd s && $(MAKE) out\n",
    "by env": "all:\n\tenv L='../x ../y' $(MAKE) -C s out\n",
    "before another program": "all:\n\tL='../x ../y' true; $(MAKE) -C s out\n",
    "on the command line": "all:\n\t$(MAKE) -C s out L='../x ../y'\n",
    "two levels down": "export L = ../x ../y\nall:\n\t$(MAKE) -f middle.mk\n",
    "evaluated": "$(eval export L := ../x ../y)\nall:\n\t$(MAKE) -C s out\n",
    "of a shell": 'all:\n\tL="$$PWD/x $$PWD/y" $(MAKE) -C s out\n',
    "of a file that a shell reads": "all:\n\t. ./vars; $(MAKE) -C s out\n",
    "of a script": "all:\n\tsh ./script out\n",
    "from the environment": "HOME = ../x ../y\nall:\n\t$(MAKE) -C s out -f home.mk\n",
}
OTHERS = {
    "x": "", "y": "", "s/Makefile": BELOW, "vars": "export L='../x ../y'\n",
    "script": ". ./vars; make -C s $1\n",
    "more.mk": "export L := ../x ../y\n",
    "middle.mk": "all:\n\t$(MAKE) -C s out\n", "s/home.mk": BELOW.replace("L", "HOME"),
}  # fmt: skip


@pytest.mark.parametrize("how", HANDED)
def test_rules_are_those_that_the_environment_gives(tmp_path: Path, how: str) -> None:
    sources = {"Makefile": HANDED[how], **OTHERS}
    tree = trace(tmp_path / "tree", "make", sources, env=False)
    result = found(tree)
    assert list(result.unknown) == []
    own = [fault.key for fault in result.faults]
    shutil.rmtree(tree)
    assert own == keys(trace(tree, "make", sources))


def without_environments(tree: Path) -> None:
    """Make the database again from the trace without them, as an imported log has none."""
    trace = tree / ".nfsdb"
    lines = trace.read_bytes().splitlines(keepends=True)
    trace.write_bytes(b"".join(line for line in lines if not line.startswith(b"0,")))
    for words in (["parse", "--force"], ["pp"]):
        subprocess.run([BIN / "cas", *words], cwd=tree, check=True, capture_output=True)


def test_a_make_without_environment_is_not_judged_below_another(tmp_path: Path) -> None:
    tree = trace(tmp_path, "make", {"Makefile": HANDED["simple"], **OTHERS}, env=False)
    without_environments(tree)
    result = found(tree, is_trusted=True)
    assert [fault.key for fault in result.faults] == []
    assert [why for _, why in result.unknown] == [UNKNOWN]


def test_a_shell_may_set_variables_for_the_first_make(tmp_path: Path) -> None:
    sources = {"Makefile": BELOW.replace("../", ""), "x": "", "y": ""}
    assert keys(trace(tmp_path, "L='x y' make", sources, env=False)) == []


@pytest.mark.parametrize("word", ["API_TOKEN=zKeptAside7kQ", "URL=https://a:zKept7kQ@h/"])
def test_words_of_an_upper_make_are_known_when_its_flags_are_hidden(
    tmp_path: Path, word: str
) -> None:
    sources = {"Makefile": "all:\n\t$(MAKE) -C s out\n", **OTHERS}
    tree = trace(tmp_path, f"make L='../x ../y' {word}", sources, env=False)
    own = of_processes(open_database(tree))
    assert any(b"MAKEFLAGS=[hidden]" in variables for variables in own.values())
    result = found(tree)
    assert list(result.unknown) == []
    assert [fault.key for fault in result.faults] == []
