# SPDX-License-Identifier: Apache-2.0
"""The parts of a bill of materials: files, steps, products, and what the user says of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from etrace.export.sbom.contents import MAX_BYTES, Content
from etrace.origin.git import State, Tree
from etrace.origin.package import Package
from etrace.query.linked_modules import Module
from etrace.query.rows.file_kinds import FileKind

N_DIGITS = 20


@dataclass(frozen=True, slots=True)
class Party:
    """A person or an organisation; `contact` is an address or a URL, or empty."""

    name: str
    contact: str = ""


def read_party(text: str) -> Party:
    """Read `NAME <ADDRESS or URL>`, as package databases have it."""
    name, bracket, rest = text.strip().partition("<")
    contact = rest.rstrip("> ").strip() if bracket else ""
    return Party(name.strip().strip('"') or contact, contact)


@dataclass(frozen=True, slots=True)
class Request:
    """What the user says of the product and of the document; `created` is in UTC."""

    created: str
    name: str = ""
    version: str = ""
    licence: str = ""
    copyright: str = ""
    cpe: str = ""
    namespace: str = ""
    supplier: Party | None = None
    creator: Party | None = None
    environment: tuple[str, ...] = ()
    with_parameters: bool = True
    with_steps: bool = True
    with_tools: bool = False
    with_sha1: bool = False
    max_hashed: int = MAX_BYTES


@dataclass(slots=True)
class BillFile:
    """A file. `state` says what its digests are worth, or why there are none."""

    row: int
    path: bytes
    name: str
    kind: FileKind
    is_made: bool
    content: Content
    package: Package | None = None
    tree: Tree | None = None
    tree_state: State = State.UNKNOWN
    id: str = ""
    #: whether what is there now is what the build had
    is_there: bool = True

    @property
    def note(self) -> str:
        """Say what a reader must know and no field has; empty when there is nothing."""
        words = []
        if not self.content.sha256:
            words.append("no hash: " + _WORDS.get(self.content.state, self.content.state))
        if self.kind is FileKind.TEMPORARY:
            words.append("the build made and removed it")
        if self.tree is not None and self.tree_state is not State.UNKNOWN:
            is_commit = self.tree.is_dirty is not None or self.tree_state is not State.CLEAN
            where = "in" if is_commit else "as git's index has it, on"
            words.append(
                f"git: {self.tree_state.value} {where} commit {self.tree.commit or '(none)'}"
            )
        if not is_text(self.path):
            words.append(f"name in hexadecimal digits: {self.path.hex()}")
        return "; ".join(words)


_WORDS = {
    "gone": "it was gone when the trace was parsed or this was written",
    "changed": "it has changed since the build",
    "unreadable": "it cannot be read",
    "large": "it is too large to be read",
    "special": "it is not a regular file of a disk",
    "unstable": "it changed while it was read",
}


@dataclass(slots=True)
class Step:
    """A process on the way: rows of `paths`; `program` is NONE when it ran none."""

    execution: int
    label: str
    command: str
    directory: str
    program: int
    inputs: list[int]
    outputs: list[int]
    variables: list[tuple[str, str]]
    id: str = ""


@dataclass(slots=True)
class Product:
    """A linked module with its inputs (rows of `paths`) and steps (rows of `executions`)."""

    module: Module
    name: str
    kind: str
    inputs: list[int]
    steps: list[int]
    variables: list[tuple[str, str]]
    static: list[Package] = field(default_factory=list)
    dynamic: list[Package] = field(default_factory=list)
    id: str = ""


def is_text(raw: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def digits(*parts: str | bytes) -> str:
    """Return digits that name what has these parts."""
    texts = [part.decode("utf-8", "surrogateescape") if isinstance(part, bytes) else part
             for part in parts]  # fmt: skip
    raw = "\0".join(texts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()[:N_DIGITS]


def package_id(package: Package) -> str:
    """Return the id of a package in every document."""
    return "package-" + digits(package.purl)


def tree_id(tree: Tree) -> str:
    """Return the id of a working tree in every document."""
    return "tree-" + digits(tree.top, tree.commit)


def creation_time(environment: Mapping[str, str], now_s: float) -> str:
    """Return the time of a document: SOURCE_DATE_EPOCH, else now; in UTC. ValueError."""
    from datetime import UTC, datetime  # noqa: PLC0415  slow to import

    said = environment.get("SOURCE_DATE_EPOCH", "")
    seconds = int(said) if said else int(now_s)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
