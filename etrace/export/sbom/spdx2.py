# SPDX-License-Identifier: Apache-2.0
"""A bill -> SPDX 2.3 as JSON, for readers that do not know SPDX 3.

Specification: "SPDX Specification 2.3" (ISO/IEC 5962). It has no builds: modules, packages, the
files that went in and the tools are there, steps, parameters and environments are not. Each file
must have a SHA-1; those without content are listed in the comment of the document.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import etrace
from etrace.export.sbom.bill import Bill
from etrace.export.sbom.licences import Licences
from etrace.export.sbom.parts import BillFile, Party, Product, package_id, read_party, tree_id
from etrace.export.sbom.spdx3 import said_of
from etrace.export.sbom.stream import JsonStream, compact
from etrace.origin.git import Tree
from etrace.origin.package import Package
from etrace.query.rows.file_kinds import FileKind
from etrace.spec.database import NONE

DOCUMENT = "SPDXRef-DOCUMENT"
NO_ASSERTION = "NOASSERTION"
TYPES = {
    FileKind.SOURCE: "SOURCE", FileKind.HEADER: "SOURCE", FileKind.OBJECT: "BINARY",
    FileKind.LIBRARY: "ARCHIVE", FileKind.EXECUTABLE: "BINARY", FileKind.TOOL: "APPLICATION",
}  # fmt: skip


def write(stream: BinaryIO, bill: Bill) -> None:
    """Write the document."""
    writer, out = _Writer(bill), JsonStream(stream)
    out.value("spdxVersion", "SPDX-2.3")
    out.value("dataLicense", "CC0-1.0")
    out.value("SPDXID", DOCUMENT)
    out.value("name", bill.name)
    out.value("documentNamespace", bill.namespace)
    out.value("comment", " ".join((*said_of(bill), *writer.missing())))
    creators = [f"Tool: etrace-{etrace.__version__}"]
    if bill.request.creator:
        creators.append(_party(bill.request.creator))
    out.value("creationInfo", {"created": bill.request.created, "creators": creators})
    out.value("documentDescribes", [_ref(product.id) for product in bill.products])
    out.values("packages", writer.packages())
    out.values("files", writer.files())
    out.values("relationships", writer.relationships())
    out.values("hasExtractedLicensingInfos", writer.licences.extracted())
    out.close()


def _ref(name: str) -> str:
    return f"SPDXRef-{name}"


def _party(party: Party) -> str:
    contact = f" ({party.contact})" if "@" in party.contact else ""
    return f"Organization: {party.name}{contact}"


class _Writer:
    """Makes the parts of one document."""

    def __init__(self, bill: Bill) -> None:
        self._bill = bill
        self.licences = Licences()

    def _has(self, row: int) -> bool:
        return bool(self._bill.files[row].content.sha1)

    def missing(self) -> Iterator[str]:
        """Yield what files the document cannot hold."""
        lost = [file.name for file in self._bill.files.values() if not file.content.sha1]
        if lost:
            yield f"Files without content, which this format cannot list: {', '.join(lost)}."

    def packages(self) -> Iterator[dict[str, Any]]:
        for product in self._bill.products:
            yield self._product(product)
        for package in self._bill.packages:
            yield self._package(package)
        for tree in self._bill.trees:
            yield self._tree(tree)

    def _common(self, name: str, spdx_id: str, version: str, **values: Any) -> dict[str, Any]:
        usual = dict.fromkeys(
            ("downloadLocation", "licenseConcluded", "licenseDeclared", "copyrightText"),
            NO_ASSERTION,
        )
        return {
            "name": name, "SPDXID": spdx_id, "versionInfo": version, "filesAnalyzed": False,
            **usual, **compact(**values),
        }  # fmt: skip

    def _product(self, product: Product) -> dict[str, Any]:
        bill, request = self._bill, self._bill.request
        content = bill.files[product.module.path].content
        declared = self.licences.known(bill.licence_of(product))
        cpe = {
            "referenceCategory": "SECURITY",
            "referenceType": "cpe23Type",
            "referenceLocator": request.cpe,
        }
        return self._common(
            bill.product_name(product), _ref(product.id), bill.version_of(product),
            supplier=_party(request.supplier) if request.supplier else NO_ASSERTION,
            packageFileName=product.name, primaryPackagePurpose="INSTALL",
            licenseDeclared=declared,
            licenseConcluded=self.licences.known(request.licence) or declared,
            checksums=[
                {"algorithm": name, "checksumValue": value}
                for name, value in _digests(content.sha1, content.sha256, content.sha512)
            ],
            externalRefs=[cpe] if request.cpe else [], copyrightText=request.copyright,
        )  # fmt: skip

    def _package(self, package: Package) -> dict[str, Any]:
        supplier = read_party(package.supplier) if package.supplier else None
        terms = self._bill.origins.terms(package)
        declared = self.licences.known(terms.expression, terms.text)
        purl = {
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": package.purl,
        }
        return self._common(
            package.name, _ref(package_id(package)), package.version or "unknown",
            supplier=_party(supplier) if supplier else NO_ASSERTION, licenseDeclared=declared,
            licenseConcluded=declared, externalRefs=[purl], copyrightText=terms.copyright,
        )  # fmt: skip

    def _tree(self, tree: Tree) -> dict[str, Any]:
        return self._common(
            self._bill.name_of_path(tree.top), _ref(tree_id(tree)),
            tree.commit or "unknown", supplier=NO_ASSERTION, downloadLocation=tree.place,
            primaryPackagePurpose="SOURCE",
            comment="with changes that are not committed" if self._bill.is_dirty(tree) else "",
        )  # fmt: skip

    def files(self) -> Iterator[dict[str, Any]]:
        for file in self._bill.files.values():
            if file.content.sha1:
                yield self._file(file)

    def _file(self, file: BillFile) -> dict[str, Any]:
        content = file.content
        tag = self.licences.known(content.tag)
        name = f"./{file.name.lstrip('/')}"  # no name may be absolute
        checksums = [
            {"algorithm": algorithm, "checksumValue": value}
            for algorithm, value in _digests(content.sha1, content.sha256, content.sha512)
        ]
        return {
            "fileName": name, "SPDXID": _ref(file.id), "checksums": checksums,
            "fileTypes": [TYPES.get(file.kind, "OTHER")], "licenseConcluded": NO_ASSERTION,
            "licenseInfoInFiles": self.licences.names(tag) or [NO_ASSERTION],
            "copyrightText": NO_ASSERTION, **compact(comment=file.note),
        }  # fmt: skip

    def relationships(self) -> Iterator[dict[str, str]]:
        bill = self._bill
        for product in bill.products:
            own = _ref(product.id)
            yield _relation(DOCUMENT, "DESCRIBES", own)
            for tree in bill.trees_of(product):
                other = _ref(tree_id(tree))
                yield _relation(own, "GENERATED_FROM", other)
            for row in filter(self._has, product.inputs):
                yield _relation(own, "GENERATED_FROM", _ref(bill.files[row].id))
            if self._has(product.module.path):
                module = _ref(bill.files[product.module.path].id)
                yield _relation(own, "DISTRIBUTION_ARTIFACT", module)
            for kind, packages in (
                ("STATIC_LINK", product.static), ("DYNAMIC_LINK", product.dynamic)
            ):  # fmt: skip
                for package in packages:
                    yield _relation(own, kind, _ref(package_id(package)))
            programs = {bill.steps[row].program for row in product.steps} - {NONE}
            for row in filter(self._has, sorted(programs)):
                yield _relation(_ref(bill.files[row].id), "BUILD_TOOL_OF", own)
        for package in bill.packages:
            for file in bill.files_of(package):
                if file.content.sha1:
                    other = _ref(package_id(package))
                    comment = "the build read this file of the package"
                    yield {**_relation(other, "OTHER", _ref(file.id)), "comment": comment}


def _digests(sha1: str, sha256: str, sha512: str) -> Iterator[tuple[str, str]]:
    for name, value in (("SHA1", sha1), ("SHA256", sha256), ("SHA512", sha512)):
        if value:
            yield name, value


def _relation(source: str, kind: str, target: str) -> dict[str, str]:
    return {"spdxElementId": source, "relationshipType": kind, "relatedSpdxElement": target}
