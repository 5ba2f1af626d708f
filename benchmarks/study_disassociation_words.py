"""What the page of the disassociation study says beside its figures."""

from __future__ import annotations

OPENING = """\
# Section 6 of the disassociation paper, again

Loukides et al. (2014) compare disassociation (Dis) with generalization under constraints (CBA) on INFORMS, a data set
whose codes are not public any more. This study asks the same questions of two other cohorts, with this package's own
implementation of all methods, every figure measured on written releases:

- **UCI**: Diabetes 130-US hospitals for years 1999–2008 (UCI Machine Learning Repository, CC BY 4.0), real: {uci}.
- **synthetic**: made up in the shape of INFORMS, correlated: {synthetic}.

Made by `{command}` on {machine}. Figures without a policy or a parameter named are for k = 5 and m = 2.

How it is measured. W1 asks for every set of codes that a share of the patients have, W2 for 1,000 random sets of each
size from 1 to 5, drawn from records so that each has a true count above 0 (uniform draws of more than two codes are
almost all absent from real data). ARE is the mean of |estimate − true| / true. Item-chunk codes are estimated with the
prior P(n) ∝ n⁻³ on 1 … k − 1. A generalized code is read as any of its non-empty subsets, all equally
likely (`subset`); where a column says `share`, as one of its members each time. A question about a
suppressed code is estimated as 0; where the paper leaves such questions out, so do the columns "keeps". CBA
and UGACLIP protect all sets of up to m codes, so they give the same k^m-anonymity as disassociation. p is
that of Welch's t-test on the relative errors of the queries, two-sided, as in the paper, and not corrected for the
number of tests; both methods answer the same queries, so that a paired test would fit better. Each method is
deterministic but for the order of rows; one draw of W2 and one made-up cohort: no intervals.
"""

FIGURE_WORDS = {
    "risk": """\
What a set of m codes tells before anything is done. Patients: at most m codes are known, the rarest together. Where a
cohort has too many sets, an even sample of them is counted in full, and 1,000 patients are looked at: m = 5 on UCI, m =
4 and 5 on the synthetic cohort.

In the paper more than 17 % of pairs and 96 % of sets of five codes are in one record. Here more pairs are (45 and
37 %), and as many sets of five on UCI (96 %), so more has to be generalized or suppressed to protect pairs; whether
that is why CBA suppresses more here was not tested. The paper calls about 95 % of records unsafe at a probability of
0.2, as fewer than 5 % contain a code that occurs at least five times; here nearly all patients have only such codes,
and a quarter have a pair that fewer than five patients share. This section: commit 4372f73.""",
    "against": """\
Queries on codes that CBA keeps, as in the paper; UGACLIP is compared on queries whose codes both keep. Dis is
the partitioning `settled`; "as published" is HorPart with clusters below 2k. CBA's "better reading" is the one of
`subset` and `share` that errs less, support by support.

The paper's algorithm, as published, against CBA in its better reading: on average over the four supports its error is
4.4 to 49 times smaller, by policy and cohort, and in the worst cell 2.3 times (synthetic, sup 1.25, 0.625 %). With
`settled` and the reading `subset` it is 6.3 to 105 times. UGACLIP errs less than `settled` in three of the ten rows,
both of the frequency policy and UCI at level 1. Under the frequency policy UGACLIP's error is 0: its constraints name
frequent codes only, and UGACLIP meets a rare pair by suppressing the rarer code, which is in no constraint.
Nothing at all is generalized, so whatever is left is exact: 59 of 915 codes on UCI, 82 of 631 on the synthetic
cohort. Much the same happens on UCI at level 1: its codes are cut to three digits, most categories hold one
code, which can be merged with nothing, and nine codes in ten are suppressed. Errors on surviving codes do not
see that; the next figure does, and the last column says how Dis does on all queries. It is also why CBA's error
under the frequency policy is only three to five times that of Dis at the two lowest supports of the synthetic
cohort: most of the codes that CBA keeps there are intact, while Dis estimates pairs that it took apart.""",
    "suppression": """\
Disassociation suppresses no code. Generalization suppresses far more here than the 149 of 631 that the paper tells for
CBA at level 1 and m = 3. Codes of INFORMS have five digits, so a level-1 constraint offers siblings to
merge with; on UCI a category is mostly a single code, and in both cohorts most codes are so rare that some
pair with a common code occurs in one to four patients. Wider constraints (similarity) let more codes
survive, merged.""",
    "sizes": """\
The first patients by identifier, policy sup 1.25. On all of W2 both methods err more on fewer patients, as in the
paper; on the queries that CBA keeps, which are more for more patients, Dis does so on UCI only. In the paper CBA
suppresses a smaller share of the codes of larger sets; here it falls on the synthetic cohort (from 94 to 90 %) and
stays at 96 % on UCI, whose codes are rare at every size. An ARE like the paper's 11.57 cannot come up for queries that
are estimated 0 (it is 1), so it must come from generalized codes read as rare sets; here few codes are
generalized under this policy. Seconds are of one run each of 0.01 to 0.08 s, so that they order nothing; both
are below the paper's 1.2 and 4.9 s for 25,000 patients.""",
    "query_sizes": """\
The error grows with the number of codes asked for and falls with the support, as in the paper. The policy
hardly matters on W2; on W1 frequency policies are best, as they name what W1 asks. Sets of three and more
codes drawn from records are rare sets (of the distinct ones nine in ten occur in fewer than k patients, first table),
and what these estimate to is by design not their count.""",
    "privacy": """\
ARE grows with k. The share of constraints with an MRE within ±5 % falls from k = 2 to k = 25 as in the paper, though
faster, and not at each step: under sim 10 it rises from k = 5 to 10 (43 to 56 % on UCI, 38 to 63 % on the other). At
k = 2 a code of an item chunk occurs once for certain, so there is nothing to guess. Beyond that the prior decides: a
constraint whose codes all lie in item chunks is estimated at 1.21 for each code and cluster with the default prior
(k = 5), so its MRE is −21 % where each occurs once. The prior `graded` (n⁻⁵ for codes that no record or shared chunk
counts, which are rare) repairs most of that (column) and leaves W1 as it is; with large k, where item chunks hold
codes of up to 24 patients, no prior is right.""",
    "matching": """\
Negative errors are overestimates. Frequency policies are kept as well as in the paper, at m = 5 too. Hierarchy and
similarity policies are not: both cohorts have many constraints that a handful of patients match, whose
codes lie in item chunks (see above). On the synthetic cohort some overestimates are larger, because rare
codes of one condition go together in a patient, and item chunks hide just that: the patient is counted once
for each code. m = 5 gives nearly the figures of m = 2, since chunks that pass all pairs with k = 5 mostly
pass all larger sets too.""",
    "subtrees": """\
Apriori k^m recodes whole subtrees: if 250.00 becomes 250, so do all codes below 250. On UCI, and on the
synthetic cohort, a handful of rare categories occur together with everything, and mending their pairs ends
at the root: one label, in which every patient's record says only that it is not empty. That is what
full-subtree recoding does to real codes. On a cohort without rare codes (two chapters, forty common codes,
20,000 patients) it ends well short of the root.""",
}

CLOSING = """\
## What agrees, what does not, and why

The direction of the paper's main claim holds on both cohorts: under the same k^m-anonymity, counts of frequent code
sets from a disassociated release err less than from CBA's, by a factor of 4.4 to 49 with the paper's algorithm and
CBA's better reading. With `settled` and `subset`, Welch's test has p < 0.05 in 39 of 40 cells and p < 0.01 in 36 (32
after Bonferroni's correction for 40 tests, at 0.05); those that miss 0.01 are UCI's of 17 to 97 queries. No code is
lost, where CBA loses between a sixth and nearly all of them. Errors grow with k, with the size of a query and with
the rarity of what is asked, as in the paper.

Four things do not agree. First, UGACLIP and CBA suppress more here, and where they do nothing but suppress,
what is left is exact, so on frequency policies disassociation is not below UGACLIP: its error is small,
UGACLIP's is 0 on the one code in ten that it keeps. A comparison restricted to kept codes rewards
suppression. Second, the paper's errors fall as policies widen (level 1 to 3), for both methods. Here those
of disassociation hardly change, because the policy only orders codes inside clusters, and those of CBA
rise, because wider constraints let it merge what it had suppressed: CBA keeps more and answers worse.
Third, fewer constraints of
hierarchy and similarity policies have an MRE within ±5 %: both cohorts have many constraints of very rare codes,
and one prior cannot be right for frequent and for rare codes alike (with the prior `graded`, 77 % instead of 26 % of
UCI's level-1 constraints are within ±5 % at k = 5, and 46 % at k = 25, where the paper has 53 %). Fourth,
disassociation is not seen to be faster than CBA: on today's kernels both finish in a tenth of a second.

## Partitionings

The figures above are of the partitioning `settled` and the prior `cubic`. `settled` counts many occurrences and leaves
out how alike the records of a cluster are, so on long records of thousands of codes it counts pairs and larger sets
worse than the paper's. `fitted`, the default from k = 3 on, asks for both
([definition](../methods/disassociation.md#fitted-partitioning)), and the prior `occupancy`, the default, reads from
the release how rare a code of an item chunk is ([definition](../methods/disassociation.md#priors)). The constants of
both were chosen on UCI and on made-up records of 12 of 3,000 codes, and shown on made-up inpatient claims (13.5 of
5,124 codes), Eunomia and pyPheWAS, which took no part. The [benchmarks](../benchmarks/index.md) have all three
partitionings with both priors, with intervals, and the gap of the search to the exact optimum on draws of 11 records.

Compared is `fitted` with `occupancy` (a mean of its own for fitted releases) against the better of the paper's and
`settled`, each with the better of `cubic` and `occupancy`, cell by cell of the tables of the
[benchmarks](../benchmarks/index.md): five cohorts, k = 3, 5, 10 and 25, nine figures each.

What the default gives today stands here alone. UCI, k = 5, m = 2, no policy, commit b033c36: 27.1 % of the occurrences
in item chunks, frequent sets off by 0.79 % at 1.25 % support and by 1.41 % at 0.625 % (`leeward disassociate
diabetic_data.csv.gz --patient patient_nbr --code diag_1,diag_2,diag_3 --missing '?' --k 5 --m 2 -o OUT`, and there
`custody/measures.json`). Tables on this page, of [options](options.md) and of the benchmarks are of the commits that
they name: what changed in between moved the share to 26.7 to 27.8 %, and the error at 1.25 % to 0.75 to 1.2 %.

- k = 10 and 25: `fitted` is better in 88 of 90 cells and the same in two (all 31 codes of pyPheWAS are counted).
- k = 5: better, or worse by less than 3 %, in 43 of 45. Frequent sets on all five (UCI 0.75 % against 1.56 % at 1.25 %
  support, claims 2.8 % against 11.0 %); pairs and triples on all five (pairs on claims 19.6 % against 19.6 %); single
  codes on four (claims 1.4 % against 2.3 %; Eunomia 0.72 % against 0.56 %). pyPheWAS: item
  chunks 2.4 % against 1.8 %.
- k = 3: frequent sets are better on four, by half or more; pyPheWAS 4.8 % against 4.3 %. Single codes are better on
  three (Eunomia 0.55 % against 0.28 %, pyPheWAS 0.48 % against 0.07 %). `settled` has fewer occurrences in item chunks
  on all (UCI 19.0 % against 23.2 %, Eunomia 4.2 % against 7.3 %) and answers sets on pyPheWAS better (pairs 1.1 %
  against 1.4 %), the paper's with `cubic` pairs on claims (16.0 % against 17.2 %). Beside the paper's alone, which was
  the default at k = 3, `fitted` is nowhere more than 8 % worse (those pairs; sets of five on pyPheWAS) and mostly far
  better, so it is the default there.
- k = 2: a code of an item chunk has one patient, so single codes are exact. `fitted` answers sets better or within 1 %
  on four cohorts, and on pyPheWAS with two to three times the error of the paper's, which stays the default at k = 2.

The intervals are over draws of queries of one partition. Where the search starts to look for hosts moves the figures by
more: with two other starts frequent sets at k = 3 on pyPheWAS had 4.2 and 4.6 % (4.8 % in the table), at k = 25 on UCI
5.7 and 5.9 % (6.1 %), single codes on Eunomia at k = 5 0.58 and 0.68 % (0.72 %). Differences of a tenth are
not established.

The constants were chosen on UCI and on the made-up 3,000 codes for all k at once; the tables have processor seconds.

## Against an attacker who knows the algorithm

What each [attacker](../methods/disassociation.md#the-attacker-who-knows-the-algorithm) costs, and how many of all
codes and pairs of codes that some patient has are left with fewer than k candidates, is in the
[table](../benchmarks/disassociation-algorithm-known.md) (UCI for the choice of constants; claims
took no part; age decade and sex with them, in each released class apart). One run each, no intervals.

- `operation` leaves, for who knows from how many records on codes are counted, 92 of 915 codes and 4,102 of 44,849
  pairs of UCI with fewer than 5; of claims 1,059 of 4,714 and 47,732 of 519,218. With age and sex 27 % of the codes of
  UCI's classes are left so, and 43 % of those of the claims'.
- `counts`, the default, leaves none in any of its eight releases. Random pairs are off by 1 to 14 % more (UCI,
  k = 5: .114 in place of .107; with age and sex .161 in place of .141), triples by 1 to 8 % more, frequent sets by 3 to
  33 % more. With what joint clusters tell, 363 pairs of UCI (.8 %) and 15,398 of claims (3 %) have fewer than 5 again,
  with age and sex 4,645 (3 %) and 156,531 (13 %).
- `rules` leaves none with that either. Beside `counts`, pairs and triples are at most 4 % worse, frequent sets 6 %
  better to 27 % worse on UCI and 29 to 74 % worse on claims.
- `algorithm` publishes counts of single codes in clusters and joint clusters, and suppresses what too few patients
  share: at k = 5 it does not show 233 of UCI's codes (.23 % of the occurrences) and 2,412 of the claims' (2.6 %).
  Beside `counts` pairs are off by .219 in place of .114 on UCI and triples by .502 in place of .300: rare codes are
  counted in large joint clusters, where what goes with them is lost. Frequent sets have 6 % (1.25 % support) and 54 %
  (.625 %) more error on UCI, about twice as much on claims.
"""
