# SPDX-License-Identifier: Apache-2.0
"""`cas export`: the database in the formats of other tools."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from etrace.cli.cas import access_trace
from etrace.cli.ending import say
from etrace.cli.options import build_spec as spec_options
from etrace.cli.options import compile_commands as command_options
from etrace.cli.options import sbom as sbom_options
from etrace.cli.options.common import add_database, add_examples
from etrace.errors import EtraceError, UsageError
from etrace.figures import count

if TYPE_CHECKING:
    from libetrace.image.file import Image

    from etrace.export.compile_commands import Form

FORMATS = (
    "json",
    "compile_commands",
    "build-spec",
    "file-access-trace",
    "ninja",
    "parquet",
    "sbom",
)
#: format -> the attributes of its own options
OWN = {
    "compile_commands": command_options.NAMES,
    "build-spec": spec_options.NAMES,
    "file-access-trace": access_trace.NAMES,
    "sbom": sbom_options.NAMES,
}
#: attributes that are not called like their option
SHOWN = {
    "filters": "--filter", "rules": "--include", "text": "--command", "document_format": "--format",
}  # fmt: skip


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas export`."""
    add_database(parser)
    parser.add_argument("format", choices=FORMATS, help="what to write")
    parser.add_argument(
        "operands", metavar="DIR|MODULE", nargs="*", type=os.fsencode,
        help="directory for the Parquet files, one a table, made when it is missing; "
        "for sbom modules or other files that the build made (default: modules that no other "
        "one is made of)",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path,
        help="write to FILE (default: standard output)",
    )  # fmt: skip
    command_options.add_all(parser)
    spec_options.add_all(parser.add_argument_group("for build-spec"))
    access_trace.add_all(parser.add_argument_group("for file-access-trace"))
    sbom_options.add_all(parser.add_argument_group("for sbom"))
    add_examples(
        parser, "cas export compile_commands -o compile_commands.json", "cas export parquet tables"
    )


def export_file(args: argparse.Namespace, write: Callable[[Image, BinaryIO], object]) -> None:
    """Write one file, or to the standard output."""
    from etrace.cli.opening import open_found
    from etrace.cli.show.output import opened

    if args.operands and args.format != "sbom":
        place = os.fsdecode(args.operands[0])
        raise UsageError(
            f"{args.format} is written to one file", f"cas export {args.format} -o {place}"
        )
    image = open_found(args)
    with _merging(args), opened(args.output, image.path) as stream:
        write(image, stream)


def _merging(args: argparse.Namespace) -> AbstractContextManager[None]:
    """Return a context in which no other program merges into the same output."""
    if not (args.output and (args.append or args.update)):
        return nullcontext()
    from etrace.export.merging import alone

    folder = args.output.absolute().parent
    return alone(args.output, lambda: say(f"cas: waiting for a program that has locked {folder}\n"))


def write_commands(args: argparse.Namespace) -> Callable[[Image, BinaryIO], object]:
    """Return the function that writes compile_commands.json of the selected sources."""
    from etrace.export import compile_commands
    from etrace.export.merging import merged

    form, merge = command_options.form(args), command_options.merge(args)
    if args.links is not None and args.output is not None:
        same = os.path.realpath(args.links) == os.path.realpath(args.output)
        if same and not args.links.is_char_device():
            raise UsageError(f"{args.links}: -o and --links name the same file", "give two files")

    def write(image: Image, stream: BinaryIO) -> None:
        chosen = command_options.source_selection(image, args, args.filters)
        found = compile_commands.entries(image, choice=chosen, form=form)
        if args.links is not None:
            write_links(image, args.links, form)
        compile_commands.write(
            stream, found if merge is None else merged(args.output, found, merge)
        )
        command_options.report_left_out(chosen)
        command_options.report_missing(image, found, chosen)

    return write


def write_links(image: Image, path: Path, form: Form) -> None:
    """Write the commands that linked and archived to a file."""
    from etrace.cli.show.output import writing
    from etrace.export import compile_commands

    with writing(path, image.path) as stream:
        compile_commands.write(stream, compile_commands.link_entries(image, form))


def write_build_spec(args: argparse.Namespace) -> Callable[[Image, BinaryIO], object]:
    """Return the function that writes the build spec."""
    from etrace.export import build_spec

    def write(image: Image, stream: BinaryIO) -> None:
        spec = build_spec.BuildSpec(image, spec_options.known(args))
        written = build_spec.write(stream, spec, is_debug=args.debug, expands=args.expand)
        spec_options.report_empty("cas", written)

    return write


def write_ninja(image: Image, stream: BinaryIO) -> None:
    """Write a build.ninja, and say what it does not do."""
    from etrace.export import ninja

    found, knows_environments = ninja.write(stream, image)
    say(f"cas: {count(len(found.builds), 'edge')}\n")
    for reason, texts in found.left_out.items():
        say(f"cas: left out, {reason}: {len(set(texts))} (listed in the file)\n")
    for reason, texts in found.differing.items():
        say(f"cas: may differ, {reason}: {len(set(texts))} (listed in the file)\n")
    if not knows_environments:
        say("cas: commands get the environment of ninja: etrace run --env would have kept theirs\n")


def write_access_trace(args: argparse.Namespace) -> Callable[[Image, BinaryIO], object]:
    """Return the function that writes the file access trace, compressed by the file's suffix."""
    from etrace.cli.show.packing import packed

    def write(image: Image, stream: BinaryIO) -> None:
        with packed(args.output, stream) as inside:
            access_trace.export(image, args, inside)

    return write


def export_parquet(args: argparse.Namespace) -> None:
    """Write a Parquet file for each table."""
    from etrace.cli.opening import open_found
    from etrace.export.parquet import write_parquet

    if len(args.operands) != 1 or args.output is not None:
        raise UsageError("parquet is written to a directory", "cas export parquet DIR")
    directory = Path(os.fsdecode(args.operands[0]))
    if directory.exists() and not directory.is_dir():
        raise EtraceError(
            f"{directory}: not a directory", "each table becomes a file in a directory"
        )
    written = write_parquet(open_found(args), directory)
    print(f"{count(len(written), 'table')} in {os.fspath(directory)}")


def write_sbom(args: argparse.Namespace) -> Callable[[Image, BinaryIO], object]:
    """Return the function that writes a bill of materials, and says what it lacks."""
    from etrace.export.sbom import cyclonedx, in_toto, spdx2, spdx3
    from etrace.export.sbom.bill import Bill

    writers = {
        "spdx3": spdx3.write,
        "spdx2.3": spdx2.write,
        "cyclonedx": cyclonedx.write,
        "in-toto": in_toto.write,
    }
    said = sbom_options.request(args)

    def write(image: Image, stream: BinaryIO) -> None:
        bill = Bill(image, args.operands, said)
        writers[args.document_format or "spdx3"](stream, bill)
        sbom_options.report(bill)

    return write


def compare_sbom(args: argparse.Namespace) -> int:
    """List the files that only one of two documents names; 0 when there are none."""
    from etrace.cli.opening import open_found
    from etrace.cli.show.output import opened
    from etrace.export.sbom.bill import Bill
    from etrace.export.sbom.comparison import compare

    image = open_found(args)
    found = compare(Bill(image, args.operands, sbom_options.request(args)), args.compare)
    lines = sbom_options.lines_of(found)
    with opened(args.output, image.path) as stream:
        stream.write("".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))
    say(
        f"cas: {count(found.n_common, 'file')} in both; only in {args.compare}: "
        f"{len(found.other)} (-); only in the build: {len(found.own)} (+)\n"
    )
    return int(bool(lines))


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options of another format. UsageError."""
    for owner, names in OWN.items():
        for name in names:
            if owner != args.format and getattr(args, name):
                option = SHOWN.get(name, f"--{name.replace('_', '-')}")
                raise UsageError(f"{option} is for {owner}", "leave it out")


def run(args: argparse.Namespace) -> int:
    """Run `cas export`."""
    _check_options(args)
    if args.format == "json":
        from etrace.nfsdb.to_json import write_json

        export_file(args, write_json)
    elif args.format == "compile_commands":
        export_file(args, write_commands(args))
    elif args.format == "build-spec":
        export_file(args, write_build_spec(args))
    elif args.format == "ninja":
        export_file(args, write_ninja)
    elif args.format == "sbom":
        if args.compare is not None:
            return compare_sbom(args)
        export_file(args, write_sbom(args))
    elif args.format == "file-access-trace":
        export_file(args, write_access_trace(args))
    else:
        export_parquet(args)
    return 0
