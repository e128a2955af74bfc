# SPDX-License-Identifier: Apache-2.0
"""The phony targets of the makes of a build -> the files that each makes, for a build.ninja."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from libetrace.image.file import Image

from etrace.export.replay import Build
from etrace.query.rows.records import Records
from etrace.query.rows.targets import Targets
from etrace.rules import stored
from etrace.rules.recipes import Recipes
from etrace.spec.database import NONE

#: names that a person types; no file has a relative name in the build.ninja
_PLAIN = re.compile(r"[\w+.@-]+")


def find_goals(image: Image, builds: Sequence[Build]) -> Mapping[str, Sequence[str]]:
    """Return the outputs by the name of a phony target, of makes that no other make started.

    They are those that its prerequisites lead to, and what the recipes of phony ones made.
    """
    if not stored.are_known(image):
        return {}
    asked, recipes = stored.read(image), Recipes(Records(image))
    tops = [rules for row, rules in asked.rules.items() if recipes.of_row[row] == NONE]
    ran, files = _ran_for(image, builds), {path for build in builds for path in build.outputs}
    found: dict[str, set[str]] = defaultdict(set)
    for rules in tops:
        for name, rule in rules.rules.items():
            if rule.is_phony and _PLAIN.fullmatch(name):
                for path in rules.made_before([rules.at(name)]):
                    own = rules.by_path.get(path)
                    if own is not None and own.is_phony:
                        found[name] |= ran.get(os.fsencode(own.name), set())
                    elif path in files:
                        found[name].add(path)
    return {name: sorted(paths) for name, paths in sorted(found.items()) if paths}


def _ran_for(image: Image, builds: Sequence[Build]) -> Mapping[bytes, set[str]]:
    """Return the outputs by the names of all targets that their commands ran for."""
    targets, found = Targets(image), defaultdict[bytes, set[str]](set)
    for build in builds:
        for row in build.commands:
            for name in targets.all_names(row):
                found[name] |= build.outputs
    return found
