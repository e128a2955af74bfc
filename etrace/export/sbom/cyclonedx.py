# SPDX-License-Identifier: Apache-2.0
"""A bill -> CycloneDX 1.6 as JSON: modules, packages and files as components, with dependencies.

Specification: ECMA-424. Its formulation has steps without inputs and outputs, so steps are in
SPDX 3 and in-toto only. Tools are components with the scope excluded.
Properties begin with `etrace:`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any, BinaryIO

import etrace
from etrace.export.sbom.bill import Bill
from etrace.export.sbom.licences import Licences
from etrace.export.sbom.parts import BillFile, Party, Product, package_id, read_party, tree_id
from etrace.export.sbom.stream import JsonStream, compact
from etrace.origin.package import Package
from etrace.query.rows.file_kinds import FileKind

SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"
KINDS = {"archive": "library", "shared object": "library", "partial link": "file", "file": "file"}


def write(stream: BinaryIO, bill: Bill) -> None:
    """Write the document."""
    writer, out = _Writer(bill), JsonStream(stream)
    out.value("$schema", SCHEMA)
    out.value("bomFormat", "CycloneDX")
    out.value("specVersion", "1.6")
    serial = uuid.uuid5(uuid.NAMESPACE_URL, f"{bill.namespace}#{bill.content_digits}")
    out.value("serialNumber", f"urn:uuid:{serial}")
    out.value("version", 1)
    out.value("metadata", writer.metadata())
    out.values("components", writer.components())
    out.values("dependencies", writer.dependencies())
    out.close()


def _organisation(party: Party | None) -> dict[str, Any]:
    if party is None:
        return {}
    contact = [{"name": party.name, "email": party.contact}] if "@" in party.contact else []
    urls = [party.contact] if "://" in party.contact else []
    return compact(name=party.name, url=urls, contact=contact)


class _Writer:
    """Makes the parts of one document."""

    def __init__(self, bill: Bill) -> None:
        self._bill = bill
        self._licences = Licences()
        self._top = "build-" + bill.content_digits

    def metadata(self) -> dict[str, Any]:
        bill, request = self._bill, self._bill.request
        tool = {"type": "application", "name": "etrace", "version": etrace.__version__}
        supplier = _organisation(request.supplier)
        top = compact(
            type="application", bom_ref=self._top, name=bill.name, supplier=supplier,
            version=request.version or bill.version_of(bill.products[0]), cpe=request.cpe,
            licenses=self._licence(request.licence),
        )  # fmt: skip
        problems = [{"name": "etrace:problem", "value": each} for each in bill.origins.problems]
        return compact(
            timestamp=request.created, tools={"components": [tool]}, component=_refs(top),
            authors=_authors(request.creator), manufacturer=_organisation(request.creator),
            supplier=supplier, lifecycles=[{"phase": "build"}], properties=problems,
        )  # fmt: skip

    def _licence(self, expression: str) -> list[dict[str, str]]:
        known = self._licences.known(expression)
        return [{"expression": known}] if known else []

    def components(self) -> Iterator[dict[str, Any]]:
        for product in self._bill.products:
            yield self._product(product)
        for package in self._bill.packages:
            yield self._package(package)
        for tree in self._bill.trees:
            dirty = str(self._bill.is_dirty(tree)).lower()
            yield _refs(
                compact(
                    type="data", bom_ref=tree_id(tree),
                    name=self._bill.name_of_path(tree.top), version=tree.commit or "unknown",
                    externalReferences=[{"type": "vcs", "url": tree.place}] if tree.place else [],
                    properties=[{"name": "etrace:dirty", "value": dirty}],
                )
            )  # fmt: skip
        for file in self._bill.files.values():
            yield self._file(file)

    def _product(self, product: Product) -> dict[str, Any]:
        bill, request = self._bill, self._bill.request
        content = bill.files[product.module.path].content
        expression = request.licence or bill.licence_of(product)
        return _refs(
            compact(
                type=KINDS.get(product.kind, "application"), bom_ref=product.id,
                name=bill.product_name(product), version=bill.version_of(product),
                supplier=_organisation(request.supplier), hashes=_hashes(content),
                licenses=self._licence(expression), cpe=request.cpe, copyright=request.copyright,
                properties=[{"name": "etrace:file", "value": product.name}],
            )
        )  # fmt: skip

    def _package(self, package: Package) -> dict[str, Any]:
        supplier = read_party(package.supplier) if package.supplier else None
        is_of_tools = self._bill.is_of_tools(package)
        return _refs(
            compact(
                type="application" if is_of_tools else "library", bom_ref=package_id(package),
                name=package.name, scope="excluded" if is_of_tools else "",
                version=package.version or "unknown", purl=package.purl,
                supplier=_organisation(supplier),
                licenses=self._licence(self._bill.origins.terms(package).expression),
                copyright=self._bill.origins.terms(package).copyright,
            )
        )  # fmt: skip

    def _file(self, file: BillFile) -> dict[str, Any]:
        notes = {
            "etrace:kind": file.kind.value,
            "etrace:note": file.note,
            "etrace:gitBlob": file.content.blob,
            "etrace:package": file.package.purl if file.package is not None else "",
        }
        return _refs(
            compact(
                type="file", bom_ref=file.id, name=file.name, hashes=_hashes(file.content),
                scope="excluded" if file.kind is FileKind.TOOL else "",
                licenses=self._licence(file.content.tag),
                properties=[
                    {"name": name, "value": value} for name, value in notes.items() if value
                ],
            )
        )  # fmt: skip

    def dependencies(self) -> Iterator[dict[str, Any]]:
        bill = self._bill
        yield {"ref": self._top, "dependsOn": [product.id for product in bill.products]}
        for product in bill.products:
            linked = {package_id(each) for each in (*product.static, *product.dynamic)}
            inputs = {bill.files[row].id for row in product.inputs}
            yield {"ref": product.id, "dependsOn": sorted(linked | inputs)}


def _refs(component: dict[str, Any]) -> dict[str, Any]:
    """Return a component with the key that Python cannot name."""
    return {("bom-ref" if key == "bom_ref" else key): value for key, value in component.items()}


def _authors(party: Party | None) -> list[dict[str, str]]:
    if party is None:
        return []
    email = {"email": party.contact} if "@" in party.contact else {}
    return [{"name": party.name, **email}]


def _hashes(content: Any) -> list[dict[str, str]]:
    named = (("SHA-256", content.sha256), ("SHA-512", content.sha512))
    return [{"alg": name, "content": value} for name, value in named if value]
