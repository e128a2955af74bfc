# SPDX-License-Identifier: Apache-2.0
"""Documents, commands and library -> a site: `build-aux/website.py [FOLDER]`.

The pages keep their places in the tree, so that their links hold. The commands come from the
declarations that man pages are rendered from; signatures of the library from its sources and
.pyi files, its words from the docstrings of what is installed. MkDocs stops at a dead link.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from textwrap import dedent

import libetrace

from etrace.cli.manual.declarations import Program, etrace_cat, etraced, programs, tracer
from etrace.render import render, write_whole

TOP = Path(__file__).resolve().parents[1]
HERE = TOP / "build-aux/website"
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
#: what Markdown would take for its own outside of `code`
SPECIAL = re.compile(r"([\\*_<>\[\]|#])")


@dataclass(frozen=True, slots=True)
class Member:
    """A method or an attribute: every way to call it, and its docstring."""

    title: str
    signature: str
    text: str


@dataclass(frozen=True, slots=True)
class Name:
    """One name of `libetrace.__all__`."""

    title: str
    signature: str
    text: str
    members: tuple[Member, ...] = ()


def text(words: str) -> str:
    """Return running text in which only `code` is markup."""
    parts = re.split(r"(`[^`]*`)", " ".join(words.split()))
    return "".join(part if part[:1] == "`" else SPECIAL.sub(r"\\\1", part) for part in parts)


def prose(words: str) -> str:
    """Return running text in which indented lines, examples, stay unchanged."""
    out = []
    for is_example, lines in groupby(words.splitlines(), lambda line: line.startswith("  ")):
        part = "\n".join(lines)
        out.append(f"```\n{dedent(part)}\n```" if is_example else text(part))
    return "\n\n".join(filter(None, out))


def command_pages() -> Iterator[tuple[str, str]]:
    """Yield the page of each program."""
    declared: tuple[Program, ...] = (
        *programs(),
        tracer(),
        etraced(),
        etrace_cat(Path(sys.executable).parent / "etrace_cat"),
    )
    for program in declared:
        values = {"program": program, "text": text, "prose": prose}
        yield f"commands/{program.name}.md", render(HERE / "commands.md.j2", values)


def source_of(module: str) -> ast.Module:
    """Return the source of a module of libetrace: the .pyi file of a compiled one."""
    path = TOP / "cython" / module.replace(".", "/")
    found = next(p for p in (path.with_suffix(".pyi"), path.with_suffix(".py")) if p.is_file())
    return ast.parse(found.read_text("utf-8"))


def signature(node: ast.stmt) -> str:
    """Return what a definition says before its body."""
    if isinstance(node, ast.FunctionDef):
        kept = [d for d in node.decorator_list if ast.unparse(d) not in ("overload", "final")]
        bare = copy(node)
        bare.body, bare.decorator_list = [ast.Expr(ast.Constant(...))], kept
        return ast.unparse(bare).replace(":\n    ...", "")
    return ast.unparse(node)


def defined(node: ast.stmt) -> str:
    """Return the name that a statement defines, empty when it defines none."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return ""


def words_of(thing: object) -> str:
    """Return the docstring of what is installed, as Markdown."""
    return inspect.cleandoc(thing.__doc__ or "").replace("..)", "...)")


def members_of(thing: type, node: ast.ClassDef) -> Iterator[Member]:
    """Yield the public members of a class in the order of its source."""
    public = [one for one in node.body if defined(one) and not defined(one).startswith("_")]
    for name, nodes in groupby(public, defined):
        signatures = "\n".join(signature(one) for one in nodes)
        yield Member(name, signatures, words_of(getattr(thing, name, None)))


def described(title: str) -> Name:
    """Return what the reference says about one name."""
    thing = getattr(libetrace, title)
    try:
        tree = source_of(thing.__module__)
    except StopIteration:
        raise SystemExit(f"website: {thing.__module__} has no .pyi file") from None
    node = next(one for one in tree.body if defined(one) == thing.__name__)
    if isinstance(node, ast.ClassDef):
        inherited = [text(ast.unparse(base)) for base in node.bases]
        said = words_of(thing) + (f"\n\nBases: {', '.join(inherited)}." if inherited else "")
        return Name(title, "", said, tuple(members_of(thing, node)))
    return Name(title, signature(node), words_of(thing))


def reference() -> str:
    """Return the page of the library."""
    names = [described(title) for title in libetrace.__all__]
    return render(HERE / "reference.md.j2", {"names": names})


def lay_out(folder: Path) -> None:
    """Write all pages, and what they show, into `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(TOP / "docs", folder / "docs", ignore=shutil.ignore_patterns("man"))
    for name in PAGES:
        shutil.copy(TOP / name, folder / name)
    for name, page in command_pages():
        write_whole(folder / name, page)
    write_whole(folder / "reference/libetrace.md", reference())
    (folder / "assets").mkdir()
    shutil.copy(HERE / "iframe-worker.js", folder / "assets")


def build(folder: Path) -> Path:
    """Build the site in `folder`; return where it is. CalledProcessError at a dead link."""
    lay_out(folder / "pages")
    shutil.copy(HERE / "mkdocs.yml", folder)
    importlib.import_module("material")  # says at once that it is missing
    subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-m", "mkdocs", "build", "-q", "--clean"],
        cwd=folder, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    site = folder / "site"
    for name in ("sitemap.xml", "sitemap.xml.gz", "404.html"):  # for servers
        (site / name).unlink(missing_ok=True)
    (site / "search/search_index.json").unlink()  # search_index.js has it, and works from files
    shutil.rmtree(site / "assets/javascripts/lunr")  # other languages
    return site


def main() -> int:
    """Command line of `build-aux/website.py`."""
    parser = argparse.ArgumentParser(prog="build-aux/website.py")
    parser.add_argument("folder", nargs="?", type=Path, default=TOP / "build/website")
    try:
        print(build(parser.parse_args().folder.resolve()) / "index.html")
    except subprocess.CalledProcessError as error:
        print(f"website: mkdocs ended with status {error.returncode}; see above", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
