# SPDX-License-Identifier: Apache-2.0
"""The database image: JSON into it and out of it, against md5sum and json.loads; opening it."""

from __future__ import annotations

import statistics
import sys
import time

import paired
from paired import Candidate, Figure
from samples import CACHE, CAS, MEGA, N_COPIES, database, verdict

from etrace.nfsdb.products import reopen
from etrace.nfsdb.store import open_database

DATABASE = CACHE / "image"
JSON = DATABASE / ".nfsdb.json"
N_OPENINGS = 21
MS = 1e3
#: what the figures are held to (Samsung CAS makes its image in 8.2 s)
MAX_TO_IMAGE_S, MAX_TO_JSON_S, MAX_OPEN_MS, MAX_PEAK_MB = 3.0, 1.0, 20.0, 1000.0


def candidates() -> list[Candidate]:
    """Return what takes turns: the file read by others, and our two ways."""
    loads = f"import json; json.loads(open({str(JSON)!r}, 'rb').read())"
    return [
        Candidate("md5sum", ["md5sum", JSON]),
        Candidate("json.loads", [sys.executable, "-c", loads]),
        Candidate("cas cache --force", [CAS, "cache", "--force", "--db", str(DATABASE)]),
        Candidate(
            "cas export json",
            [CAS, "export", "json", "--db", str(DATABASE), "-o", str(DATABASE / "out.json")],
        ),
    ]


def opening_ms() -> tuple[float, float]:
    """Return milliseconds to open the image, all columns looked at, and to open the database.

    Medians; the second has the check that the JSON is still the one it was made of.
    """
    image, whole = [], []
    for _ in range(N_OPENINGS):
        start = time.perf_counter()
        reopen(DATABASE / ".nfsdb.img")
        middle = time.perf_counter()
        open_database(DATABASE)
        image.append(middle - start)
        whole.append(time.perf_counter() - middle)
    return statistics.median(image) * MS, statistics.median(whole) * MS


def report_promises(figures: list[Figure]) -> None:
    """Print what the figures are held to."""
    _, _, to_image, to_json = figures
    print(verdict("CPU s, JSON to image", to_image.cpu, MAX_TO_IMAGE_S, at_most=True))
    print(verdict("CPU s, image to JSON", to_json.cpu, MAX_TO_JSON_S, at_most=True))
    peak = max(to_image.peak_bytes, to_json.peak_bytes) / MEGA
    print(verdict("peak MB", peak, MAX_PEAK_MB, at_most=True))


def main(rounds: int = 5) -> None:
    """Print the figures and what they are held to."""
    database("image", N_COPIES, "--json")
    figures = paired.compare(candidates(), rounds)
    size = JSON.stat().st_size / MEGA
    print(paired.table(f"image, {size:.0f} MB of JSON, against md5sum of it", figures))
    report_promises(figures)
    image, whole = opening_ms()
    print(verdict("ms to open the image", image, MAX_OPEN_MS, at_most=True))
    print(verdict("ms to open the database", whole, MAX_OPEN_MS, at_most=True))
    print()


if __name__ == "__main__":
    main()
