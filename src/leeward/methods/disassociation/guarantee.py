"""The release in plain words: guarantee, attacker, what is left open, and how a recipient reads the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leeward.contracts.words import stated_facts
from leeward.methods import demographics_words as whole
from leeward.release.content import Guarantee

if TYPE_CHECKING:
    from leeward.methods.disassociation.parameters import Disassociation


README = """\
`data/nodes.parquet` lists the clusters of patients (`kind` = `cluster`) and the joint clusters made of them
(`joint`; `parent` names the joint cluster above), each with its number of `records`.

`data/chunks.parquet` holds what is published of each node. A *record chunk* (`kind` = `record`) has one row a patient
of the cluster: the codes of that patient that fall in this chunk, an empty list where there is none. Rows of different
chunks are shuffled apart, so nothing tells which subrecords belong to one patient. A *shared chunk* (`shared`) is the
same over all patients of a joint cluster. The *item chunk* (`item`, one row a cluster) lists codes that at least one
patient of the cluster has, without counts.

To count patients with a set of codes, `leeward estimate FOLDER CODE,CODE` gives the least, the expected and the
greatest number. By hand: inside a cluster of N patients the codes of one chunk are counted exactly; for codes in
different chunks multiply their shares of the N patients; an item-chunk code counts once or a little more. Then add up
the clusters. `reconstructions/`, where present, are data sets that could have given these files: analyse several and
report the spread. Pair counts across chunks are estimates; absence of a pair in one reconstruction proves nothing.
"""

CLASSES = """\

Each node of `data/nodes.parquet` belongs to one `class`: no cluster and no joint cluster crosses classes, so counts
inside a class follow from its nodes alone. `leeward estimate FOLDER CODE --where COLUMN=LABEL` counts the patients of
the classes that fit.
"""

PAYLOAD = """\

`data/payload.parquet` has the values of the payload columns, one row a patient and `column`, shuffled inside every
cluster (`node`): nothing tells which of the cluster's patients has a value.
"""

SENSITIVE = """\

`data/sensitive.parquet` counts the values of the sensitive columns: `records` of a `class` have the `value` in the
`column`. In no class has a value more than 1 in L of the records: {ells}. An empty value is none and may be frequent.
"""


COUNTS = """\
`data/nodes.parquet` lists the clusters of patients (`kind` = `cluster`) and the joint clusters made of them
(`joint`; `parent` names the joint cluster above), each with its number of `records`.

`data/chunks.parquet` counts codes. Every chunk is about one code: it has one row for each patient of the node with the
code who is not counted with it in a node below. A code that is in no chunk of a cluster or of the joint clusters above
it may still be some patients' in that cluster: codes that too few patients share are left out.

To count patients with a set of codes, `leeward estimate FOLDER CODE,CODE` gives the least, the expected and the
greatest number. By hand: inside a cluster of N patients multiply the codes' shares of the N patients (for a code of a
joint cluster, its share of the joint cluster's patients in clusters that do not count the code themselves); then add up
the clusters. Pair counts are estimates.
"""


def guarantee_of(parameters: Disassociation) -> Guarantee:
    """Guarantee 1, its attacker and what it leaves open (docs/methods/disassociation.md#what-it-does-not-protect)."""
    if parameters.attacker == "algorithm":
        return _against_the_algorithm(parameters)
    open_ends = [
        (
            f"The guarantee promises only that some data set that fits these files has {parameters.k} matching "
            "patients; it need not be the true one. An attacker who knows the algorithm knows that a code of an item "
            f"chunk has fewer than {parameters.k} patients in its cluster: for many sets with a rare code, no data set "
            "that the algorithm could have started from has k candidate records."
        ),
        "Within a chunk one code may always come with another, so that knowing the first reveals the second (the "
        "cover problem)." + (" Switched off here: no chunk has such a pair." if parameters.safe else ""),
        f"Knowledge of more than {parameters.m} codes of a patient, or of codes that a patient does not have.",
        (
            "Attackers who pool what they know, who know several patients' records, or who hold an earlier release "
            "of the same patients."
        ),
        "What a patient suffers from, when all candidate records agree on it.",
    ]
    if parameters.sensitive:
        open_ends.append(
            "Sensitive codes are assumed unknown to the attacker; utility constraints that name them are not kept."
        )
    names = parameters.demographics
    if names:
        open_ends += whole.limits(parameters.payload, tuple(parameters.sensitive_columns or ()))
    known = f"the exact {whole.listed(names)} of a patient and up to {parameters.m} of the patient's diagnosis codes"
    return Guarantee(
        name="(k, k^m)-anonymity by disassociation inside classes of demographics (Guarantee 1 in every class)"
        if names
        else "k^m-anonymity by disassociation (Guarantee 1)",
        k=parameters.k,
        m=parameters.m,
        attacker=f"knows {known}, and that the patient is in the data"
        if names
        else f"knows up to {parameters.m} diagnosis codes of a patient and that the patient is in the data",
        not_protected=tuple(open_ends),
        facts=stated_facts(
            "up to m codes",
            "data sets",
            parameters.payload,
            **({"demographics": list(names)} if names else {}),
            **({"diversity": dict(parameters.sensitive_columns)} if parameters.sensitive_columns else {}),
        ),
    )


def _against_the_algorithm(parameters: Disassociation) -> Guarantee:
    """The same where the attacker knows the algorithm (docs/methods/disassociation.md#attacker-algorithm)."""
    return Guarantee(
        name="k^m-anonymity by disassociation (Guarantee 1, of the algorithm)",
        k=parameters.k,
        m=parameters.m,
        attacker=(
            f"knows up to {parameters.m} diagnosis codes of a patient, that the patient is in the data, and the "
            "algorithm, but not its random draws"
        ),
        not_protected=(
            (
                "The guarantee promises only that some data set that the algorithm turns into these files has "
                f"{parameters.k} candidate records, not that such data sets are the likeliest."
            ),
            f"Knowledge of more than {parameters.m} codes of a patient, or of codes that a patient does not have.",
            (
                "Attackers who pool what they know, who know several patients' records, or who hold an earlier release "
                "of the same patients."
            ),
            "What a patient suffers from, when all candidate records agree on it.",
        ),
        facts=stated_facts("up to m codes", "data sets"),
    )


def readme_of(parameters: Disassociation) -> str:
    """How a recipient reads the files; it does not depend on the data."""
    if parameters.attacker == "algorithm":
        return COUNTS
    if not parameters.demographics:
        return README
    classes = whole.readme(parameters.demographics, parameters.small) + CLASSES
    further = PAYLOAD if parameters.payload else ""
    if parameters.sensitive_columns:
        ells = ", ".join(f"{name} L = {ell}" for name, ell in parameters.sensitive_columns.items())
        further += SENSITIVE.format(ells=ells)
    return f"{classes}{further}\n{README}"
