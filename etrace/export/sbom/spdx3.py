# SPDX-License-Identifier: Apache-2.0
"""A bill -> SPDX 3.0.1 as JSON-LD: profiles core, software, build and simple licensing.

Terms: "The System Package Data Exchange (SPDX) Specification Version 3.0.1". A module is a Package
(purpose install) with its file as distribution artifact, and a Build with what went into it; each
step is a Build of its own, which the module's is an ancestor of. Packages that libraries come from
are linked; those of headers and tools contain the files that were used. BSI TR-03183-2 section 8:
a file whose contents have no list of their own is `firmware`, an archive `container`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import etrace
from etrace.export.sbom.bill import Bill
from etrace.export.sbom.licences import Licences
from etrace.export.sbom.parts import (
    BillFile,
    Party,
    Product,
    Step,
    digits,
    package_id,
    read_party,
    tree_id,
)
from etrace.export.sbom.stream import JsonStream, compact
from etrace.origin.git import Tree
from etrace.origin.package import Package
from etrace.query.rows.file_kinds import FileKind
from etrace.spec.database import NONE
from etrace.spec.suffixes import CONTAINERS

CONTEXT = "https://spdx.org/rdf/3.0.1/spdx-context.jsonld"
MODULE_TYPE = "urn:linux-build-tracer:module:v1"
STEP_TYPE = "urn:linux-build-tracer:step:v1"
PURPOSES = {
    FileKind.SOURCE: "source", FileKind.HEADER: "source", FileKind.OBJECT: "module",
    FileKind.LIBRARY: "library", FileKind.EXECUTABLE: "executable",
    FileKind.CONFIG: "configuration", FileKind.DATA: "data", FileKind.TOOL: "application",
    FileKind.TEMPORARY: "other",
}  # fmt: skip
CREATION = "_:creation"
Element = dict[str, Any]


def write(stream: BinaryIO, bill: Bill) -> None:
    """Write the document."""
    out = JsonStream(stream)
    out.value("@context", CONTEXT)
    out.begin("@graph", "[")
    out.elements(_Writer(bill).elements())
    out.end("]")
    out.close()


class _Writer:
    """Makes the elements of one document."""

    def __init__(self, bill: Bill) -> None:
        self._bill, self._request = bill, bill.request
        self._base = f"{bill.namespace}#"
        self._ids: list[str] = []
        self._licences: dict[str, str] = {}
        self._names = Licences()
        self._agents: dict[Party, str] = {}
        modules = [bill.files[product.module.path] for product in bill.products]
        #: whether the build seems to have run here: the module that it made is there
        self._is_host = any(module.is_there and module.content.sha256 for module in modules)

    def elements(self) -> Iterator[Element]:
        """Yield every element; the document and its bill are the last."""
        tool = self._id("tool-etrace")
        author = self._request.creator
        created_by = self._agent_id(author) if author else self._id("agent-etrace")
        yield {
            "type": "CreationInfo", "@id": CREATION, "specVersion": "3.0.1",
            "created": self._request.created, "createdBy": [created_by], "createdUsing": [tool],
        }  # fmt: skip
        yield self._element("Tool", tool, name=f"etrace-{etrace.__version__}")
        if author is None:
            yield self._element("SoftwareAgent", created_by, name="etrace")
        if self._is_host:
            yield from self._host()
        for file in self._bill.files.values():
            yield self._file(file)
        for package in self._bill.packages:
            yield from self._package(package)
        for tree in self._bill.trees:
            yield self._tree(tree)
        for step in self._bill.steps_in_order:
            yield from self._step(step)
        for product in self._bill.products:
            yield from self._product(product)
        yield from self._file_licences()
        for party, name in self._agents.items():
            yield self._agent(party, name)
        for expression, name in self._licences.items():
            yield from self._expression(expression, name)
        yield from self._licence_texts()
        yield from self._document()

    def _expression(self, expression: str, spdx_id: str) -> Iterator[Element]:
        """Yield an expression that refers to the texts of licences that no list has."""
        own = [(name, self._text_id(name)) for name in self._names.references(expression)]
        yield self._element(
            "simplelicensing_LicenseExpression", spdx_id,
            simplelicensing_licenseExpression=expression,
            simplelicensing_customIdToUri=_entries(own),
        )  # fmt: skip

    def _text_id(self, reference: str) -> str:
        return self._id("text-" + digits(reference))

    def _licence_texts(self) -> Iterator[Element]:
        for each in self._names.extracted():
            yield self._element(
                "simplelicensing_SimpleLicensingText", self._text_id(each["licenseId"]),
                name=each["name"], simplelicensing_licenseText=each["extractedText"],
            )  # fmt: skip

    def _document(self) -> Iterator[Element]:
        roots = [self._id(product.id) for product in self._bill.products]
        sbom, document = self._id("sbom"), self._id("document")
        elements = list(self._ids)
        profiles = ["core", "software", "build", "simpleLicensing"]
        yield self._element(
            "software_Sbom", sbom, name=self._bill.name, rootElement=roots, element=elements,
            software_sbomType=["build"], profileConformance=profiles,
        )  # fmt: skip
        yield self._element(
            "SpdxDocument", document, name=self._bill.name, rootElement=[sbom],
            profileConformance=profiles, comment=" ".join(said_of(self._bill)),
        )  # fmt: skip

    # ---- what all have ----

    def _id(self, name: str) -> str:
        return self._base + name

    def _element(self, kind: str, spdx_id: str, **values: Any) -> Element:
        self._ids.append(spdx_id)
        return {"type": kind, "spdxId": spdx_id, "creationInfo": CREATION, **compact(**values)}

    def _relation(
        self, kind: str, source: str, targets: Iterable[str], scope: str = ""
    ) -> Iterator[Element]:
        """Yield one relationship to all targets, none without any; with a scope one of a build.

        What a build did is complete: the trace has it. Nothing is known of the rest of a package.
        """
        found = sorted(set(targets))
        if found:
            yield self._element(
                "LifecycleScopedRelationship" if scope else "Relationship",
                self._id("relation-" + digits(kind, source, *found)),
                from_=source, to=found, relationshipType=kind, scope=scope,
                completeness="complete" if scope else "noAssertion",
            )  # fmt: skip

    def _agent_id(self, party: Party) -> str:
        return self._agents.setdefault(
            party, self._id("agent-" + digits(party.name, party.contact))
        )

    def _agent(self, party: Party, spdx_id: str) -> Element:
        is_url = "://" in party.contact
        identifiers = [
            {
                "type": "ExternalIdentifier",
                "externalIdentifierType": "urlScheme" if is_url else "email",
                "identifier": party.contact,
            }
        ]
        return self._element(
            "Organization", spdx_id, name=party.name,
            externalIdentifier=identifiers if party.contact else [],
        )  # fmt: skip

    def _licence(self, said: str, text: str = "") -> list[str]:
        """Return the id of an expression, nothing when it is malformed."""
        found = self._names.known(said, text)
        if not found:
            return []
        return [self._licences.setdefault(found, self._id("licence-" + digits(found)))]

    def _host(self) -> Iterator[Element]:
        release = self._bill.origins.release
        yield self._element(
            "software_Package", self._id("host"), name=release.title,
            software_primaryPurpose="operatingSystem",
            software_packageVersion=release.version or "unknown",
            comment="the system where this document was made, and where a module is as built",
        )  # fmt: skip

    # ---- files and packages ----

    def _file(self, file: BillFile, *more: str) -> Element:
        content = file.content
        hashes = [
            {"type": "Hash", "algorithm": name, "hashValue": value}
            for name, value in (("sha256", content.sha256), ("sha512", content.sha512))
            if value
        ]
        blob = {
            "type": "software_ContentIdentifier",
            "software_contentIdentifierType": "gitoid",
            "software_contentIdentifierValue": f"gitoid:blob:sha1:{content.blob}",
        }
        return self._element(
            "software_File", self._id(file.id), name=file.name,
            software_primaryPurpose=PURPOSES[file.kind], software_fileKind="file",
            software_additionalPurpose=[*_form(file), *more], verifiedUsing=hashes,
            software_contentIdentifier=[blob] if content.blob else [], comment=file.note,
        )  # fmt: skip

    def _package(self, package: Package) -> Iterator[Element]:
        spdx_id = self._id(package_id(package))
        supplier = read_party(package.supplier) if package.supplier else None
        yield self._element(
            "software_Package", spdx_id, name=package.name,
            software_packageVersion=package.version or "unknown",
            software_packageUrl=package.purl,
            software_primaryPurpose="application" if self._bill.is_of_tools(package) else "library",
            suppliedBy=self._agent_id(supplier) if supplier else "",
            originatedBy=[self._agent_id(supplier)] if supplier else [],
            externalIdentifier=[_external("packageUrl", package.purl)],
            software_copyrightText=self._bill.origins.terms(package).copyright,
        )  # fmt: skip
        used = [self._id(file.id) for file in self._bill.files_of(package)]
        yield from self._relation("contains", spdx_id, used)
        # BSI TR-03183-2 asks for a file name of each component: those that were used
        yield from self._relation("hasDistributionArtifact", spdx_id, used)
        said = self._bill.origins.terms(package)
        if said.expression:
            licence = self._licence(said.expression, said.text)
            for kind in ("hasDeclaredLicense", "hasConcludedLicense"):
                yield from self._relation(kind, spdx_id, licence)

    def _tree(self, tree: Tree) -> Element:
        place = tree.place
        words = {True: "with changes that are not committed", False: "", None: "changes not known"}
        reference = {"type": "ExternalRef", "externalRefType": "vcs", "locator": [place]}
        return self._element(
            "software_Package", self._id(tree_id(tree)),
            name=self._bill.name_of_path(tree.top), software_primaryPurpose="source",
            software_packageVersion=tree.commit or "unknown", software_downloadLocation=place,
            externalRef=[reference] if place else [], comment=words[self._bill.is_dirty(tree)],
        )  # fmt: skip

    def _file_licences(self) -> Iterator[Element]:
        for file in self._bill.files.values():
            if file.content.tag:
                licence = self._licence(file.content.tag)
                yield from self._relation("hasDeclaredLicense", self._id(file.id), licence)

    # ---- builds ----

    def _build(self, spdx_id: str, kind: str, name: str, step: Step | Product) -> Element:
        said = (
            {"command": step.command, "directory": step.directory} if isinstance(step, Step) else {}
        )
        return self._element(
            "build_Build", spdx_id, name=name, build_buildType=kind,
            build_parameter=_entries((key, value) for key, value in said.items() if value),
            build_environment=_entries(step.variables),
        )  # fmt: skip

    def _files(self, rows: Iterable[int]) -> list[str]:
        return [self._id(self._bill.files[row].id) for row in rows]

    def _step(self, step: Step) -> Iterator[Element]:
        spdx_id = self._id(step.id)
        yield self._build(spdx_id, STEP_TYPE, step.label, step)
        yield from self._relation("hasInput", spdx_id, self._files(step.inputs), "build")
        yield from self._relation("hasOutput", spdx_id, self._files(step.outputs), "build")
        if step.program != NONE:
            yield from self._relation("usesTool", spdx_id, self._files([step.program]), "build")

    def _product(self, product: Product) -> Iterator[Element]:
        bill, request = self._bill, self._request
        module = bill.files[product.module.path]
        package, build = self._id(product.id), self._id("build-" + product.id)
        supplier = self._agent_id(request.supplier) if request.supplier else ""
        yield self._element(
            "software_Package", package, name=bill.product_name(product),
            software_packageVersion=bill.version_of(product), software_primaryPurpose="install",
            suppliedBy=supplier, originatedBy=[supplier] if supplier else [],
            externalIdentifier=[_external("cpe23", request.cpe)] if request.cpe else [],
            software_copyrightText=request.copyright,
            comment=f"{product.kind} {product.name}",
        )  # fmt: skip
        declared = bill.licence_of(product)
        for kind, said in (
            ("hasDeclaredLicense", declared),
            ("hasConcludedLicense", request.licence),
        ):
            yield from self._relation(kind, package, self._licence(said))
        yield from self._relation("hasDistributionArtifact", package, [self._id(module.id)])
        for kind, packages in (
            ("hasStaticLink", product.static),
            ("hasDynamicLink", product.dynamic),
        ):
            yield from self._relation(kind, package, (self._id(package_id(p)) for p in packages))
        yield self._build(build, MODULE_TYPE, product.name, product)
        inputs = self._files(product.inputs)
        trees = [self._id(tree_id(tree)) for tree in bill.trees_of(product)]
        yield from self._relation("hasInput", build, [*inputs, *trees], "build")
        yield from self._relation("hasOutput", build, [package, self._id(module.id)], "build")
        steps = [bill.steps[row] for row in product.steps]
        tools = self._files(step.program for step in steps if step.program != NONE)
        yield from self._relation("usesTool", build, tools, "build")
        if self._is_host:
            yield from self._relation("hasHost", build, [self._id("host")], "build")
        if request.creator:
            yield from self._relation(
                "invokedBy", build, [self._agent_id(request.creator)], "build"
            )
        yield from self._relation("ancestorOf", build, (self._id(step.id) for step in steps))
        for tree in trees:
            yield from self._relation("generates", tree, [package])


def _entries(pairs: Iterable[tuple[str, str]]) -> list[Element]:
    return [{"type": "DictionaryEntry", "key": key, "value": value} for key, value in pairs]


def _external(kind: str, identifier: str) -> Element:
    return {
        "type": "ExternalIdentifier",
        "externalIdentifierType": kind,
        "identifier": identifier,
    }


def _form(file: BillFile) -> list[str]:
    """Return what BSI TR-03183-2 asks of a file: executable, archive, structured or not."""
    if file.path.endswith(CONTAINERS):
        return ["archive", "container"]
    is_executable = file.kind is FileKind.EXECUTABLE
    return ["executable", "firmware"] if is_executable else ["firmware"]


def said_of(bill: Bill) -> Iterator[str]:
    """Yield what a reader of a document must know about what is not in it."""
    yield "Made by etrace from the system calls of the build."
    for reason, n_files in bill.unhashed():
        yield f"Without a hash, {reason}: {n_files}."
    for problem in bill.origins.problems:
        yield f"Not known: {problem}."
