"""The words of docs/studies/queries.md; figures are put in by study_queries.py."""

HEAD = """# Study: differentially private counts

Li & Qin, *Protecting Privacy When Releasing Search Results from Medical Document Data* (HICSS 2017), Figure 5, on
other notes (theirs, 2,867 discharge summaries of the i2b2 challenges, are not public), and what the same questions
cost when the patient is protected. Relative error is the paper's equation 4 over the itemsets that hold a month.
Measured errors are compared with their expectation: in a sound build 99.7 % of the cells lie within 3 standard
errors.

{machine}; OpenDP {opendp}. Commit {commit}. Command: `{command}`

The paper's table:

{paper}

Its product ε × entry is about 0.073, 0.039, 0.028, 0.022 and 0.018 in every row: the mean of 1/n. So what has to
agree is entry = mean(1/n)/ε.
"""

FIGURE = """## Figure 5 on {title}

{rows:,} notes of {patients:,} patients, {terms:.1f} health terms a note; months hold {least:.1%} to {most:.1%} of the
notes (the paper's: 4 % to 13 %). Itemsets with a month{size}: {chosen}.

As published (`mode: paper`): Laplace noise of scale 1/ε for a document, itemsets gated by their exact support, the mean
of {runs} runs. Measured:

{laplace}

Expected, mean(1/n)/ε:

{expected}

{within}

The product ε × expectation by column: {products}.

The same with two-sided geometric noise:

{geometric}

{within_geometric} At ε = 0.5 its expectation is {ratio:.4f} of Laplace's.

{baseline}
"""

SAFE = """## The safe mechanism on {title}

The same questions ({queries:,} itemsets of at most {size} items with a value of `{qid}`), but what is counted and
protected is a patient: two-sided geometric noise of sensitivity 1. Relative errors by the support that the itemset has
in {rows}:

{first}

{within}
{notes}
{path}
"""

NOTES = """
Counting notes while patients stay protected, of at most {limit} notes each, takes noise of sensitivity {limit}:

{second}

{within}
"""

PATH = """{asked} of the questions through the whole charged path (index, ledger, noise, count, store) at ε = 0.1: mean
absolute error {error:.2f}, expected {expected:.2f} ({distance:+.2f} standard errors); the 95 % intervals (± {half:g})
hold the count in {covered:.1%}. They spent ε = {spent:g} of {total:g}, by the ledger and by OpenDP's composition. All
{queries:,} questions at ε = 0.5 each, as in the paper's experiment, would cost an ε of {everything:,.0f}."""

TAIL = """## What the published mechanism leaks, and what is done instead

The exact gate tells on which side of it a count lies; a document is protected, not a patient who has several; a
repeated question averages its noise away; nothing limits the sum. Here every question in terms of a public
vocabulary is answered; the patient is the unit; a repeated question gets the stored answer; and the sum of all
prices is capped. A budget of ε = 5 pays for 50 answers at ε = 0.1. For many itemsets at once there is one budgeted
release, `leeward itemsets`.

The month-estimated baseline does better here than in the paper (0.43 to 0.51 there), because these notes' months
have nothing to do with their health terms.

Data: the made-up notes of `leeward synth notes`; MTSamples as in the MedCAT tutorials (MIT), with their made-up
patients; *Diabetes 130-US hospitals* of the UCI repository (CC BY 4.0).
"""
