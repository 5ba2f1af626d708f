"""The words of docs/studies/queries.md; figures are put in by study_queries.py."""

HEAD = """# Study: differentially private counts

Figure 5 of Li & Qin, *Protecting Privacy When Releasing Search Results from Medical Document Data* (HICSS 2017), on
other notes (theirs, 2,867 discharge summaries of i2b2, are not public), and the same questions with the patient
protected. Relative error is the paper's equation 4 over itemsets that hold a month; in a sound build 99.7 % of the
cells lie within 3 standard errors.

{machine}; OpenDP {opendp}. Commit {commit}. Command: `{command}`

The paper's table:

{paper}

Its ε × entry is about 0.073, 0.039, 0.028, 0.022 and 0.018 in every row: the mean of 1/n. So entry = mean(1/n)/ε has
to hold. Below, `mode: paper` protects a document: Laplace noise of scale 1/ε, itemsets gated by their exact support,
the mean of five runs. The safe mechanism counts and protects the patient: two-sided geometric noise of sensitivity 1.
In brackets: cells within 3 standard errors of the expectation, the farthest, the root mean square.
"""

FIGURE = """## Figure 5 on {title}

{rows:,} notes of {patients:,} patients, {terms:.1f} health terms a note; months hold {least:.1%} to {most:.1%} of the
notes (the paper's: 4 % to 13 %). Itemsets with a month{size}: {chosen}.

Laplace noise ({within}):

{laplace}

Expected, mean(1/n)/ε:

{expected}

Geometric noise ({within_geometric}):

{geometric}

{baseline}
"""

SAFE = """## The safe mechanism on {title}

{queries:,} itemsets of at most {size} items with a value of `{qid}`, by support in {rows} ({within}):

{first}
{notes}
{path}
"""

NOTES = """
Notes counted, at most {limit} a patient: sensitivity {limit} ({within}):

{second}
"""

PATH = """{asked} questions through the whole charged path at ε = 0.1: mean absolute error {error:.2f}, expected
{expected:.2f} ({distance:+.2f} standard errors); {covered:.1%} of the 95 % intervals (± {half:g}) hold the count; ε
spent: {spent:g} of {total:g}, by the ledger and by OpenDP. All {queries:,} questions at ε = 0.5: {everything:,.0f}."""

TAIL = """## What the published mechanism leaks, and what is done instead

The paper's exact gate tells on which side of it a count lies; a document is protected, not a patient who has several;
a repeated question averages its noise away; nothing limits the sum. [The method](../methods/queries.md#guarantee)
says what is done instead. A budget of ε = 5 pays for 50 answers at ε = 0.1, or for one release of
many itemsets, `leeward itemsets`.

The month-estimated baseline does better here than in the paper (0.43 to 0.51 there): in the tables above the months of
notes have nothing to do with their health terms, and [with seasons](#figure-5-with-seasons) as strong as published it
does little worse. The paper's claim, better than Safe Harbor from ε = 0.2 on, then holds for supports of 40 and 50, and
from 20 on where a condition has a season; not below.

Data: the made-up notes of `leeward synth notes`; MTSamples as in the MedCAT tutorials (MIT), with their made-up
patients; *Diabetes 130-US hospitals* of the UCI repository (CC BY 4.0).
"""
