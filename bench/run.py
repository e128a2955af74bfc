# SPDX-License-Identifier: Apache-2.0
"""`make bench`: what docs/costs.md says about speed and memory, measured again."""

from __future__ import annotations

import argparse
import importlib
import platform

PARTS = (
    "capture",
    "parser",
    "image",
    "patterns",
    "postprocess",
    "client",
    "dependencies",
    "library",
    "xray",
    "report",
    "timeline",
    "what_if",
    "sleeps",
    "sbom",
)


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="*", help=f"which parts (default: {' '.join(PARTS)})")
    args = parser.parse_args()
    print(f"{platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}\n")
    for part in args.part or PARTS:
        if part not in PARTS:
            parser.error(f"no part {part!r}; there are: {', '.join(PARTS)}")
        importlib.import_module(part).main()


if __name__ == "__main__":
    main()
