# SPDX-License-Identifier: Apache-2.0
"""A bill -> an in-toto statement with the predicate SLSA provenance v1.

"in-toto Attestation Framework", Statement v1; slsa.dev, "Provenance" version 1. Subjects are the
modules; what was read is in resolvedDependencies, the working trees by their commits. Steps
are internal parameters, because a builder's user does not set them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import etrace
from etrace.errors import EtraceError
from etrace.export.sbom.bill import Bill
from etrace.export.sbom.parts import BillFile
from etrace.export.sbom.stream import JsonStream, compact
from etrace.spec.database import NONE

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:linux-build-tracer:build:v1"
BUILDER = "urn:linux-build-tracer:builder"


def write(stream: BinaryIO, bill: Bill) -> None:
    """Write the statement. EtraceError when no module has a digest."""
    modules = [bill.files[product.module.path] for product in bill.products]
    subjects = [_descriptor(file) for file in modules if file.content.sha256]
    if not subjects:
        raise EtraceError(
            "no module has a digest: they are gone, or have changed since the build",
            "in-toto names modules by their digests; trace with hashes, or export before they go",
        )
    writer, out = _Writer(bill), JsonStream(stream)
    out.value("_type", STATEMENT)
    out.values("subject", subjects)
    out.value("predicateType", PREDICATE)
    out.begin("predicate", "{")
    out.begin("buildDefinition", "{")
    out.value("buildType", BUILD_TYPE)
    out.value("externalParameters", writer.parameters())
    out.begin("internalParameters", "{")
    out.values("steps", writer.steps())
    out.values("withoutDigest", writer.nameless())
    out.end("}")
    out.values("resolvedDependencies", writer.dependencies())
    out.end("}")
    builder = {"id": BUILDER, "version": {"etrace": etrace.__version__}}
    out.value("runDetails", {"builder": builder, "metadata": {"invocationId": bill.content_digits}})
    out.end("}")
    out.close()


class _Writer:
    """Makes the parts of one statement."""

    def __init__(self, bill: Bill) -> None:
        self._bill = bill

    def parameters(self) -> dict[str, Any]:
        bill = self._bill
        variables = dict(pair for product in bill.products for pair in product.variables)
        return compact(
            modules=[product.name for product in bill.products], version=bill.request.version,
            environment=variables,
        )  # fmt: skip

    def steps(self) -> Iterator[dict[str, Any]]:
        bill = self._bill
        for step in bill.steps_in_order:
            yield compact(
                id=step.id, name=step.label, command=step.command, directory=step.directory,
                program="" if step.program == NONE else bill.files[step.program].name,
                inputs=[bill.files[row].name for row in step.inputs],
                outputs=[bill.files[row].name for row in step.outputs],
                environment=dict(step.variables),
            )  # fmt: skip

    def dependencies(self) -> Iterator[dict[str, Any]]:
        bill = self._bill
        for tree in bill.trees:
            if tree.commit:
                yield compact(
                    name=bill.name_of_path(tree.top), uri=tree.place,
                    digest={"gitCommit": tree.commit}, annotations={"dirty": bill.is_dirty(tree)},
                )  # fmt: skip
        for file in self._read():
            if file.content.sha256:
                yield _descriptor(file)

    def nameless(self) -> Iterator[dict[str, Any]]:
        """Yield what was read and has no digest, which a ResourceDescriptor must have."""
        for file in self._read():
            if not file.content.sha256:
                yield compact(name=file.name, kind=file.kind.value, note=file.note)

    def _read(self) -> Iterator[BillFile]:
        bill = self._bill
        rows = {row for product in bill.products for row in product.inputs}
        rows |= {step.program for step in bill.steps.values()} - {NONE}
        yield from (bill.files[row] for row in sorted(rows))


def _descriptor(file: BillFile) -> dict[str, Any]:
    """Return the ResourceDescriptor of a file with digests."""
    content = file.content
    digest = compact(sha256=content.sha256, sha512=content.sha512, gitBlob=content.blob)
    said = compact(kind=file.kind.value, note=file.note, licence=content.tag)
    if file.package is not None:
        said["package"] = file.package.purl
    return compact(name=file.name, digest=digest, annotations=said)
