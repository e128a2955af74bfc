# SPDX-License-Identifier: Apache-2.0
"""`PROGRAM --version`: the version, and the features that this etrace has or lacks."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


HELP = "show the version and features, and exit"


class VersionAction(argparse.Action):
    """Print the version and end; `features` names functions of etrace.capture.features.

    Features are probed only here, so --help and the commands do not pay for them.
    """

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        self.features: tuple[str, ...] = options.pop("features")
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=HELP)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print; SystemExit."""
        from etrace.capture import features

        finders = [getattr(features, name) for name in self.features]
        print(features.version(parser.prog, *finders))
        parser.exit()


def add_version(parser: argparse.ArgumentParser, *features: str) -> None:
    """Give a program `--version`."""
    parser.add_argument("--version", action=VersionAction, features=features)
