# SPDX-License-Identifier: Apache-2.0
"""An image -> the bill of its linked modules: files, steps, packages. Formats are written from it.

The inputs of a module are what `cas deps` shows, without what the build made itself; compiled
sources and headers count even then. A step is a process on the way to a module: its command, what
it read, what it wrote. Ids come from contents, so equal parts have equal ids in every document.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies
from libetrace.depend.makers import Makers
from libetrace.depend.path_opens import PathOpens
from libetrace.image.file import Image

import etrace
from etrace.errors import NothingFoundError
from etrace.export.sbom.contents import CHANGED, LARGE, SAME, SPECIAL, UNREADABLE, Content, contents
from etrace.export.sbom.parts import BillFile, Product, Request, Step, digits
from etrace.nfsdb.environment import of_processes
from etrace.nfsdb.trace_time import build_end_ns
from etrace.origin.git import State, Tree, Trees
from etrace.origin.origins import Origins
from etrace.origin.package import Package
from etrace.query.files import written_paths
from etrace.query.hashes import FileHash, Hashes
from etrace.query.linked_modules import Module, linked_modules
from etrace.query.rows.file_kinds import USUAL, FileKind, FileKinds
from etrace.query.rows.labels import Labels
from etrace.query.select.file_names import find_files
from etrace.redaction.build import Redaction
from etrace.spec.database import IS_WRITE, NONE, file_type
from etrace.texts import text_of

#: what is an input although the build made it
COMPILED = frozenset((FileKind.SOURCE, FileKind.HEADER))
#: kinds that are never files of a document
NO_FILES = frozenset((FileKind.DIRECTORY, FileKind.DEVICE))
#: kind of what the build made and did not link: an image, a package
OTHER = -1


class Bill:
    """What a document says. EtraceError before `cas pp`, and without any module."""

    def __init__(self, image: Image, names: Iterable[bytes], request: Request) -> None:
        self.image, self.request = image, request
        self._root = os.fsencode(image.attributes.get("source_root", "")).rstrip(b"/")
        self._kinds = FileKinds(image)
        self._opens = PathOpens(image)
        self._redaction = Redaction(image)
        self._labels = Labels(image, self._redaction.words)
        self._written = written_paths(image)
        self._hidden: set[int] = set()
        self.steps: dict[int, Step] = {}
        self._row_kinds: dict[int, FileKind] = {}
        self.products = self._find_products(list(names))
        self.files = self._find_files()
        self._find_origins()
        self._name_all()

    # ---- modules and steps ----

    def _find_products(self, names: list[bytes]) -> list[Product]:
        dependencies, rules = Dependencies(self.image), Rules()
        modules = {module.path: module for module in linked_modules(self.image, with_copies=True)}
        if names:
            rows = find_files(self.image, names)
            modules |= {row: self._made(row) for row in rows if row not in modules}
        else:
            rows = self._last_modules(modules, dependencies, rules)
        if not rows:
            raise NothingFoundError(
                "the build linked no module that is still there",
                "name one; cas linked-modules lists them",
            )
        return [self._product(modules[row], dependencies, rules) for row in sorted(set(rows))]

    def _made(self, row: int) -> Module:
        """Return a file that the build made and did not link."""
        opens, by_path = self.image["opens"], self.image["path_opens"]["open"]
        uses = (by_path[at] for at in self.image["paths"].span("opens.start", row))
        makers = {opens["execution"][use] for use in uses if IS_WRITE[opens["mode"][use]]}
        if not makers:
            path = os.fsdecode(self.image.path_string(row))
            raise NothingFoundError(
                f"the build did not make {path}", "cas linked-modules --with-copies lists modules"
            )
        return Module(row, OTHER, tuple(sorted(makers)))

    def _last_modules(
        self, modules: Mapping[int, Module], dependencies: Dependencies, rules: Rules
    ) -> list[int]:
        """Return the modules that are there and that no other module was made from."""
        there = [
            row
            for row, module in modules.items()
            if module.copy_of is None and self._kinds.size_of(row) != NONE
        ]
        used: set[int] = set()
        for row in there:
            if row not in used:
                for closure in dependencies.closures([row], rules):
                    used.update(path for path in closure.paths if path != row and path in modules)
        return [row for row in there if row not in used]

    def _product(self, module: Module, dependencies: Dependencies, rules: Rules) -> Product:
        closures = dependencies.closures([module.path], rules)
        kind_of = self._kinds.among({row for closure in closures for row in closure.executions})
        found = sorted({path for closure in closures for path in closure.paths} - {module.path})
        inputs = []
        for path in found:
            kind = self._row_kinds.setdefault(path, kind_of(path))
            if self._is_shown(kind) and (not self._written[path] or kind in COMPILED):
                inputs.append(path)
            elif not self._is_shown(kind):
                self._hidden.add(path)
        self._row_kinds.setdefault(module.path, self._kinds.of(module.path))
        steps = self._add_steps(closures) if self.request.with_steps else []
        variables = self._variables(self._first(module.executions))
        name = "file" if module.kind == OTHER else module.kind_name
        return Product(module, self.name_of(module.path), name, inputs, steps, variables)

    def _is_shown(self, kind: FileKind) -> bool:
        return kind in USUAL or (self.request.with_tools and kind is FileKind.TOOL)

    def _add_steps(self, closures: Iterable[object]) -> list[int]:
        makers = Makers(self.image, closures)  # type: ignore[arg-type]
        outputs: defaultdict[int, set[int]] = defaultdict(set)
        for path, by_process in makers.made.items():
            for process in by_process:
                outputs[process].add(path)
        rows = []
        for process, maker in makers.by_process.items():
            row = max(maker.executions)
            rows.append(row)
            own = self._of_steps(maker.reads), self._of_steps(outputs[process])
            known = self.steps.get(row)
            if known is None:
                self.steps[row] = self._step(row, *own)
            else:
                known.inputs = sorted({*known.inputs, *own[0]})
                known.outputs = sorted({*known.outputs, *own[1]})
        return sorted(rows)

    def _of_steps(self, paths: Iterable[int]) -> list[int]:
        """Return the files of a step, sorted: temporary ones link it to others."""
        return sorted(
            path
            for path in paths
            if self._is_shown(self._kind(path)) or self._kind(path) is FileKind.TEMPORARY
        )

    def _kind(self, path: int) -> FileKind:
        if path not in self._row_kinds:
            self._row_kinds[path] = self._kinds.of(path)
        return self._row_kinds[path]

    def _step(self, row: int, inputs: list[int], outputs: list[int]) -> Step:
        executions = self.image["executions"]
        words = [text_of(word) for word in self._labels.arguments(row)]
        command = shlex.join(words) if self.request.with_parameters else ""
        label = text_of(os.fsencode(self._labels.of(row)))
        cwd = self.image.string(executions["cwd"][row])
        return Step(
            row,
            label if self.request.with_parameters else self._labels.program(row),
            command,
            self._redaction.text(text_of(self._relative(cwd))),
            executions["binary"][row],
            inputs,
            outputs,
            self._variables(row),
        )

    def _first(self, rows: Sequence[int]) -> int:
        """Return the build's first process: the oldest ancestor of some executions."""
        parent, at, seen = self.image["executions"]["parent"], min(rows), set[int]()
        while parent[at] != NONE and at not in seen:
            seen.add(at)
            at = parent[at]
        return at

    @cached_property
    def _environments(self) -> Mapping[int, list[bytes]]:
        return of_processes(self.image)

    def _variables(self, row: int) -> list[tuple[str, str]]:
        if not self.request.environment:
            return []
        texts = map(text_of, self._environments.get(self.image["executions"]["upid"][row], ()))
        return self._redaction.variables(texts, self.request.environment)

    # ---- files ----

    def name_of(self, row: int) -> str:
        """Return the name of a file: relative to the source root where it lies below it."""
        return self._redaction.text(text_of(self._relative(self.image.path_string(row))))

    def name_of_path(self, path: bytes) -> str:
        """Return a path as documents have it; the source root itself by its last part."""
        name = path.rpartition(b"/")[2] if path == self._root else self._relative(path)
        return self._redaction.text(text_of(name))

    def _relative(self, path: bytes) -> bytes:
        if self._root and path == self._root:
            return b"."
        below = self._root + b"/"
        return path[len(below) :] if self._root and path.startswith(below) else path

    def _find_files(self) -> dict[int, BillFile]:
        rows = {product.module.path for product in self.products}
        for product in self.products:
            rows.update(product.inputs)
        for step in self.steps.values():
            rows.update(step.inputs, step.outputs)
            if step.program != NONE:
                rows.add(step.program)
        paths = {row: self.image.path_string(row) for row in sorted(rows)}
        known = Hashes(self.image)
        by_links = {row for row in paths if self._is_read_by_links(row)}
        unsized = {step.program for step in self.steps.values()} - {NONE} | by_links
        pairs = ((path, self._size_of(row)) for row, path in paths.items())
        read = contents(
            pairs, build_end_ns(self.image), {paths[row] for row in unsized},
            with_sha1=self.request.with_sha1, max_bytes=self.request.max_hashed,
        )  # fmt: skip
        later = self._written_later()
        found = {}
        for row, path in paths.items():
            content = Content(CHANGED) if row in later else agreed(read[path], known.of(row))
            is_there = read[path].state in (SAME, UNREADABLE, LARGE)
            found[row] = BillFile(
                row, path, self.name_of(row), self._kind(row), bool(self._written[row]), content,
                is_there=is_there and read[path].sha256 in ("", content.sha256),
            )  # fmt: skip
        return found

    def _written_later(self) -> set[int]:
        """Return sources and headers that the build wrote again when it had read them."""
        opens, last_read, last_write = self.image["opens"], dict[int, int](), dict[int, int]()
        made = {row for product in self.products for row in product.inputs if self._written[row]}
        for path, mode, begin, end in zip(
            opens["path"], opens["mode"], opens["open_ns"], opens["close_ns"], strict=True
        ):
            if path in made:
                if IS_WRITE[mode]:
                    last_write[path] = max(begin, last_write.get(path, begin))
                else:
                    last_read[path] = max(begin, end, last_read.get(path, begin))
        return {path for path, at in last_write.items() if at > last_read.get(path, at)}

    def _is_read_by_links(self, row: int) -> bool:
        """Whether only symbolic links to a file were opened: the trace has their size, not its."""
        if self.image["paths"]["mode"][row]:
            return False
        first = self._opens.first(row)
        return first >= 0 and file_type(self.image["opens"]["mode"][first]) == stat.S_IFLNK

    def _size_of(self, row: int) -> int:
        return self._kinds.size_of(row)

    # ---- origins ----

    def _find_origins(self) -> None:
        sources = [
            file
            for file in self.files.values()
            if file.kind is not FileKind.TEMPORARY and file.content.state != SPECIAL
        ]
        foreign = [file for file in sources if not file.is_made]
        # a package that is there now says nothing of a file that is another one now
        self.origins = Origins([file.path for file in foreign if file.is_there])
        trees = Trees(self.origins.report)
        for file in foreign:
            file.package = self.origins.packages.get(file.path)
        for file in sources:
            if file.package is None and not self._is_built(file):
                file.tree = trees.of(file.path)
                if file.tree is not None:
                    file.tree_state = file.tree.state(file.path, file.content.blob)
        self.packages = sorted({file.package for file in foreign if file.package is not None})
        for product in self.products:
            libraries = [
                self.files[row] for row in product.inputs
                if self._kind(row) in (FileKind.LIBRARY, FileKind.OBJECT)
            ]  # fmt: skip
            owned = [f for f in libraries if f.package is not None]
            shared = {f.package for f in owned if b".so" in f.path and f.content.is_elf}
            static = {f.package for f in owned if b".so" not in f.path}
            product.static = sorted(each for each in static if each)
            product.dynamic = sorted(each for each in shared if each)

    @staticmethod
    def _is_built(file: BillFile) -> bool:
        return file.is_made and file.kind not in COMPILED

    @property
    def trees(self) -> list[Tree]:
        """The working trees that have files of the bill in their index, by path."""
        found = {tree.top: tree for tree in map(tracked, self.files.values()) if tree is not None}
        return [found[top] for top in sorted(found)]

    def trees_of(self, product: Product) -> list[Tree]:
        """Return the working trees of a module's inputs."""
        used = (tracked(self.files[row]) for row in product.inputs)
        tops = {tree.top for tree in used if tree is not None}
        return [tree for tree in self.trees if tree.top in tops]

    def is_dirty(self, tree: Tree) -> bool | None:
        """Whether a tracked file was changed, or a file that was read is not tracked."""
        new = (
            file.tree is tree and file.tree_state is State.UNTRACKED and not file.is_made
            for file in self.files.values()
        )
        return True if any(new) else tree.is_dirty

    def is_of_tools(self, package: Package) -> bool:
        """Whether only tools were used of a package, and nothing was linked with it."""
        files = self.files_of(package)
        return bool(files) and all(file.kind is FileKind.TOOL for file in files)

    def files_of(self, package: Package) -> list[BillFile]:
        """Return the files of a package, by row."""
        return self._by_package[package]

    @cached_property
    def _by_package(self) -> Mapping[Package, list[BillFile]]:
        found: defaultdict[Package, list[BillFile]] = defaultdict(list)
        for file in self.files.values():
            if file.package is not None:
                found[file.package].append(file)
        return found

    # ---- ids ----

    def _name_all(self) -> None:
        for file in self.files.values():
            content = file.content
            file.id = "file-" + digits(file.path, content.sha256 or content.state, file.kind.value)
        taken: Counter[str] = Counter()
        for step in sorted(self.steps.values(), key=self._key):
            files = [self.files[row].id for row in (*step.inputs, *step.outputs)]
            variables = [f"{name}={value}" for name, value in step.variables]
            found = digits(step.command, step.directory, step.label, *files, *variables)
            taken[found] += 1
            step.id = f"step-{found}" + (f"-{taken[found]}" if taken[found] > 1 else "")
        for product in self.products:
            own = [self.files[row].id for row in (product.module.path, *product.inputs)]
            product.id = "product-" + digits(product.name, *own)

    def _key(self, step: Step) -> tuple[int, int]:
        return self.image["executions"]["start_ns"][step.execution], step.execution

    @property
    def steps_in_order(self) -> list[Step]:
        """The steps by the time at which they began."""
        return sorted(self.steps.values(), key=self._key)

    @cached_property
    def content_digits(self) -> str:
        """Return digits that name everything in the document but its time."""
        request = self.request
        parties = [repr(each) for each in (request.supplier, request.creator)]
        said = (
            request.name, request.version, request.licence, request.cpe, request.copyright,
            etrace.__version__, *parties,
        )  # fmt: skip
        parts = [product.id for product in self.products]
        parts += [f"{tree.top!r} {tree.commit} {tree.remote} {self.is_dirty(tree)}"
                  for tree in self.trees]  # fmt: skip
        parts += [f"{file.note} {file.content} {file.package}" for file in self.files.values()]
        parts += [f"{package!r} {self.origins.terms(package)}" for package in self.packages]
        parts += [step.id for step in self.steps_in_order]
        parts += [file.id for file in self.files.values()]
        parts += [package.purl for package in self.packages]
        return digits(*said, *parts)

    @property
    def name(self) -> str:
        """The name of the document: the product's, else that of the only module or the tree."""
        if self.request.name:
            return self.request.name
        if len(self.products) == 1:
            return self.products[0].name.rpartition("/")[2]
        return text_of(self._root.rpartition(b"/")[2]) or "build"

    def product_name(self, product: Product) -> str:
        """Return the name of a component: of several the file says which."""
        name = product.name.rpartition("/")[2]
        if self.request.name and len(self.products) == 1:
            return self.request.name
        return f"{self.request.name}/{name}" if self.request.name else name

    @property
    def namespace(self) -> str:
        """The base of the ids."""
        if self.request.namespace:
            return self.request.namespace
        plain = "".join(
            c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in self.name
        )
        return f"https://spdx.org/spdxdocs/{plain}-{self.content_digits}"

    def version_of(self, product: Product) -> str:
        """Return the version of a module: the user's, else a commit, else its own digest."""
        if self.request.version:
            return self.request.version
        trees = self.trees_of(product)
        is_dirty = self.is_dirty(trees[0]) if len(trees) == 1 and trees[0].commit else None
        if is_dirty is not None:
            return f"{trees[0].commit}-dirty" if is_dirty else trees[0].commit
        content = self.files[product.module.path].content
        return f"sha256:{content.sha256}" if content.sha256 else "unknown"

    def licence_of(self, product: Product) -> str:
        """Return the licences that the files of a module name, as one expression; may be empty.

        Files of packages do not count: those say what the module was compiled and linked with.
        """
        own = (self.files[row] for row in product.inputs)
        tags = {file.content.tag for file in own if file.package is None} - {""}
        return " AND ".join(
            f"({tag})" if len(tags) > 1 and " " in tag else tag for tag in sorted(tags)
        )

    @property
    def hidden(self) -> Counter[FileKind]:
        """How many files of which kinds were read on the way without being inputs."""
        return Counter(self._kind(path) for path in self._hidden if path not in self.files)

    def unhashed(self) -> Iterator[tuple[str, int]]:
        """Yield why files have no hash, and how many."""
        reasons = Counter(
            "removed by the build" if file.kind is FileKind.TEMPORARY else file.content.state
            for file in self.files.values()
            if not file.content.sha256
        )
        yield from sorted(reasons.items())


def tracked(file: BillFile) -> Tree | None:
    """Return the working tree that has a file in its index."""
    return file.tree if file.tree_state in (State.CLEAN, State.MODIFIED) else None


def agreed(read: Content, known: FileHash | None) -> Content:
    """Return what the database knows of a file, with what was read where both agree."""
    if known is None:
        return read
    if not known.is_of_build:
        return Content(known.state, known.size)
    if read.sha256 == known.sha256:
        return read
    return Content(known.state, known.size, sha256=known.sha256, blob=known.git_blob)
