# SPDX-License-Identifier: Apache-2.0
"""Variables that makes hand on: the rules without `--env` are those with it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from traced_builds import found, keys, trace

from etrace.rules import exported

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
    "from the environment": "HOME = ../x ../y\nall:\n\t$(MAKE) -C s out -f home.mk\n",
}
OTHERS = {
    "x": "", "y": "", "s/Makefile": BELOW, "vars": "export L='../x ../y'\n",
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


@pytest.mark.parametrize(
    "makefile",
    [
        "$(eval export L := ../x ../y)\nall:\n\t$(MAKE) -C s out\n",
        'all:\n\tL="$$PWD/x $$PWD/y" $(MAKE) -C s out\n',
        "all:\n\t. ./vars; $(MAKE) -C s out\n",
    ],
)
def test_what_is_not_known_is_said_with_what_to_do(tmp_path: Path, makefile: str) -> None:
    tree = trace(tmp_path, "make", {"Makefile": makefile, **OTHERS}, env=False)
    result = found(tree)
    assert [fault.key for fault in result.faults] == []
    assert [why for _, why in result.unknown] == [exported.UNKNOWN]
    assert "--env" in exported.UNKNOWN


def test_a_shell_may_set_variables_for_the_first_make(tmp_path: Path) -> None:
    sources = {"Makefile": BELOW.replace("../", ""), "x": "", "y": ""}
    assert keys(trace(tmp_path, "L='x y' make", sources, env=False)) == []


@pytest.mark.parametrize(
    ("command", "variables"),
    [
        ("A=1 make", {"A": "1"}),
        ("cd d && A=1 B='2 3' make -C x C=4", {"A": "1", "B": "2 3"}),
        ("A=1; make", {}),
        ("A=1 true && make", {}),
        ("A=1 nice make; B=2 cc", {"A": "1"}),
        ("(A=1 /usr/bin/make)", {"A": "1"}),
        ("if x; then A=1 make; fi", {"A": "1"}),
        ('A="$B" make', None),
        ("A=`x` make", None),
        ("export A=1; make", {"A": "1"}),
        ("A=1; B=2; export A; C=3 make", {"A": "1", "C": "3"}),
        ("A=1\nexport A B\nmake", {"A": "1"}),
        ("A=1 \\\n  make", {"A": "1"}),
        (". ./x; make", None),
        ("cd . && make", {}),
        ("set -a; A=1; make", None),
        ("echo 'it", None),
        ("make", {}),
    ],
)
def test_what_a_shell_sets(command: str, variables: dict[str, str] | None) -> None:
    own = exported.assigned([["sh", "-c", command]])
    texts = None if own is None else {os.fsdecode(key): os.fsdecode(own[key]) for key in own}
    assert texts == variables
