"""The words of the page of the study of condensation. `READING` says what people read in its figures."""

from __future__ import annotations

HEAD = """# Condensation: Gal et al. 2014 again

What condensation and its opponents leave of recipients' models at K = {k}: means over {sets} sets and three models
(Cox, linear, logistic). `balanced` is the default, `improved` the paper's algorithm. *Changed significance*, *changed
direction* (of significant coefficients) and *outside* the original 95 % interval are shares of coefficients, ± half of
a 95 % interval over repetitions. *No fit*: fits that did not converge, which enter no mean. *Membership*: the chance
that a patient in the release is nearer to a released row than one who is not (0.5: nothing is given away). *Times
found*: patients whose exact time is in the nearest row, for somebody who knows all else (a guess in a group: 1 %, more
where times tie).

{glance}

{machine}. Commit {commit}. Command: `{command}`, stopped by the clock.
Seeds of every method (of `balanced` and the bootstrap): {seeds};
of risks {risks}. `balanced` was designed on prostate, rotterdam, support2 and lung, so their figures favour it.
"""

READING = """
- **At the same K `balanced` keeps the plan's models best.** Risk was not made equal but measured: trees with leaves
  of K and R-microhybrid give away about as much or a little less, and change 24.7 and 13.7 % of the significances
  against 3.5 %. Of 18 models, R-microhybrid is better in one; `k-anonymity` on known columns in three, and it gives
  away 23.7 % of the exact times.
- **Opponents win elsewhere.** `condensation`, R-microhybrid, the copula and centroids hide better who is in the table,
  on three to five of six sets. Where a [covariate is the outcome](#outcomes-that-balanced-was-not-given), R-microhybrid
  changes half as many significances and leaves half as many coefficients outside.
- **In significances most of the lead over `improved` is the plan.** Without one `balanced` changes 11.2 %, `improved`
  15.9 %; of coefficients outside and of directions hardly any of the lead is. A logistic model left out of the plan,
  or cut elsewhere, is still changed less than in a bootstrap.
- **The aims** are reached on four of seven sets, missed on colon (one repetition in 40 with a changed direction), and
  not established on lung and support2, of which there are ten repetitions. Of support2 there is nothing else. At 20
  seeds none could be established; after that look only `balanced` and the bootstrap were run on, to 100 or 40.
- **Of counts and pairs of columns `balanced` [keeps more, too](#other-measures-of-utility).** Counts by ranges are
  off by 0.8 %, by 2.0 to 3.0 % in trees, the copula and a bootstrap, by 4.8 to 6.3 % in the other methods that draw
  from groups, and by 24.6 and 37.1 % in centroids (`mdav`) and `k-anonymity` of all columns. What groups leave open
  (loss metric, height, ambiguity) is about the same of all that group by all columns, so it tells little of what a
  release keeps. A forest learns from `balanced` as well as from the patients, as far as three seeds show.
"""

BODY = """
The opponents:

- `condensation` (Aggarwal and Yu) and `r-microhybrid` (MDAV groups, each replaced by rows with exactly its means and
  covariances: Domingo-Ferrer and González-Nicolás 2010, as the paper tells it) make rows from groups of K;
- `tfrp`, `mdav` and `mst` (spanning trees of least length, cut: Laszlo and Mukherjee 2005) release centroids of groups
  of K, as the paper's TFRP does;
- `k-anonymity` is Mondrian: on all columns, on five or six *known columns* ([which](#the-sets); all else stays as it
  is), or on those with event and time. The paper names neither its tool nor that tool's columns;
- `trees` are synthpop's sequential trees, every value drawn from a leaf of at least K patients (equal k) or of 5
  (synthpop's default); `copula` is a Gaussian copula with the table's own margins. Neither sees the plan, and neither
  promises anything: the risks that can be measured of all alike are membership and times found;
- `bootstrap`, a resample of the original with every patient's row, is the floor that no method need beat in the models.

## Where an opponent is better than `balanced`

In how many of the models of all sets the opponent's figure is better / worse than that of `balanced` by more than both
intervals (no correction for many comparisons). Centroids and `k-anonymity` draw nothing: they have no interval.

{rivals}

## What `balanced` is meant to keep

The model that loses most. The aims were set on the development sets. *Reached*: yes where the intervals of every model
are within the aims and a changed direction is excluded in all but 5 % of repetitions; no where an interval is beyond
one, or a direction changed; else not established.

{aims}

## Outcomes that `balanced` was not given

`balanced` sees the outcomes of the models that it is judged by. Here it does not: the logistic model is left out of its
plan, or there is no plan at all, or, with the plan as it was, the logistic models cut elsewhere (at the lower and upper
quartile of the events' times) and a covariate is explained by the others. Means over the sets of changed significance /
changed direction / outside, in per cent.

{not_given}

## Figs. 1–4

{pictures}

## Figs. 5–8: time

Processor seconds of `protect` ([tables](../benchmarks/condensation-growth.md)). The paper's runs spent most of their
seconds in a database; compare the ratios between methods.

**Fig. 5: varying K, 17,421 × 13**

![Time against K](condensation/fig5.svg)

**Fig. 6: `improved`, steps 2a and 2c, varying K**

![Time of clustering and of moving against K](condensation/fig6.svg)

**Fig. 7: varying m, 17,421 rows, K = {k}**

![Time against the number of columns](condensation/fig7.svg)

**Fig. 8: varying n, 13 columns, K = {k}**

![Time against the number of rows](condensation/fig8.svg)

## The sets

{sets}

## Models

Cells: changed significance / changed direction / outside, in per cent, ± half of the 95 % interval (Student's t).

{models}

## Linkage

1,000 rows, standardized numbers and dummies. *Own-group linkage* above chance: an attacker with a whole original row
finds the group, not the patient; trees and copulas have no groups. *Closest record*: from a released row to the nearest
original, then between originals. Π: conditional privacy, 20 bins. *Discernibility*: the sum of squared classes of rows
that are equal in the columns that the method protects, for a row.

{linkage}

## Weight of the response: 0.5, or chosen by a pilot

w is 0.5 in all other tables; `weight: pilot` ([how](../methods/condensation.md#pilot)) chooses among 0.3, 0.5 and 0.7.
Both rows have the same seeds.

{weights}
"""

DRAWS = """
## Other seeds of lung and colon

Made-up registries of {registries}, two repetitions each: the mean over registries ± half of its
interval.

{draws}
"""
