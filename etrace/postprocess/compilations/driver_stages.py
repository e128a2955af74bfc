# SPDX-License-Identifier: Apache-2.0
"""The stages that a driver started -> the driver's own command line.

For `gcc @FILE` whose FILE is gone: gcc repeats its content on the command lines of cc1, as and
collect2 (gcc/gcc.cc, cc1_options and cpp_unique_options). Only -I may be in another temporary file,
but as gets the same directories.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from etrace.compilers.invocation import ASSEMBLER, STDIN, Invocation, Source, Step, read_invocation
from etrace.compilers.options import INPUT, values
from etrace.compilers.tools import Tool

AS = "as"
LTO = "lto1"
LINKER = "linker"
PREPROCESS = b"-E"
#: cc1 preprocesses assembler
ASSEMBLER_MARK = b"-lang-asm"
DEFINE = b"-D"


@dataclass(frozen=True, slots=True)
class Stage:
    """One program that a driver started.

    `has_all` is False when one of its response files is gone; `made` are the inputs that another
    stage wrote.
    """

    tool: Tool
    words: Sequence[bytes]
    has_all: bool
    made: Collection[bytes] = ()


def recover(
    driver: Tool, own: Invocation | None, stages: Sequence[Stage]
) -> tuple[Invocation | None, bool]:
    """Return the work of a driver (None when it compiled nothing), and whether it is complete.

    `own` is the known part of the driver's command line.
    """
    compiling = [each for each in stages if each.tool.kind != LINKER]
    fronts = [each for each in compiling if each.tool.name not in (AS, LTO)]
    read = [(each, _read(each)) for each in compiling]
    is_preprocessed = all(PREPROCESS in each.words for each in compiling)
    sources = [] if is_preprocessed else _sources(read)
    if not sources:
        return own, own is None and bool(stages)
    it = next((found for each, found in read if found and each in fronts), None)
    it = it or Invocation(driver)
    of_as = [found for each, found in read if found and each.tool.name == AS]
    has_all = all(each.has_all for each in fronts)
    if not has_all and not it.include and of_as:
        it.include = of_as[0].include
        has_all = True
    it.tool, it.sources = driver, sources
    languages = [source.language for source in sources]
    it.language = next((each for each in languages if each != ASSEMBLER), ASSEMBLER)
    it.step, it.outputs = _made(stages, [found for _, found in read if found])
    if own is not None and own.outputs:
        it.outputs = own.outputs
    return it, has_all


def _read(stage: Stage) -> Invocation | None:
    """Read a stage's words, also with -E; a driver joins its own definitions to -D, as in -DX."""
    words = [
        word
        for word in stage.words
        if word != PREPROCESS and not (word.startswith(DEFINE) and word != DEFINE)
    ]
    return read_invocation(stage.tool, words)


def _sources(read: Sequence[tuple[Stage, Invocation | None]]) -> list[Source]:
    """Return the inputs of stages without the outputs of other stages."""
    made = {name for _, found in read if found for name in found.outputs}
    found = {}
    for stage, _ in read:
        if stage.tool.name == LTO:
            continue
        for argument in stage.tool.options.parse(stage.words):
            name = argument.value
            if argument.meaning != INPUT or name in made or name in stage.made:
                continue
            if name == STDIN and stage.tool.name == AS:  # -pipe
                continue
            is_assembler = ASSEMBLER_MARK in stage.words
            found[name] = Source(name, ASSEMBLER if is_assembler else stage.tool.language)
    return list(found.values())


def _made(stages: Sequence[Stage], read: Sequence[Invocation]) -> tuple[Step, list[bytes]]:
    """Return the last step and its outputs."""
    for stage in stages:
        if stage.tool.kind == LINKER:
            return Step.LINK, values(stage.tool.options.parse(stage.words), "output")[-1:]
    of_as = [name for each in read if each.tool.name == AS for name in each.outputs]
    if of_as:
        return Step.OBJECT, of_as
    return Step.ASSEMBLY, [name for each in read for name in each.outputs]
