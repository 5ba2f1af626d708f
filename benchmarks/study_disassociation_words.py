"""What the page of the disassociation study says beside its figures."""

from __future__ import annotations

OPENING = """\
# Section 6 of the disassociation paper, again

Loukides et al. (2014) compare disassociation (Dis) with generalization under constraints (CBA) on INFORMS, whose codes
are no longer public. This study repeats the comparison on two other cohorts, with our implementation of all methods:

- **UCI**: Diabetes 130-US hospitals for years 1999–2008 (UCI Machine Learning Repository, CC BY 4.0), real: {uci}.
- **synthetic**: made up in the shape of INFORMS, correlated: {synthetic}.

Made by `{command}` on {machine}. Figures without a policy or a parameter named are for k = 5 and m = 2.

W1 asks for every set of codes that a share of the patients have, W2 for 1,000 random sets of each size from 1 to 5,
drawn from records. ARE is the mean of |estimate − true| / true. Item-chunk codes are estimated with the prior P(n) ∝
n⁻³ on 1 … k − 1. A generalized code is read as any of its non-empty subsets, all equally likely (`subset`); where a
column says `share`, as one of its members each time. A suppressed code is estimated as 0; columns "keeps" leave such
queries out, as the paper does. CBA and UGACLIP protect all sets of up to m codes, as disassociation does. p is that of
Welch's t-test on the relative errors, two-sided, as in the paper, not corrected for the number of tests. One draw of
W2 and one made-up cohort: no intervals.
"""

FIGURE_WORDS = {
    "risk": """\
An attacker knows at most m codes of a patient, the rarest together. Where a cohort has too many sets, an even sample is
counted in full, and 1,000 patients are looked at: m = 5 on UCI, m = 4 and 5 on the synthetic cohort.

In the paper more than 17 % of pairs and 96 % of sets of five codes are in one record. Here more pairs are (45 and
37 %), and as many sets of five on UCI (96 %). A quarter of the patients have a pair that fewer than five share. This
section: commit 4372f73.""",
    "against": """\
Queries on codes that CBA keeps, as in the paper; UGACLIP is compared on queries whose codes both keep. Dis is the
partitioning `settled`; "as published" is HorPart with clusters below 2k. CBA's "better reading" is the one of `subset`
and `share` that errs less, support by support.

On average over the four supports the error of the paper's algorithm is 4.4 to 49 times smaller than CBA's in its better
reading; in the worst cell 2.3 times. With `settled` and the reading `subset` it is 6.3 to 105 times. UGACLIP errs less
than `settled` in three of the ten rows. Under the frequency policy its error is 0, because it generalizes nothing and
suppresses the rarer code of a rare pair: 59 of 915 codes are left on UCI, 82 of 631 on the synthetic cohort.""",
    "suppression": """\
Disassociation suppresses no code. Generalization suppresses far more here than the 149 of 631 in the paper for CBA at
level 1 and m = 3. Wider constraints (similarity) let more codes survive, merged.""",
    "sizes": """\
The first patients by identifier, policy sup 1.25. On all of W2 both methods err more on fewer patients, as in the
paper; on the queries that CBA keeps, Dis does so on UCI only. The share of codes that CBA suppresses falls on the
synthetic cohort (from 94 to 90 %) and stays at 96 % on UCI. Seconds are of one run each and order nothing.""",
    "query_sizes": """\
The error grows with the number of codes and falls with the support, as in the paper. The policy hardly matters on W2;
on W1 frequency policies are best. Sets of three and more codes drawn from records are rare sets, whose counts are
hidden by design.""",
    "privacy": """\
ARE grows with k. The share of constraints with an MRE within ±5 % falls from k = 2 to k = 25 as in the paper, though
faster, and not at each step: under sim 10 it rises from k = 5 to 10. The prior `graded` (n⁻⁵ for codes that no record
or shared chunk counts) repairs most of that and leaves W1 as it is.""",
    "matching": """\
Negative errors are overestimates. Frequency policies are kept as well as in the paper, at m = 5 too. Hierarchy and
similarity policies are not: both cohorts have many constraints that a handful of patients match, whose codes lie in
item chunks. m = 5 gives nearly the figures of m = 2.""",
    "subtrees": """\
Apriori k^m recodes whole subtrees: if 250.00 becomes 250, so do all codes below 250. On both cohorts it ends at the
root, with one label; on a cohort without rare codes (two chapters, forty common codes, 20,000 patients)
it does not.""",
}

CLOSING = """\
## What agrees, and what does not

The paper's main claim holds on both cohorts: under the same k^m-anonymity, counts of frequent code sets from a
disassociated release err less than counts from CBA's, by a factor of 4.4 to 49 with the paper's algorithm and CBA's
better reading. With `settled` and `subset`, Welch's test has p < 0.05 in 39 of 40 cells and p < 0.01 in 36 (32 after
Bonferroni's correction for 40 tests, at 0.05). No code is lost; CBA loses between a sixth and nearly all. Errors grow
with k, with the size of a query and with its rarity, as in the paper.

Four things do not agree:

- On frequency policies UGACLIP's error is 0, on the one code in ten that it keeps.
- The paper's errors fall as policies widen (level 1 to 3). Here those of disassociation hardly change, and those of CBA
  rise, because it keeps more codes.
- Fewer constraints of hierarchy and similarity policies have an MRE within ±5 %. With the prior `graded`, 77 % instead
  of 26 % of UCI's level-1 constraints are within ±5 % at k = 5, and 46 % at k = 25 (the paper: 53 %).
- Disassociation is not faster than CBA: both finish in a tenth of a second.

## Partitionings

The figures above are of the partitioning `settled` and the prior `cubic`. The defaults are `fitted` from k = 3 on
([definition](../methods/disassociation.md#fitted-partitioning)) and `occupancy`
([definition](../methods/disassociation.md#priors)). Their constants were chosen on UCI and on made-up records of 12 of
3,000 codes, and shown on made-up inpatient claims (13.5 of 5,124 codes), Eunomia and pyPheWAS. The
[benchmarks](../benchmarks/index.md) compare three partitionings with both priors (k = 5 and 25; `--k` of the same
script gives 2, 3 and 10), and the search with the exact optimum.

With these and `attacker: operation`, UCI (k = 5) has 27.1 % of the occurrences in item chunks. Frequent sets are off
by 0.79 % at 1.25 % support and by 1.41 % at 0.625 % ([table](../benchmarks/disassociation-algorithm-known.md)).

Below, `fitted` is compared with the better of the paper's partitioning and `settled`, each with its better prior: five
cohorts, nine figures each.

- k = 10 and 25: `fitted` is better in 88 of 90 cells and the same in two.
- k = 5: better, or worse by less than 3 %, in 43 of 45. Worse are single codes on Eunomia (0.72 % against 0.56 %) and
  item chunks on pyPheWAS (2.4 % against 1.8 %).
- k = 3: frequent sets are better on four cohorts, by half or more (pyPheWAS 4.8 % against 4.3 %), single codes on
  three. `settled` has fewer occurrences in item chunks on all five. Compared with the paper's alone, `fitted` is
  nowhere more than 8 % worse.
- k = 2: `fitted` answers sets better or within 1 % on four cohorts, and with two to three times the error of the
  paper's on pyPheWAS; the paper's stays the default.

The intervals are over draws of queries of one partition. Two other starts of the search moved figures by more (frequent
sets on pyPheWAS at k = 3: 4.2, 4.6 and 4.8 %), so differences of a tenth are not established.

## Against an attacker who knows the algorithm

The [table](../benchmarks/disassociation-algorithm-known.md) gives the cost of each
[attacker](../methods/disassociation.md#the-attacker-who-knows-the-algorithm), and the codes and pairs left with fewer
than k candidates. One run each, no intervals.

- `operation` leaves 92 of 915 codes and 4,102 of 44,849 pairs of UCI with fewer than 5; of claims 1,059 of 4,714 and
  47,732 of 519,218.
- `counts`, the default, leaves none. Random pairs are off by 1 to 14 % more, triples by 1 to 8 % more, frequent sets by
  3 to 33 % more. To an attacker who also reads joint clusters, 363 pairs of UCI (.8 %) and 15,398 of claims (3 %) have
  fewer than 5.
- `rules` leaves none against that attacker either. Compared with `counts`, pairs and triples are at most 4 % worse,
  frequent sets 6 % better to 27 % worse on UCI and 29 to 74 % worse on claims.
- `algorithm` suppresses .23 % of UCI's occurrences and 2.6 % of the claims'. Pairs on UCI are off by .219 instead of
  .114, triples by .502 instead of .300. Frequent sets have 6 % (1.25 % support) and 54 % (.625 %) more error on UCI,
  about twice as much on claims.
"""
