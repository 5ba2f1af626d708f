"""The report: one file without any address in it, every figure of its inputs, words that fit the case."""

from __future__ import annotations

import copy
import html.parser
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from leeward.analysis.figures import plain
from leeward.analysis.reidentification import Further
from leeward.errors import BadInput
from leeward.methods.disassociation.report import sections
from leeward.release import Anonymized, Guarantee, Release, ReleaseTable, write
from leeward.report import render
from leeward.report.codes import bins
from leeward.report.summary import Summary, result_html
from leeward.report.writing import to_html
from leeward.runs.reports import summary_of, write_report

RISK_ROW: dict[str, Any] = {
    "sets": 12,
    "sets_in_one_record_share": 0.1,
    "sets_below_k_share": 0.2,
    "sets_by_support": [],
    "exact": True,
    "sampled_share": 1.0,
    "unique_share": 0.0,
    "below_k_share": 0.0,
    "patients_exact": True,
}
MEASURES: dict[str, Any] = {
    "source": {"name": "ward <7>.csv", "vocabulary": "icd9", "patients": 40, "events": 90, "codes": 12},
    "notices": [
        {
            "kind": "missing code",
            "message": "12 missing codes left out",
            "count": 12,
            "rows": list(range(1, 13)),
        }
    ],
    "method": {"clusters": 4},
    "risk": {
        "k": 5,
        "patients": 40,
        "by_m": [
            {**RISK_ROW, "m": 1, "patients": 40, "below_k": 4, "unique": 1},
            {
                **RISK_ROW,
                "m": 2,
                "patients": 32,
                "below_k": 16,
                "unique": 8,
                "below_k_share": 0.4,
                "unique_share": 0.2,
            },
            {**RISK_ROW, "m": 3, "patients": 20, "below_k": 18, "unique": 15, "patients_exact": False},
        ],
        "whole_set": {"unique": 0, "unique_share": 0.0, "below_k": 0, "below_k_share": 0.0},
        "after": {"sets": 200, "largest_set": 2, "smallest_candidates": 6, "below_k": 0},
    },
    "placement": {
        "occurrences": {"record": 60, "shared": 10, "item": 20, "total": 90},
        "codes": [{"code": "250.00", "support": 20, "record": 15, "shared": 2, "item": 3}],
        "item_share": 0.22,
        "codes_never_counted": 1,
        "item_only_records_at_least": 2,
        "item_only_records": 3,
        "covers": {
            "pairs": 7,
            "chunks": 1,
            "of_chunks": 3,
            "everywhere": 2,
            "codes": [{"code": "401.9", "reveals": "250.00", "clusters": 3, "patients": 9, "of": 12}],
        },
    },
    "are": {
        "prior": "cubic",
        "workloads": [
            {
                "name": "frequent",
                "label": "frequent sets",
                "queries": 7,
                "are": 0.0213,
                "median": 0.01,
                "largest": 0.3,
                "skipped": 1,
                "outside_bounds": 0,
            }
        ],
    },
    "mre": {
        "policy": "2 constraints",
        "prior": "graded",
        "skipped": 0,
        "constraints": [
            {"name": "u1", "codes": 1, "true": 10, "estimate": 10.0, "mre": 0.0},
            {"name": "u2", "codes": 2, "true": 4, "estimate": 3.0, "mre": 0.25},
        ],
        "within_5_percent": 0.5,
        "intervals": [
            {"low": None, "high": -0.24, "count": 0, "share": 0.0},
            {"low": -0.025, "high": 0.025, "count": 1, "share": 0.5},
            {"low": 0.24, "high": None, "count": 1, "share": 0.5},
        ],
    },
}
VERIFICATION: dict[str, Any] = {
    "passed": True,
    "method": "disassociation",
    "with_source": True,
    "checks": [
        {"name": "cluster_sizes", "passed": True, "detail": "All 4 clusters hold 5 records.", "figures": {}},
        {"name": "source_codes", "passed": True, "detail": "All there.", "figures": {"violations": 0}},
    ],
    "warnings": ["a warning of the verifier"],
}


@pytest.fixture
def release(tmp_path: Path) -> Release:
    anonymized = Anonymized(
        method="disassociation",
        parameters={"k": 5, "m": 2, "partitioning": "fitted", "safe": False},
        guarantee=Guarantee("k^m-anonymity", "knows 2 codes", ("collusion",), k=5, m=2),
        records=40,
        tables=(ReleaseTable.of("nodes.parquet", pa.table({"node": [0]})),),
        readme="",
    )
    custody = {"measures.json": MEASURES, "verification.json": VERIFICATION}
    write(anonymized, tmp_path / "out", custody=custody)
    return Release.open(tmp_path / "out")


def page_of(
    release: Release,
    measures: dict[str, Any] = MEASURES,
    verification: dict[str, Any] = VERIFICATION,
    summary: Summary | None = None,
) -> str:
    return render(release, measures, verification, sections(release, measures, verification), summary)


def without_tags(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.split("</style>")[-1]))


def test_the_report_is_one_file_that_asks_for_no_other(release: Release) -> None:
    page = write_report(release.share.parent).read_text()
    addresses = set(re.findall(r'https?://[^"\s<)]+', page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert not re.search(r"<script|<link|<img|@import|url\(", page)
    assert "@media print" in page


def test_the_report_is_well_formed_and_named(release: Release) -> None:
    class Tags(html.parser.HTMLParser):
        open_: list[str]

        def __init__(self) -> None:
            super().__init__()
            self.open_, self.titles = [], []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag not in {"meta", "br"}:
                self.open_.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open_.pop() == tag

    page = page_of(release)
    tags = Tags()
    tags.feed(page)
    assert tags.open_ == []
    assert '<html lang="en">' in page
    ids = re.findall(r'<(?:section|h2|h3) id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)


def test_every_chart_has_a_title_and_words_for_who_cannot_see_it(release: Release) -> None:
    page = page_of(release)
    figures = re.findall(r"<figure.*?</figure>", page, re.DOTALL)
    assert len(figures) == 4
    for figure in figures:
        assert re.search(r"<h3[^>]*>\S", figure)
        assert re.search(r'role="img" aria-label="[^"]{20,}"', figure)
        assert "<svg" in figure


@pytest.mark.parametrize(
    "figure",
    [
        "22.2 %",  # 20 of 90 code occurrences in item chunks
        "2.1 %",  # the ARE at a glance
        "2.13 %",  # and in its table
        "40.0 %",  # 16 of all 40 patients at risk with up to two codes
        "3 of 40 patients",
        "The smallest number of candidate records was 6 ;",
        "estimated from a sample",
        "-25.0 %",
        "12 missing codes left out 12 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …",
        "passed cluster sizes All 4 clusters hold 5 records.",
        "a warning of the verifier",
        "Collusion",
        "Verified: all 2 checks",
        "No code was removed or generalized",
        "(the cover problem). 1 of 3 chunks with several codes hold such a pair, 7 pairs in all",
        "2 of the pairs hold wherever the first code is listed",
        "401.9 250.00 3 9 75.0 %",  # whoever knows, learns, clusters, patients, of all with the first
    ],
)
def test_the_figures_are_in_the_report(release: Release, figure: str) -> None:
    assert figure in without_tags(page_of(release))


def test_the_chart_has_bars_for_who_uses_the_algorithm(release: Release) -> None:
    further = Further(
        knows="2 codes", known="codes", sets=12, below_k=3, patients=6, among=40, smallest=4, tried=20
    )
    found = {**MEASURES, "reidentification": {"further": plain(further)}}
    chart, *_ = re.findall(r"<figure.*?</figure>", page_of(release, found), re.DOTALL)
    assert chart.count(">15.0 %<") == 2  # one code known, or two; beyond m nothing is said
    assert (
        "none with up to 2 for the attacker of its guarantee, at least 15.0 % for one who knows all of the algorithm"
        in chart
    )
    before, *_ = re.findall(r"<figure.*?</figure>", page_of(release), re.DOTALL)
    assert "by its guarantee" in before and "at least" not in before


def test_names_are_escaped(release: Release) -> None:
    page = page_of(release)
    assert "ward <7>" not in page
    assert "ward &lt;7&gt;.csv" in page
    assert str(to_html("**k^m-anonymity** of rank^m")) == "<strong>k<sup>m</sup>-anonymity</strong> of rank^m"
    assert str(to_html("a <b> **c** `d`")) == "a &lt;b&gt; <strong>c</strong> <code>d</code>"


def test_same_input_same_report(release: Release) -> None:
    assert page_of(release) == page_of(release)


def test_a_refuted_release_says_do_not_share(release: Release) -> None:
    refuted = copy.deepcopy(VERIFICATION)
    refuted["passed"] = refuted["checks"][0]["passed"] = False
    text = without_tags(page_of(release, MEASURES, refuted))
    assert "Verification failed: do not share" in text
    assert "FAILED cluster sizes" in text


def test_what_was_not_measured_has_no_section(release: Release) -> None:
    few = {"source": MEASURES["source"], "notices": [], "method": {}}
    titles = [section.title for section in sections(release, few, VERIFICATION)]
    assert titles == ["At a glance", "In plain words"]
    assert "Nothing was repaired" in without_tags(page_of(release, few))


def test_suppressed_codes_are_told(release: Release) -> None:
    some = {**MEASURES, "method": {"suppressed_occurrences": 7}}
    assert "7 mentions of codes were removed" in without_tags(page_of(release, some))


def test_bins_of_the_histogram_hold_every_error() -> None:
    near = [-0.4, -0.05, -0.0251, 0.0, 0.024999, 0.025, 0.39, 0.4]
    counts = {round(each["low"], 3): each["count"] for each in bins(near) if each["count"]}
    assert counts == {-0.4: 1, -0.05: 2, 0.0: 2, 0.025: 1, 0.375: 2}
    counts = {round(each["low"], 3): each["count"] for each in bins([-3.0, 0.0, 0.4, 9.0]) if each["count"]}
    assert counts == {-1.0: 1, 0.0: 1, 0.4: 1, 0.975: 1}


def test_a_report_needs_its_inputs(release: Release) -> None:
    assert release.custody is not None
    (release.custody / "measures.json").unlink()
    with pytest.raises(BadInput, match=r"a report needs custody/measures\.json"):
        write_report(release.share.parent)
    with pytest.raises(BadInput, match="not a release"):
        write_report(release.share / "data")


def test_a_notebook_shows_a_card(release: Release) -> None:
    card = result_html(
        release,
        VERIFICATION,
        json.loads(json.dumps(MEASURES)),
        Path("out/custody/report.html"),
        summary_of(release, MEASURES),
    )
    assert "knows 2 codes" in card
    assert "of the codes&#x27; occurrences are in item chunks" in card
    assert "40 records released with the method disassociation" in card
    assert "2 of 2 checks passed" in card
    assert "ward &lt;7&gt;.csv" in card


def test_the_page_is_for_dark_screens_phones_and_screen_readers_too(release: Release) -> None:
    page = page_of(release, MEASURES, VERIFICATION, summary_of(release, MEASURES))
    assert "@media (prefers-color-scheme: dark)" in page
    assert "@media (max-width: 640px)" in page
    for drawing in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        assert not re.search(
            r' (aria-[a-z]+|role)="', drawing
        )  # a sentence says what it shows, not each mark
    assert page.count('role="img" aria-label="') == page.count("<svg") > 1
    assert not re.search(r"<th[^>]*></th>", page)
    first = without_tags(page[page.index("<main") :].partition("</section>")[0])
    assert "Safe against" in first and "Not against" in first and "It cost" in first


def test_a_name_that_is_cut_still_says_that_it_is_its_categorys() -> None:
    from leeward.report.codes import label_code

    names = {"008.45": "Intestinal infections due to other organisms (category)", "428": "Heart failure"}
    assert label_code("428", names) == "428 Heart failure"
    assert label_code("008.45", names) == "008.45 Intestinal infections due… (category)"
    assert len(label_code("008.45", names)) <= 44
