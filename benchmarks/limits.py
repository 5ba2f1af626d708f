"""What each study cannot say: objections of a reviewer that its data do not answer, as the last section of its page.

    python benchmarks/limits.py

writes the section of every page of docs/studies/ again. Studies that write their page whole end it with `ended`.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "studies"
HEADING = "## What this study cannot say"
LIMITS = {
    "advice": """\
- **All sets are spent.** Rules were written on UCI, Eunomia and Rotterdam, and one was changed after Synthea Ohio (made
  up) and prostate; pyPheWAS and the claims are made up too.
- **The lines of a plan are our own.** The bars (10 and 20 %, from 50 patients) and the thresholds of risk were
  chosen by the authors of the methods; other bars could give another order, and no researcher was asked for theirs.
- **Two repeats are no interval.** They vary the seed, not patients or questions. A resample's figures show that those
  vary more.""",
    "algorithm-known": """\
- **Small data, one kind of change.** Three codes and six patients: with more codes more data are behind the same files,
  with more patients more have a code. The exchange says what UCI's do, but with one change and the same draws, so its
  figures are upper bounds.
- **One prior.** All data equally likely and patients independent; an attacker who believes otherwise is surer, with or
  without the algorithm.
- **Plain versions, and operations.** *small* enumerates tests/oracles/, which the tests of each method compare with the
  product. *By the files* is by the operation (suppressed, merged, put into one group), so that for visits a set that is
  not shown counts too, of which the guarantee says nothing.""",
    "attacks": """\
- **The attacker is the one who defended.** The programs were written by people who know the methods, after the
  findings; an attack that nobody thought of is not in the table, and 0 successes are counted for these attacks only.
- **Zeros have bounds.** 0 of 1,000 known sets leaves a share of up to 0.3 % (95 %, one-sided); knowledge was drawn by
  rule (rarest codes, up to two codes), one release and one seed each, UCI and small cohorts. The guarantees rest on
  proofs and on the verifier, not on these counts.
- **No auxiliary data of the real world.** No voter list, no other hospital's release, no news report: chances of
  naming a person, which depend on these, were not estimated.""",
    "censoring": """\
- **The thesis's sample is not here.** Tables 1 and 2 are of a made-up population of which only means, sizes and the
  share of unique records are the thesis's; one seed makes k = 5 come out between .000 and .031, so that agreement or
  disagreement of a cell with the thesis says nothing.
- **One real population, not fit for the method.** UCI has three diagnoses a stay, 915 codes and no counts of years;
  its whole is taken for the population, so that what a smaller or foreign population list would leave open was not
  measured.
- **Utility is counted, not used.** Mentions, repeats and pairs that are kept stand for a phenotype's worth; no
  clinician judged records (the thesis's "92 %"), and no association was computed. Intervals are over five overlapping
  samples of the same population.""",
    "condensation": """\
- **Repetitions are seeds of a method, not patients.** A cell is of 4 to 19 dependent coefficients a repetition:
  intervals (±), where a table has them, say how well its mean is known on this one data set, and are approximate
  near 0; differences of a few points in a table without them are not established. No correction is made for seven
  sets, three models and all methods.
- **The comparators are not at their best.** k-anonymity is Mondrian on all columns, survival time too, where a user
  would take the quasi-identifiers; `mdav` and `tfrp` publish centroids of all columns, rounded to permissible values,
  which they were not made for; only `balanced` sees the outcomes of the plan's models; R-microhybrid and synthesizers
  (copulas, trees, GANs) are not compared, and no method was tuned but ours.
- **Lung and colon are made up**, by a generator that writes plain main effects, which models of main effects recover;
  interactions, splines and machine learning on the release were not tried, and privacy is measured by nearest records
  of an attacker with whole rows, on 1,000 rows.""",
    "condensation-attacks": """\
- **Two attacks.** Nearest row and one-to-one matching; an attacker who fits a model of the times inside the group, or
  combines two releases, was not tried, so "nothing above 1/k" is about these two. Matching was left out (–) on large
  sets.
- **Constants were chosen here.** The ends of numbers and the pooling over 30 rows were chosen on seven of the eleven
  registries; on the four that judged the pooling, at k = 5 it is no better than a group's own covariance (.48 against
  .47 standard errors).
- **Four seeds.** Cells of 4 × 4 to 4 × 19 coefficients move by several points with the seed, as the row of 16 seeds
  shows; the standard errors given for 1/k treat patients as independent guesses, which those of one group are not.""",
    "disassociation": """\
- **INFORMS is not here.** Figures are of another real cohort (three diagnoses a stay, three-digit codes) and of a
  made-up one in INFORMS's shape, by our own implementation of CBA and UGACLIP from their papers; no figure tells
  whether the original programs would have done the same.
- **The queries are not a sample of anybody's.** W1 and W2 are the paper's; queries of one workload share codes, so
  that the Welch tests (also the paper's, unpaired, 40 of them) overstate what is known, and no interval over cohorts,
  seeds or workloads is given for Figs. 13 to 25. ARE on kept codes rewards suppression, ARE on all codes punishes it.
- **The tables are of `settled`, which is not the default any more**, and its constants and those of `fitted` were
  chosen on UCI, one of the two cohorts shown. No recent comparator (differentially private histograms, synthetic
  records) was run at equal protection.""",
    "newcomer": """\
- **Three people, once.** What three newcomers met is a list of faults, not a rate: how many users meet them, and how
  long they need, was not measured, and nobody of a hospital took part.
- **Before and now are not the same test.** The findings were mended with the findings at hand and run again by a
  script of the commands that had failed; no new person started from the README of today.
- ***Now* is our selection.** Outputs are shortened by hand, and whether a message is understood was judged by those
  who wrote it.""",
    "notes": """\
- **No real records with real identities.** Synthetic notes share a generator with the training, other sets were
  written by language models or have their identities taken out. On notes marked by hand "no identity missed" is 23 of
  23 (exact 95 % interval 0.85 to 1; ACI-Bench alone 6 of 6, 0.54 to 1), by one reader, so no agreement between
  readers can be given.
- **No trained de-identifier.** Presidio's model was made for news, Philter has lists and patterns; how the ensemble
  compares with a neural model trained on i2b2's notes, which hospitals also use, no figure says: none was to be had
  here.
- **Looked-at data.** Causes of errors were read on the held-out kinds, the questions and the notes marked by hand,
  and rules were mended; only the sealed kinds (but for one mending of context), presidio-synth, medcat-deid and the
  fifty notes were not. Recalls of synthetic notes have no intervals, and mentions of one note are not independent.""",
    "options": """\
- **Two cohorts, one release a row.** The partitioning was chosen on UCI, and the claims are made up; no interval but
  those over reconstructions and five seeds. Places are made up, and no code depends on them.
- **The sensitive codes are ours.** Ten common codes were taken by rank, not because they are sensitive; rare ones,
  which people would name, cost less in occurrences and more in what they can be asked.
- **No question of a user.** Errors of W1 and W2, and means, medians and sums, stand for use; whether a safe or
  diverse release answers a study's question was not tried.""",
    "queries": """\
- **The figure confirms a formula.** Measured errors agree with mean(1/n)/ε because that is what the noise is; the
  notes are made up or have assigned months, so nothing follows for the counts of real notes, and the paper's gain
  over Safe Harbor cannot be tested where months have nothing to do with diseases.
- **Few draws, few shapes.** Each table is the mean of five runs of one index and its 25 cells are not independent
  (they share itemsets); range, ZIP and place queries, zCDP, several askers and the error of the catalogue are in no
  table.
- **ε has no meaning by itself.** Budgets of 5 or 20 are used for the arithmetic, not because they are safe; no attack
  on the answers was run here, and timing is the portal's study, not this one's.""",
    "robustness": """\
- **Absence of faults in what was tried.** 20,900 inputs without a traceback bound the rate by 0.014 % (95 %,
  one-sided) for inputs of this generator, written by those who wrote the readers; nothing is said of files that
  hospitals have.
- **One machine, one file system, one kernel.** Kills are of processes, not of power; a disk that lies about flushing,
  NFS and Windows are not in the tables, and each table is of the commit that it names, not of today's.
- **302 kills over ten commands** are 15 to 68 each: a window that one kill in a hundred hits can have been missed (0
  of 30 leaves up to 10 %, 95 %, one-sided).""",
    "trajectories": """\
- **The sets are made up in the thesis's shapes.** One seed each, correlations our own: they make similar patients,
  which lowers every loss (a set with independent codes loses 1.5 times as much at k = 5). The order of methods is
  what can be compared, not the figures. Four of thirteen statements fail here, and whether set or program is why was
  not tested.
- **`cells` was designed on two of the three shapes that show it**, and the only evaluation set is made up by us too. No
  intervals.
- **No task was done on the release.** ILM, ALM, AvgRE and usable pairs stand for usefulness; no phenotype, no PheWAS,
  no model of time was computed. The attacker knows whole trajectories or age and codes; the payload's own risk (DNA)
  is not measured.""",
    "verifier": """\
- **The judge is ours too.** What "breaks nothing" is decided by definitions of the same authors: a misreading of a
  paper shared by method, verifier and judge would not be seen, and what it takes out of the count is listed above.
- **Kinds, not faults of the world.** Mutations follow from the release's form, one at a time, small releases, one
  seed; the share refuted is of these kinds and no estimate of how many real faults would be caught. Two faults at
  once, and forgers who know the verifier, are not in the bench.
- **Six standard deviations.** Orders are refuted only where chance is all but excluded, so that a weak leak by order
  in a small release passes by design; most variants are not in the table.""",
    "visits": """\
- **No biobank.** The paper's population is not to be had: UCI has no genotypes, so SNPs are simulated with the
  effects that the tests then look for, and the population of 1.4 million is one draw of our generator, with four
  associations that survive Bonferroni. "None lost" of four has an exact 95 % interval of 0 to 60 % lost.
- **Three draws, or one, without intervals.** Lost and false are counts at a threshold, so that an association at p =
  .049 counts as one at p = 10⁻⁹; 5 % of the tests at p < 0.05 are chance. No effect sizes or their bias are given,
  and adjustment, ancestry and controls are left out (allelic test).
- **One vocabulary, one k.** k = 5, ICD-9, in PheWAS the policies `hierarchy:1` or none, level `containment` not on
  the whole population; no comparison with another release of visits (synthetic data, differential privacy), and the
  attacker who knows that somebody is in the cohort is counted but not held off.""",
    "whole-patient": """\
- **UCI was tuned on, the others are made up.** The weight of fitted partitioning in classes was chosen on UCI;
  Synthea Ohio and Eunomia are generated by rules that tie codes to age and sex. One seed, no intervals, no test.
- **"Apart" is a weak opponent.** It assumes independence of codes and demographics; a recipient with a second table
  (codes by age from public statistics), or separate releases with a joint model, would do better. The published
  generalization is our reading of it, in its plain version, on 4,000 patients.
- **Losses cannot be compared between methods**, as each has its own unit; the questions are drawn from records, so
  that rare and absent combinations are not asked, and the attack is one program that knows age, sex and two codes
  exactly.""",
}
"""By page, as Markdown."""


def ended(text: str, page: str) -> str:
    """The text of a page with its last section."""
    return f"{text.split(HEADING)[0].rstrip()}\n\n{HEADING}\n\n{LIMITS[page]}\n"


def main() -> None:
    for page in LIMITS:
        file = FOLDER / f"{page}.md"
        file.write_text(ended(file.read_text(encoding="utf-8"), page), encoding="utf-8")


if __name__ == "__main__":
    main()
