"""The hierarchy of codes by its name: the one that the run was asked for, and the one that the release shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml

from leeward.verify.checks import Check, Source
from leeward.verify.manifest import Share
from leeward.verify.trajectories.layout import Tree, tree_of
from leeward.verify.trajectories.source import COMMON
from leeward.vocabulary import VOCABULARIES, load

OWN = "custom"
"""The manifest's word for a hierarchy from a file, or of an added vocabulary."""


def check_hierarchy(tree: Tree, share: Share, source: Source | None) -> list[Check]:
    """The manifest names the hierarchy that the custodian asked for, and the released tree is that one.

    Without spec and source the name of the root is all that tells; a file may have the root of a built-in vocabulary.
    A hierarchy that lists the codes of k patients only is compared with the source (`hierarchy_lists_common_codes`).
    """
    parameters = share.manifest["parameters"]
    stated, common = parameters.get("hierarchy"), parameters.get("listed_codes") == COMMON
    asked = hierarchy_of_spec(share) or (None if source is None else source.vocabulary)
    if asked is None:
        of_root = {name for name in VOCABULARIES if load(name).name == tree.labels[0]}
        right = stated in (of_root if common and of_root else of_root | {OWN})
    else:
        right = stated == (asked.lower() if asked.lower() in VOCABULARIES else OWN)
    detail = (
        "The manifest names the hierarchy of codes." if right else "The hierarchy of codes has another name."
    )
    checks = [Check("hierarchy_named", right, detail)]
    if not right or common:
        return checks
    pairs = pairs_of(stated, asked, tree)
    if pairs is not None:
        whole, _ = tree_of(pairs)
        same = whole is not None and whole.labels == tree.labels
        same = (
            same
            and whole is not None
            and all(
                np.array_equal(mine, theirs)
                for mine, theirs in ((whole.low, tree.low), (whole.high, tree.high))
            )
        )
        said = "is" if same else "is not"
        detail = f"The hierarchy of codes {said} the one named, over the codes that it lists."
        checks.append(Check("hierarchy_as_named", same, detail))
    return checks


def hierarchy_of_spec(share: Share) -> str | None:
    """The hierarchy or vocabulary that custody's spec names; None without it (`parameters_of_spec` refutes an
    unreadable one)."""
    file = share.folder.parent / "custody" / "spec.yaml"
    if share.folder.name != "share" or not file.is_file():
        return None
    try:
        spec: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
        found = spec["method"].get("hierarchy") or spec["source"].get("vocabulary")
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError, AttributeError):
        return None
    return None if found is None else str(found)


def pairs_of(stated: str, asked: str | None, tree: Tree) -> list[tuple[str, str]] | None:
    """(node, parent) of the named hierarchy over the released leaves; None where its file is not at hand."""
    if stated in VOCABULARIES:
        return load(stated).hierarchy(list(tree.leaf)).to_pairs()
    if asked is None or not Path(asked).is_file():
        return None
    named = load(asked)
    known = [code for code in tree.leaf if named.is_known(code)]
    return named.hierarchy(known).to_pairs() if known else []
