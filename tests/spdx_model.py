# SPDX-License-Identifier: Apache-2.0
"""What spdx3-validate fetches from spdx.org, made from spdx-python-model, which has all of it.

A test has no network. The classes of `spdx_python_model` are generated from the model of SPDX 3.0.1
by shacl2code: their names, properties, counts, patterns and enumerations go back into SHACL and
into the JSON-LD context here, and shacl2code makes the JSON schema of these.
"""

from __future__ import annotations

import email.message
import io
import json
import subprocess
import sys
import tempfile
import urllib.request
import urllib.response
from functools import cache
from pathlib import Path
from typing import Any

import rdflib
from rdflib import OWL, RDF, RDFS, SH, XSD, BNode, Literal, URIRef
from rdflib.collection import Collection
from spdx_python_model.bindings.v3_0_1 import model as spdx3

SERVED = "https://spdx.org/"
BASE = "https://spdx.org/rdf/3.0.1/"
TO_CODE = rdflib.Namespace("https://jpewdev.github.io/shacl2code/schema#")
TYPES = {
    "StringProp": XSD.string, "AnyURIProp": XSD.anyURI, "DateTimeProp": XSD.dateTime,
    "DateTimeStampProp": XSD.dateTimeStamp, "IntegerProp": XSD.integer,
    "PositiveIntegerProp": XSD.positiveInteger, "NonNegativeIntegerProp": XSD.nonNegativeInteger,
    "BooleanProp": XSD.boolean, "FloatProp": XSD.decimal,
}  # fmt: skip


def classes() -> list[Any]:
    """Return the classes of the model."""
    base = spdx3.SHACLObject
    found: list[Any] = [each for each in vars(spdx3).values() if isinstance(each, type)]
    return [each for each in found if issubclass(each, base) and str(each._TYPE).startswith(BASE)]


def _own(kind: Any) -> list[Any]:
    """Return the properties that a class adds to those of its parents."""
    inherited = {iri for parent in kind.__bases__ for iri in parent._OBJ_IRI_PROPS}
    return [own for iri, own in kind._OBJ_IRI_PROPS.items() if iri not in inherited]


def _range(prop: Any) -> tuple[bool, Any]:
    """Return whether a property is a list, and the property of an element."""
    is_list = type(prop).__name__ == "ListProp"
    return is_list, prop.prop if is_list else prop


@cache
def shacl() -> rdflib.Graph:
    """Return the model as SHACL."""
    graph = rdflib.Graph()
    for each in classes():
        name = URIRef(each._TYPE)
        graph.add((name, RDF.type, OWL.Class))
        graph.add((name, RDF.type, SH.NodeShape))
        graph.add((name, SH.nodeKind, SH[each.NODE_KIND.name]))
        for parent in each.__bases__:
            if str(parent._TYPE).startswith(BASE):
                graph.add((name, RDFS.subClassOf, URIRef(parent._TYPE)))
        if each.IS_ABSTRACT:
            shape, no = BNode(), BNode()
            graph.add((name, SH.property, shape))
            graph.add((shape, SH.path, RDF.type))
            graph.add((shape, SH["not"], no))
            graph.add((no, SH.hasValue, name))
        if getattr(each, "ID_ALIAS", None):
            graph.add((name, TO_CODE.idPropertyName, Literal(each.ID_ALIAS)))
        for individual in each.NAMED_INDIVIDUALS.values():
            graph.add((URIRef(individual), RDF.type, OWL.NamedIndividual))
            graph.add((URIRef(individual), RDF.type, name))
            if issubclass(each, spdx3.Element):  # as in the model, where SPDX made them
                _add_creation(graph, URIRef(individual))
        for own in _own(each):
            _add_property(graph, name, own)
    return graph


def _add_creation(graph: rdflib.Graph, individual: URIRef) -> None:
    core = rdflib.Namespace(f"{BASE}terms/Core/")
    creation, agent = URIRef(f"{core}creation"), core.SpdxOrganization
    created = Literal("2024-11-22T03:00:01Z", datatype=XSD.dateTimeStamp, normalize=False)
    graph.add((individual, core.creationInfo, creation))
    graph.add((creation, RDF.type, core.CreationInfo))
    graph.add((creation, core.created, created))
    graph.add((creation, core.createdBy, agent))
    graph.add((creation, core.specVersion, Literal("3.0.1")))


def _add_property(graph: rdflib.Graph, owner: URIRef, own: Any) -> None:
    shape, (is_list, prop) = BNode(), _range(own.reg())
    graph.add((owner, SH.property, shape))
    graph.add((shape, SH.path, URIRef(own.iri)))
    graph.add((URIRef(own.iri), RDF.type, OWL.DatatypeProperty))
    if not is_list:
        graph.add((shape, SH.maxCount, Literal(1)))
    for count, value in ((SH.minCount, own.min_count), (SH.maxCount, own.max_count)):
        if value is not None:
            graph.add((shape, count, Literal(value)))
    if prop.pattern:
        graph.add((shape, SH.pattern, Literal(prop.pattern)))
    kind = type(prop).__name__
    if kind == "ObjectProp":
        graph.add((shape, SH["class"], URIRef(prop.cls._TYPE)))
    elif kind == "EnumProp":
        values = [URIRef(iri) for iri in prop.iri_values()]
        listed = BNode()
        Collection(graph, listed, list(values))
        graph.add((shape, SH["class"], URIRef(str(values[0]).rpartition("/")[0])))
        graph.add((shape, SH["in"], listed))
    else:
        graph.add((shape, SH.datatype, TYPES[kind]))


@cache
def context() -> dict[str, Any]:
    """Return the JSON-LD context."""
    terms: dict[str, Any] = {"spdx": f"{BASE}terms/", "spdxId": "@id", "type": "@type"}
    for each in classes():
        terms[each._COMPACT_TYPE] = each._TYPE
        if issubclass(each, spdx3.Element):
            terms |= dict(each.NAMED_INDIVIDUALS)
        for own in _own(each):
            _, prop = _range(own.reg())
            kind = type(prop).__name__
            term: dict[str, Any] = {"@id": own.iri, "@type": "@vocab"}
            if kind == "EnumProp":
                enumeration = next(iter(prop.iri_values())).rpartition("/")[0]
                term["@context"] = {"@vocab": f"{enumeration}/"}
            elif kind != "ObjectProp":
                term["@type"] = str(TYPES[kind])
            terms[own.compact] = term
    return {"@context": terms}


@cache
def json_schema() -> bytes:
    """Return the JSON schema that shacl2code makes of the model."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, names, made = (folder / each for each in ("model.ttl", "context.json", "made.json"))
        shacl().serialize(model, format="turtle")
        names.write_text(json.dumps(context()))
        command: list[str | Path] = [
            sys.executable, "-c", "import sys; from shacl2code.main import main; sys.exit(main())",
            "generate", "-i", model, "-u", names, f"{BASE}spdx-context.jsonld", "jsonschema",
            "-o", made,
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)
        return made.read_bytes()


def answers() -> dict[str, tuple[str, bytes]]:
    """Return what spdx.org has, by URL: its type and content."""
    turtle = shacl().serialize(format="turtle").encode()
    return {
        f"{BASE}spdx-model.ttl": ("text/turtle", turtle),
        f"{BASE}spdx-context.jsonld": ("application/ld+json", json.dumps(context()).encode()),
        f"{SERVED}schema/3.0.1/spdx-json-schema.json": ("application/json", json_schema()),
    }


class Served(urllib.request.HTTPSHandler):
    """Answers for spdx.org; nothing else may be asked."""

    def https_open(self, request: urllib.request.Request) -> Any:
        """Return what a URL has."""
        kind, content = answers()[request.full_url]
        headers = email.message.Message()
        headers["Content-Type"] = kind
        found = urllib.response.addinfourl(io.BytesIO(content), headers, request.full_url, 200)
        found.msg = "OK"  # type: ignore[attr-defined]
        return found


def serve() -> None:
    """Let urllib, and so rdflib and spdx3-validate, find spdx.org here."""
    urllib.request.install_opener(urllib.request.build_opener(Served))
