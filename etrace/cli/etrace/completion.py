# SPDX-License-Identifier: Apache-2.0
"""`etrace completion SHELL`: print a shell completion script."""

from __future__ import annotations

import argparse
import sys

SHELLS = ("bash", "zsh", "fish")


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the argument of `etrace completion`."""
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    parser.epilog = (
        'In bash and zsh: eval "$(etrace completion bash)"; in fish: etrace completion fish'
        " | source. An installed etrace sets this up by itself."
    )


def run(args: argparse.Namespace) -> int:
    """Run `etrace completion`."""
    from etrace.cli.manual.completion import script

    sys.stdout.write(script(args.shell))
    return 0
