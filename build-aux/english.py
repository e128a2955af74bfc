# SPDX-License-Identifier: Apache-2.0
"""Check the English of the tree: print each line with a phrase of BANNED, and the better words.

Every text file that git tracks is read, with the names in it, for names are words too. In Markdown,
what is code is left out. A phrase that is broken across two lines is not found.

    english.py [--rooms] [ROOM]...

A room is the beginning of a path. Without one, all is checked but the rooms of TO_CLEAN. --rooms
prints how many phrases each room has, and fails for none.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
#: rooms that are not clean yet; who cleans one takes it off
TO_CLEAN: tuple[str, ...] = ()
#: texts of others, and the words that this file and its test quote
NOT_OURS = re.compile(
    r"LICENSES/|build-aux/website/iframe-worker\.js$|packaging/templates/debian/copyright\.j2$"
    r"|build-aux/english\.py$|tests/build_aux/test_english\.py$|.*\.svg$"
)


def _word(pattern: str) -> str:
    """Match a word, also one that is a part of a name: n_told, but not toldo."""
    return rf"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])"


#: what not to write -> what to write
BANNED = {
    r"(?!(?<=\.)tell\()" + _word("[Tt]ell(?:s(?!_last)|ing)?|[Tt]old"): (
        "say, report, record, give; 'tell whether': whether; 'tell apart': distinguish"
    ),
    _word("[Bb]ehind"): "after, past, following; in, with",
    r"(?<![Tt]here )\b(?:is|are|was|were|be) none\b": "is not one, is invalid, does not exist",
    r"\b(?:no \w+|none|nothing|nobody|nowhere|never) but\b": "only, except",
    _word("[Ss]tand(?:s|ing)?|[Ss]tood") + r"(?!(?: |_)(?:for|alone|still)(?![a-z]))": (
        "is, appears, is written; 'X must stand here': expected X"
    ),
    r"(?<![Tt]here )\b(?:is|are|was|were|be) no "
    r"(?!longer|more|less|later|older|newer|larger|smaller|better|worse|faster|slower|way|use|need)"
    "[a-z]": "is not a",
    r"(?<!far )(?<!wide )\bas (?:it is|they are|it was|they were)\b"
    r"(?! (?:[a-z]+ed|written|read|known|shown|given|called|now|then)\b)": "unchanged",
    r", that\b(?! (?:is|of|one)\b)": "no comma before a 'that' that defines; else which",
    r", of which\b": "whose, of them; or two sentences",
    _word(
        "[Ww]hence|[Hh]ence|thereof|therein|wherein|whereof|thereby|whereby|hitherto|whilst|amongst"
        "|till|upon|lest|aught|thither|ere|anew"
    ): "a word of today: so, from where, until, while, among, on, again",
    _word("mend(?:s|ed|ing)?"): "fix, repair",
    r"\b(?:is|are|was|were) to be\b": "must be, should be, will be",
    _word("lies?|lay|lying") + r" (?=(?:in|at|on|before|after|beside)\b)": "is",
    r"\bin front of\b": "before",
    r"\bfor ever\b": "forever",
    r"\bat the (?:most|least)\b": "at most, at least",
}
#: the same, in Markdown and at the end of a sentence
DOUBLE_SPACE = r"(?<=[a-z)][.,;:]) {2,}(?=[A-Za-z])"
RULES = [(re.compile(pattern), better) for pattern, better in BANNED.items()]
MARKDOWN_RULES = [*RULES, (re.compile(DOUBLE_SPACE), "one space")]
CODE = re.compile(r"`[^`]*`|\]\([^)]*\)")


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers; none of one that is not text."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
        return
    if path.suffix != ".md":
        yield from enumerate(lines, 1)
        return
    fenced = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, CODE.sub("``", line)


def problems(top: Path, names: list[str]) -> Iterator[tuple[str, int, str, str]]:
    """Yield (file, line, phrase, better words) for each banned phrase of these files."""
    for name in names:
        if NOT_OURS.match(name):
            continue
        rules = MARKDOWN_RULES if name.endswith(".md") else RULES
        for number, line in prose(top / name):
            for pattern, better in rules:
                if found := pattern.search(line):
                    yield name, number, found[0].strip() or found[0], better


def tracked(top: Path) -> list[str]:
    """Return the files of a checkout."""
    command = ["git", "-C", str(top), "ls-files", "-z"]
    listed = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    return listed.split("\0")[:-1]


def main(words: list[str]) -> int:
    """Run as a program; see the head of this file."""
    counting, rooms = "--rooms" in words, tuple(word for word in words if word != "--rooms")
    names = tracked(TOP)
    if rooms or not counting:
        names = [
            name
            for name in names
            if (name.startswith(rooms) if rooms else not name.startswith(TO_CLEAN))
        ]
    found = list(problems(TOP, names))
    if counting:
        counts = Counter("/".join(name.split("/")[:2]) for name, *_ in found)
        for room, count in counts.most_common():
            print(f"{count:5} {room}")
        return 0
    for name, number, phrase, better in found:
        print(f"{name}:{number}: not '{phrase}' but: {better}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
