# SPDX-License-Identifier: Apache-2.0
"""An unknown word -> similar known words.

Two words are similar when few typing errors turn one into the other (a letter missing, added or
changed, two letters swapped), or when they have the same beginning.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MIN_PREFIX = 2
MAX_LETTERS = 255  # of a file's name
LETTERS_A_SLIP = 3
N_NEAREST = 3


def distance(a: str, b: str, limit: int | None = None) -> int:
    """Return the number of typing errors between two words (optimal string alignment).

    Counting stops beyond `limit`: the result is then `limit` + 1.
    """
    before, last = [0] * (len(b) + 1), list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if limit is not None and min(row) > limit and min(last) > limit:
            return limit + 1
        before, last = last, row
    return last[-1]


def _rank(word: str, known: str) -> int | None:
    """Return the distance of two words, None when they are not similar."""
    if max(len(word), len(known)) > MAX_LETTERS:  # the time grows with both
        return None
    word, known = word.lower(), known.lower()
    shorter, difference = min(len(word), len(known)), abs(len(word) - len(known))
    if shorter >= MIN_PREFIX and (known.startswith(word) or word.startswith(known)):
        return difference
    limit = min(max(shorter // LETTERS_A_SLIP, 1), shorter - 1)
    same_letter = shorter > MIN_PREFIX or word[:1] == known[:1]
    if not same_letter or difference > limit:  # there may be 100,000 known paths
        return None
    slips = distance(word, known, limit)
    return slips if slips <= limit else None


def nearest(word: str, known: Iterable[str], n: int = N_NEAREST) -> list[str]:
    """Return up to `n` similar known words, best first."""
    ranked = ((_rank(word, each), each) for each in dict.fromkeys(known))
    found = sorted((rank, each) for rank, each in ranked if rank is not None)
    return [each for rank, each in found if rank <= found[0][0] + 1][:n]


def suggestion(word: str, known: list[str]) -> str:
    """Return the hint for an unknown word."""
    near = nearest(word, known)
    return f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}"
