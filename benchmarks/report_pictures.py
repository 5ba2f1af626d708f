"""Every kind of report as pictures: 1200 pixels light and dark, 390 pixels, printed; axe, and what is cut off.

    python benchmarks/report_pictures.py --data DIR --out FOLDER [--only NAME,NAME]

Releases are made from 20,000 rows of UCI, from Rotterdam and from 60 made-up notes, and kept in FOLDER, so that a page
can be drawn again. Sheets in FOLDER/sheets show each page from top to bottom, cut into columns; NAME.pdf beside them is
what a printer gets. Needs Chromium. Ends
with 1 where axe finds something serious, a page is wider than its window, or a letter is outside of its chart.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

START = "import sys; from leeward.cli.main import main; main(sys.argv[1:])"
UCI = "uci.csv --patient patient_nbr --missing ?"
CODES = f"{UCI} --code diag_1,diag_2,diag_3"
WITH = "--attributes age,gender --demographics age,gender --keep gender:exact"
ROTTERDAM = "rotterdam.csv --drop rownames,rtime,recur --patient pid"
PLAN = "plan:\n- cox: {time: dtime, event: death, covariates: [age, meno, size, grade, nodes]}\n"
COUNTS = (
    "recipient: {who: named researchers, controls: [contract], knows: {codes: 2}}\n"
    "plan:\n- counts: {of: codes, within: 10 %, from: 50}\n"
)
CODES_SPEC = (
    "source: {path: uci.csv, missing: ['?'], columns: {patient: patient_nbr, code: [diag_1, diag_2, diag_3]}}\n"
    "method: {name: disassociation, k: 5, m: 2}\n"
)
MODES = {
    "light": (1200, "light", "screen"), "dark": (1200, "dark", "screen"),
    "narrow": (390, "light", "screen"), "print": (794, "light", "print"),
}  # fmt: skip
COMMANDS = {
    "disassociation": f"disassociate {CODES} --k 5 --m 2",
    "disassociation-with": f"disassociate {CODES} --k 5 --m 2 {WITH}",
    "constraints": f"constrain {CODES} --k 5 --m 2",
    "constraints-with": f"constrain {CODES} --k 5 --m 2 {WITH}",
    "visits": f"visits {CODES} --visit encounter_id --k 5",
    "visits-with": f"visits {CODES} --visit encounter_id --k 5 {WITH}",
    "cohort": "cohort visits --select codes_of_250.csv --patient patient --membership-is-secret unlisted",
    "censoring": f"censor part.csv {CODES.partition(' ')[2]} --population uci.csv --k 5 --cap 3",
    "trajectories": "trajectories EUNOMIA --k 5",
    "condensation": f"condense {ROTTERDAM} --k 50 --plan plan.yaml",
    "k-anonymity": f"k-anonymize {ROTTERDAM} --k 10 --quasi-identifiers age,meno,size,grade",
    "linked": f"link {CODES} --visit encounter_id --k 5 {WITH}",
    "catalogue": "itemsets INDEX --epsilon 2",
    "compare": "compare disassociation constraints",
    "notes": "notes annotate notes.parquet --review 8",
    "explore": "explore codes.yaml --vary k=5,14 --vary m=2,3 --methods constraints,visits --plan counts.yaml "
    "--sample 3000",
    "dossier": "dossier disassociation --plan counts.yaml --explored explore",
}
"""The page -> the command that makes its folder."""
FIRST = (
    f"index {CODES} --terms icd9 --epsilon-total 10 -o INDEX",
    "synth notes --patients 60 --seed 1 -o notes.parquet",
)
CUT = """() => [...document.querySelectorAll('svg')].flatMap(svg => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(text => {
    const box = text.getBoundingClientRect();
    return box.width && frame.width &&
      (box.left < frame.left - 1 || box.right > frame.right + 1 ||
       box.top < frame.top - 2 || box.bottom > frame.bottom + 2);
  }).map(text => text.textContent);
})"""
"""Texts that leave the frame of their chart."""


def leeward(folder: Path, command: str) -> None:
    """Run a command in the folder."""
    env = {**os.environ, "LEEWARD_STATE": str(folder / "state")}
    ran = subprocess.run(
        [sys.executable, "-c", START, *command.split()], cwd=folder, env=env, capture_output=True, text=True
    )
    if ran.returncode:
        sys.exit(f"{command}: status {ran.returncode}\n{ran.stderr}")


def sources(data: Path, folder: Path) -> None:
    """What the commands read."""
    with gzip.open(data / "uci-diabetes130/diabetic_data.csv.gz", "rt", encoding="utf-8") as packed:
        rows = list(islice(packed, 20_001))
    (folder / "uci.csv").write_text("".join(rows), encoding="utf-8")
    patients = dict.fromkeys(row.split(",")[1] for row in rows[1:4000])
    part = [row for row in rows[1:] if row.split(",")[1] in patients]
    (folder / "part.csv").write_text("".join([rows[0], *part]), encoding="utf-8")
    (folder / "codes_of_250.csv").write_text("patient\n" + "\n".join(patients) + "\n", encoding="utf-8")
    shutil.copy(data / "survival/rotterdam.csv", folder)
    (folder / "plan.yaml").write_text(PLAN, encoding="utf-8")
    (folder / "counts.yaml").write_text(COUNTS, encoding="utf-8")
    (folder / "codes.yaml").write_text(CODES_SPEC, encoding="utf-8")
    (folder / "EUNOMIA").symlink_to(data / "eunomia-gibleed")
    for command in FIRST:
        leeward(folder, command)


def page_of(folder: Path) -> Path:
    """The page for people in a folder that a command wrote."""
    return next(page for page in sorted(folder.rglob("*.html")) if page.is_file())


def look(browser: Browser, page: Path, name: str, sheets: Path) -> list[str]:
    """The page's four pictures, and what is wrong with it."""
    wrong: list[str] = []
    for mode, (width, scheme, media) in MODES.items():
        window = browser.new_page(viewport={"width": width, "height": 1000}, color_scheme=scheme)
        window.emulate_media(media=media, color_scheme=scheme)
        window.goto(page.absolute().as_uri())
        wide = window.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            wrong.append(f"{mode}: {wide} pixels wide in a window of {width}")
        wrong += [f"{mode}: cut off: {text}" for text in window.evaluate(CUT)]
        if media == "screen":
            wrong += [
                f"{mode}: {each['id']} at {each['nodes'][0]['target']}"
                for each in Axe().run(window).response["violations"]
                if each["impact"] in ("serious", "critical")
            ]
        picture = sheets / f"{name}-{mode}.png"
        window.screenshot(path=picture, full_page=True)
        if media == "print":
            window.pdf(path=sheets / f"{name}.pdf", prefer_css_page_size=True)
        columns(picture)
        window.close()
    return [f"{name} {each}" for each in wrong]


def columns(picture: Path, height: int = 1500, most: int = 1700) -> None:
    """Cut a long picture into sheets of columns side by side, in place of it."""
    whole = Image.open(picture).convert("RGB")
    across = max(1, most // whole.width)
    pieces = [
        whole.crop((0, top, whole.width, min(top + height, whole.height)))
        for top in range(0, whole.height, height)
    ]
    picture.unlink()
    for number in range(0, len(pieces), across):
        chosen = pieces[number : number + across]
        sheet = Image.new("RGB", (len(chosen) * (whole.width + 10), height), "red")
        for place, piece in enumerate(chosen):
            sheet.paste(piece, (place * (whole.width + 10), 0))
        sheet.save(picture.with_name(f"{picture.stem}-{number // across + 1}.png"))


def main() -> None:
    """Make, look, and say what is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default=",".join(COMMANDS))
    given = parser.parse_args()
    folder, sheets = given.out.absolute(), given.out.absolute() / "sheets"
    sheets.mkdir(parents=True, exist_ok=True)
    if not (folder / "INDEX").exists():
        sources(given.data.absolute(), folder)
    wrong: list[str] = []
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in given.only.split(","):
            if not (folder / name).exists():
                leeward(folder, f"{COMMANDS[name]} -o {name}")
            found = look(browser, page_of(folder / name), name, sheets)
            print(f"{name}: {len(found)} wrong", flush=True)
            wrong += found
        browser.close()
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
