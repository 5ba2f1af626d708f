"""What the page of the disassociation study says beside its figures."""

from __future__ import annotations

OPENING = """\
# Section 6 of the disassociation paper, again

Disassociation (Dis) against generalization under constraints (CBA), as in Loukides et al. (2014), on two other cohorts
(INFORMS' codes are no longer public) and with our implementation of all methods:

- **UCI**: Diabetes 130-US hospitals for years 1999–2008 (UCI Machine Learning Repository, CC BY 4.0), real: {uci}.
- **synthetic**: made up in the shape of INFORMS, correlated: {synthetic}.

Made by `{command}` on {machine}. k = 5 and m = 2 unless said.

**default**: the release and the counts that `leeward disassociate` and `leeward estimate` give: partitioning
`{partitioning}`, attacker `{attacker}`, prior `{prior}`. **paper**: HorPart, which splits no part below 2k, the paper's
guarantee (attacker `operation`), and each code of an item chunk counted as one record, since the paper names no prior.

W1: every set of codes that a share of the patients have. W2: random sets of 1 to 5 codes, drawn from records. ARE: the
mean of |estimate − true| / true. Figures with ± are means over three seeds, with half of their 95 % interval: each seed
makes the synthetic cohort anew, numbers UCI's patients in another order, from which the search starts, and draws W2.
CBA and UGACLIP: a generalized code is any of its non-empty subsets or one of its members, whichever errs less; a
suppressed one counts 0. Columns "keeps" leave such queries out, as the paper does. p: Welch's t-test on relative
errors, two-sided, not corrected, the largest of the seeds.
"""

FIGURE_WORDS = {
    "risk": """\
Where a cohort has too many sets, an even sample is counted, and 1,000 patients are looked at: m = 5 on UCI, m = 4 and
5 on the synthetic cohort. In the paper more than 17 % of pairs and 96 % of sets of five codes are in one record; here
more pairs are (45 and 37 %), and as many sets of five on UCI. Of all pairs, triples and quadruples of UCI's 915 codes
only 11, .27 and .0046 % are in any record at all (of the synthetic cohort's pairs and triples 28 and 1.8 %), and a
question of true count 0 has no relative error: so W2 is drawn from records, not evenly from all sets. One seed.""",
    "against": """\
Queries on codes that CBA keeps; for UGACLIP, that both keep. Under the frequency policy UGACLIP errs by 0, because it
suppresses the rarer code of a rare pair: 59 of 915 codes are left on UCI, 83 ± 2 of 631 on the synthetic cohort.""",
    "between": """\
Policy level 1. Each row changes one setting; each release is read with three priors: `one`, the default's, and
`graded`, with which the product measures MRE. On UCI prior and partitioning each halve the errors of W1, and counting
codes from k + 1 patients on adds a quarter. `occupancy` is made for the default's partitioning: of UCI's constraints it
puts 89 instead of 75 % within ±5 % there, and 34 instead of 61 % with the paper's.""",
    "histogram": """\
ε protects a patient: counts of all codes and of all pairs, half of ε each, with two-sided geometric noise; of each
patient at most so many codes are kept as errs least (*codes a patient*, chosen by the truth, in the opponent's favour).
It holds against any attacker, k^m-anonymity only against one who knows m codes; and it has no count of larger sets. At
ε = 1 the default errs less on all three workloads of both cohorts; at ε = 16 single codes of UCI are about as good.""",
    "suppression": """\
Disassociation suppresses no code. CBA suppresses many, more at m = 3 and under level 1 than under sim 10, as in the
paper, and here several times its 149 of 631.""",
    "sizes": """\
The first patients by number, policy sup 1.25. On all of W2 everybody errs more on fewer patients, Dis always less than
CBA, and the share of codes that CBA suppresses falls as data grow, as in the paper. Questions mostly estimated too low
have errors of at most 1, so that the paper's 11.57 for CBA does not come up.""",
    "seconds": """\
Processor seconds of protecting alone, both cores together, medians of seven runs in turn; one seed. Up to 5,000
patients the default tries several partitionings. All take about a second or less, and grow less than quadratically, as
in the paper; but Dis is not faster than CBA: at 25,000 patients the paper's settings take 1.2 (UCI) and 3.4 times its
seconds, the default 4.1 and 4.5 times.""",
    "query_sizes": """\
Sets of three and more codes drawn from records are rare sets, whose counts are hidden by design.""",
    "privacy": """\
Policies level 1, sim 10 and sup 2.5, as in Fig. 18. Errors rise with k, by default less. At k = 2 the paper's settings
err less on UCI's frequent sets: .0021 for .0046 ± .0002 at level 1.""",
    "matching": """\
Negative errors are overestimates. By default, UCI's sim 5 is as in the paper within ±5 % (90.6 ± 4.3 %, paper 90 %) and
less within ±2.5 % (73.0 ± 2.7 %, paper 81 %).""",
    "subtrees": """\
Apriori k^m recodes whole subtrees: if 250.00 becomes 250, so do all codes below 250. On both cohorts it ends at the
root; on a cohort without rare codes (two chapters, forty common codes, 20,000 patients) it does not. One seed.""",
}

CLOSING = """\
## What agrees, and what does not

The paper's main claim holds on both cohorts and in both settings: under the same k^m-anonymity, counts of frequent
code sets err less than CBA's better reading, on average over the supports by a factor of 3.4 to 26 with the paper's
settings and of 12 to 101 by default, and in every cell (in the worst by 1.8 and 6.6). p < 0.05 in 39 of 40 cells of
either, and p < 0.01 in 36; the queries of a cell share codes, so that p says less than it seems. No code is lost.
Errors grow with k, with the size of a query and with its rarity and fall with the size of the data; frequency
policies are kept as well, and m = 5 costs nothing more. On UCI the gap to CBA widens from level 1 to level 3, as in
the paper.

What does not agree:

- UGACLIP errs less than the default under frequency policies, on the one code in ten that it keeps, and on UCI's
  level 1 about as much (1.15 ± 0.11 times the default's).
- The paper's errors of both methods fall as policies widen. The default's fall a little on UCI (level 1 to 3: .0092 ±
  .0008 to .0079 ± .0008) and rise a little on the synthetic cohort (.0248 ± .0024 to .0269 ± .0009); CBA's rise.
- Not all of UCI's level-1 constraints have an MRE in [-24 %, 5 %) as in Fig. 19: they reach from -9 to 36 %, 85 % of
  them within ±5 %; of the synthetic cohort's from -40 to 25 %, and 65 %.
- The share within ±5 % falls faster with k: on UCI's level 1 from 99.5 to 24 % between k = 2 and 25 (paper: 95.3 to
  53 %; with the paper's settings 100 to 49 %). At m = 5 UCI has 85, 95 and 100 % (paper: 89, 93 and 100 %), the
  synthetic cohort 65, 76 and 100 %.
- Disassociation is not faster than CBA.

## Partitionings

The default's constants were chosen on UCI and on made-up records of 12 of 3,000 codes
([fitted](../methods/disassociation.md#fitted-partitioning), [occupancy](../methods/disassociation.md#priors)), and
shown on made-up inpatient claims (13.5 of 5,124 codes), Eunomia and pyPheWAS. Every shape, size and k is
[compared](../benchmarks/defaults.md), and partitionings at [k = 5](../benchmarks/partitioning-5.md) and
[k = 25](../benchmarks/partitioning-25.md).

In the order of its file UCI has 28.3 % of the occurrences in item chunks by default (k = 5, m = 2, no policy);
frequent sets are off by 0.89 % at 1.25 % support and by 1.51 % at 0.625 %. With `attacker: operation` it is 27.1,
0.79 and 1.41 % ([table](../benchmarks/disassociation-algorithm-known.md)).

## Against an attacker who knows the algorithm

What each [attacker](../methods/disassociation.md#the-attacker-who-knows-the-algorithm) costs, and which codes and
pairs it leaves with fewer than 5 candidates, is [measured](../benchmarks/disassociation-algorithm-known.md), one run
each, no intervals. `operation` leaves 92 of 915 codes and 4,102 of 44,849 pairs of UCI. `counts`, the default, leaves
none; to an attacker who also reads joint clusters it leaves 363 pairs of UCI (.8 %) and 15,398 of claims (3 %).
`rules` leaves none against that attacker either, with 29 to 74 % more error on frequent sets of claims. `algorithm`
suppresses .23 % of UCI's occurrences and 2.6 % of the claims', and pairs on UCI are off by .219 instead of .114.
"""
