# SPDX-License-Identifier: Apache-2.0
"""Predictions of `etrace critical-path --what-if-jobs` against reruns of builds that only sleep.

What such a build takes depends on the order of its jobs alone, so the load of the machine counts
for little. Ten builds by make and ninja are made of a seed: recipes of several lines, prerequisites
with and without files, order-only and phony ones, directories of their own. Each is traced with one
job and with three, and asked for each number of jobs. The measured time is the least of N_RUNS
(ETRACE_BENCH_ROUNDS).
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from samples import PROGRAMS, verdict

from etrace.nfsdb.store import open_database
from etrace.timing.recipe_order import find_recipe_order
from etrace.timing.what_if import Simulation

N_RULES = 12
TRACED, ASKED = (1, 3), (1, 2, 4, 8)
MAX_ERROR_PERCENT = 5.0
N_RUNS = int(os.environ.get("ETRACE_BENCH_ROUNDS", "2"))
#: a rule: its name, what it needs, what is order-only, and its sleeps in s
Made = tuple[str, list[str], list[str], list[float]]


@dataclass(frozen=True, slots=True)
class Kind:
    """How rules become the files of a build, and the tool that builds them."""

    name: str
    files: Callable[[list[Made]], dict[str, str]]
    tool: str = "make"
    n_lines: int = 3


def rules(seed: int, n_lines: int) -> list[Made]:
    """Return rules that need some of those before them."""
    chance, found = random.Random(seed), list[Made]()
    for number in range(N_RULES):
        names = [rule[0] for rule in found]
        needs = chance.sample(names, min(number, chance.choice([0, 0, 1, 2])))
        order_only = [needs.pop()] if needs and chance.random() < 0.3 else []
        sleeps = [round(chance.uniform(0.1, 0.6), 3) for _ in range(chance.randint(1, n_lines))]
        found.append((f"t{number}", needs, order_only, sleeps))
    return found


def _rule(rule: Made, last: str = "") -> str:
    name, needs, order_only, sleeps = rule
    lines = [f"\tsleep {each}\n" for each in sleeps]
    return f"{name}: {' '.join(needs)} | {' '.join(order_only)}\n{''.join(lines)}{last}"


def _all(made: list[Made]) -> str:
    return f"all: {' '.join(reversed([rule[0] for rule in made]))}\n"


def with_files(made: list[Made]) -> dict[str, str]:
    """Let each recipe write its target."""
    return {"Makefile": _all(made) + "".join(_rule(rule, "\ttouch $@\n") for rule in made)}


def with_some_files(made: list[Made]) -> dict[str, str]:
    """Let every second recipe write its target."""
    ends = ("\ttouch $@\n", "")
    text = "".join(_rule(rule, ends[number % 2]) for number, rule in enumerate(made))
    return {"Makefile": _all(made) + text}


def phony(made: list[Made]) -> dict[str, str]:
    """Let no recipe write anything."""
    names = " ".join(rule[0] for rule in made)
    return {"Makefile": f"{_all(made)}.PHONY: all {names}\n" + "".join(map(_rule, made))}


def in_directories(made: list[Made]) -> dict[str, str]:
    """Give two makes below one half of the rules each."""
    found = {"Makefile": "all: a b\n.PHONY: all a b\na b:\n\t$(MAKE) -C $@\n"}
    for folder, part in (("a", made[::2]), ("b", made[1::2])):
        names = {rule[0] for rule in part}
        own = [
            (name, [n for n in needs if n in names], [n for n in order if n in names], sleeps)
            for name, needs, order, sleeps in part
        ]
        found[f"{folder}/Makefile"] = with_files(own)["Makefile"]
    return found


def by_ninja(made: list[Made]) -> dict[str, str]:
    """Let ninja build them, through phony edges."""
    text = "rule s\n  command = sleep $time && touch $out\n"
    for name, needs, order_only, sleeps in made:
        text += f"build {name}: s {' '.join(needs)} || {' '.join(order_only)}\n"
        text += f"  time = {sum(sleeps)}\nbuild p{name}: phony {name}\n"
    text += f"build all: phony {' '.join('p' + rule[0] for rule in made)}\ndefault all\n"
    return {"build.ninja": text}


KINDS = (
    Kind("make, files", with_files),
    Kind("make, one line", with_files, n_lines=1),
    Kind("make, some files", with_some_files),
    Kind("make, phony", phony),
    Kind("make, phony, one line", phony, n_lines=1),
    Kind("make, two directories", in_directories),
    Kind("ninja", by_ninja, tool="ninja"),
)
BUILDS = (*KINDS, KINDS[0], KINDS[3], KINDS[6])


def run(tree: Path, words: list[str | Path]) -> float:
    """Remove what was built and run a command; return its time in s."""
    for path in (*tree.glob("**/t*"), *tree.glob(".ninja*")):
        path.unlink()
    begin = time.monotonic()
    subprocess.run(words, cwd=tree, check=True, capture_output=True)
    return time.monotonic() - begin


def predicted(tree: Path, tool: str, traced: int) -> dict[int, float]:
    """Trace a build; return the predictions in s by the number of jobs."""
    database = tree / f"db{traced}"
    database.mkdir()
    run(tree, [PROGRAMS / "etrace", "run", "-q", "-o", database, "--", tool, f"-j{traced}"])
    for command in (["parse", "-q"], ["pp", "-q"]):
        subprocess.run(
            [PROGRAMS / "cas", *command, "--db", database], cwd=tree, check=True,
            capture_output=True,
        )  # fmt: skip
    image = open_database(database)
    order = find_recipe_order(image)
    if order.unknown or order.strays:
        print(f"rules are not known: {order.unknown}, {len(order.strays)} strays")
    simulation = Simulation(image, order)
    return {n: simulation.predict({}, n).predicted_ns / 1e9 for n in ASKED}


def rows(kind: Kind, seed: int) -> Iterator[tuple[str, float]]:
    """Yield a row of the table and its largest error in percent, for each traced build."""
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name)
        for path, text in kind.files(rules(seed, kind.n_lines)).items():
            (tree / path).parent.mkdir(exist_ok=True)
            (tree / path).write_text(text)
        found = {traced: predicted(tree, kind.tool, traced) for traced in TRACED}
        measured = {n: min(run(tree, [kind.tool, f"-j{n}"]) for _ in range(N_RUNS)) for n in ASKED}
        for traced, by_jobs in found.items():
            errors = {n: 100 * (by_jobs[n] / measured[n] - 1) for n in ASKED}
            cells = (f"{by_jobs[n]:.2f}, {measured[n]:.2f} ({errors[n]:+.1f} %)" for n in ASKED)
            text = f"| {kind.name} | {seed} | -j{traced} | {' | '.join(cells)} |"
            yield text, max(map(abs, errors.values()))


def main() -> None:
    """Print predicted and measured times."""
    print(f"### builds of sleeps: predicted, measured (least of {N_RUNS}) s")
    print(f"| rules | seed | traced | {' | '.join(f'-j{n}' for n in ASKED)} |")
    print("|" + "---|" * (3 + len(ASKED)))
    worst = 0.0
    for seed, kind in enumerate(BUILDS, 1):
        for row, error in rows(kind, seed):
            print(row, flush=True)
            worst = max(worst, error)
    print("\n" + verdict("error in %", worst, MAX_ERROR_PERCENT, at_most=True) + "\n")
