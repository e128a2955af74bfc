# SPDX-License-Identifier: Apache-2.0
"""An image -> which children of make are lines of one recipe, and which recipes wait for which.

The rules are those in the image (etrace/rules/stored.py), and children are attributed to recipes by
etrace/rules/attribution.py. Where the image has no rules, nothing is known, and the critical path
is a lower bound. `$(shell)` is run by make itself, which waits.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from libetrace.image.file import Image

from etrace.compilers.regular_file import read_regular
from etrace.query.rows.records import Records
from etrace.rules import stored
from etrace.rules.attribution import MakeOrder, read_targets, take_edges
from etrace.rules.declared import Asked
from etrace.rules.goals import MAX_LOG_BYTES, NAME, log_version
from etrace.rules.graph import Graph
from etrace.rules.recipes import Recipes
from etrace.spec.builders import NINJA
from etrace.spec.database import NONE

NOT_READ = "its rules were not read: cas pp --targets"
#: of ninja's log, since which ninja runs what is on the longest way first
BY_CRITICAL_PATH = 6


@dataclass(slots=True)
class RecipeOrder:
    """What the rules of makes and ninjas say about the order of their children.

    Nodes are recipes that ran, and rules that ran nothing and need one that did. Children are rows:
    the first execution of their process. `lines` has the children of each node in their order,
    `waits` the nodes that it waits for, `place` where its make comes to it in its list. `functions`
    are children that make waited for while it read makefiles or expanded a recipe. `known` are the
    makes whose rules are known; `unknown` has others, and why; `strays` are children of known makes
    for which no recipe was found.
    """

    lines: list[list[int]] = field(default_factory=list)
    waits: list[list[int]] = field(default_factory=list)
    place: list[int] = field(default_factory=list)
    functions: Set[int] = frozenset()
    known: set[int] = field(default_factory=set)
    unknown: dict[int, str] = field(default_factory=dict)
    strays: set[int] = field(default_factory=set)


def find_recipe_order(image: Image) -> RecipeOrder:
    """Return what the rules of a build say, as far as the image has them."""
    recipes, order = Recipes(Records(image)), RecipeOrder()
    asked = stored.read(image) if stored.are_known(image) else Asked()
    order.functions = recipes.functions
    read_targets(recipes, asked.rules)
    for make, own in recipes.of_make.items():
        children = [each for each in own if each.row not in order.functions]
        if len(children) <= 1:  # only of several, one may wait for another
            continue
        if (rules := asked.rules.get(make)) is None:
            order.unknown[make] = asked.unknown.get(make, NOT_READ)
            continue
        order.known.add(make)
        graph = Graph(rules, recipes.goals(make, rules))
        if rules.tool == NINJA:
            take_edges(graph, children)
            _write(graph, places_of_edges(graph), order)
        else:
            MakeOrder(graph, recipes.lines(rules), children, recipes.command).attribute()
            _write(graph, graph.places(), order)
        order.strays.update(each.row for each in children if each.row not in graph.of_row)
    return order


def _write(graph: Graph, places: Mapping[int, int], order: RecipeOrder) -> None:
    """Append the nodes that ran or need one that did; rings of rules are cut."""
    number: dict[int, int] = {}
    for node in graph.walked:
        needed = [number[each] for each in dict.fromkeys(graph.needs[node]) if each in number]
        if node in graph.ran or needed:
            number[node] = len(order.lines)
            order.lines.append(graph.ran.get(node, []))
            order.waits.append(needed)
            order.place.append(places[node])


def places_of_edges(graph: Graph) -> Mapping[int, int]:
    """Return which edges ninja prefers: the first in build.ninja.

    Since 1.12, that is so of those on equally long ways to what needs them: the longest is first.
    """
    first = dict[int, int]()
    for at, path in enumerate(graph.rules.by_path):
        first.setdefault(graph.of_path[path], at)
    nodes, length = list(graph.walked), [0] * len(graph.targets)
    log = os.fsencode(graph.rules.directory / os.fsdecode(NAME))  # where it usually is
    if log_version(read_regular(log, MAX_LOG_BYTES) or b"") >= BY_CRITICAL_PATH:
        for node in reversed(nodes):  # what needs a node was walked to after it
            length[node] += bool(graph.targets[node]) and graph.rule(node).has_recipe
            for each in graph.needs[node]:
                length[each] = max(length[each], length[node])
    nodes.sort(key=lambda node: (-length[node], first.get(node, NONE)))
    return {node: at for at, node in enumerate(nodes)}
