# SPDX-License-Identifier: Apache-2.0
"""Whose a file is that root makes of others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from backends import need_root
from libetrace.core.rights import give_away

USER, OTHER = 65534, 65533


@pytest.mark.root
@pytest.mark.parametrize(
    ("owners", "owner"), [((), 0), ((USER,), USER), ((USER, USER), USER), ((USER, OTHER), 0),
                          ((USER, 0), 0)],
)  # fmt: skip
def test_only_the_owner_of_all_that_a_file_is_made_of_gets_it(
    tmp_path: Path, owners: tuple[int, ...], owner: int
) -> None:
    need_root()
    models = [tmp_path / str(i) for i in range(len(owners))]
    for model, uid in zip(models, owners, strict=True):
        model.touch()
        os.chown(model, uid, uid)
    with (tmp_path / "made").open("w") as made:
        give_away(made.fileno(), models)
        assert os.fstat(made.fileno()).st_uid == owner
