"""Walk through a demo portal with the system's Chromium: pictures of each page, accessibility by axe.

    python -m tests.portal.browser FOLDER

First pages 1 to 13, page 3 by keyboard; then, from invitation to audit, pages 14 and on: a set-up link, a second
factor, somebody from an identity provider who does everything by keyboard, stopping and starting again. Pictures are
1200 and 390 pixels wide, light, dark and as printed. Ends with 1 where axe finds something serious, a
page is wider than the window, a script is blocked, or the keyboard does not reach what it has to. It is a program and
no test of pytest, so that the tests need no Chromium for the portal.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import oidc_provider_mock as others
import pyotp
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright
from tests.portal.served import serving
from tests.runs.made_lines import cohort, visits

import leeward as lw
from leeward.portal.app import make_app
from leeward.portal.settings import Provider, read_settings
from leeward.runs.portal import Demo, make_demo

SERIOUS = {"serious", "critical"}
WIDTHS = {"wide": 1200, "narrow": 390}


@contextmanager
def demo_portal(patients: int = 2000) -> Iterator[tuple[str, Demo]]:
    """The address of a demo portal with an identity provider, and what is in it."""
    eva = others.User(sub="eva", claims={"name": "Eva External"})
    with (
        tempfile.TemporaryDirectory() as folder,
        others.run_server_in_thread(require_nonce=True, user_claims=[eva]) as server,
    ):
        where, made = Path(folder) / "portal", []
        issuer = f"http://localhost:{server.server_port}"

        def make(port: int) -> Any:
            url = f"http://127.0.0.1:{port}"
            callback = {"redirect_uris": [f"{url}/sign-in/callback"]}
            client = httpx.post(f"{issuer}/oauth2/clients", json=callback).json()
            provider = Provider(
                issuer=issuer, client_id=client["client_id"], client_secret=client["client_secret"],
                name="the university",
            )  # fmt: skip
            made.append(make_demo(where, patients=patients, public_url=url))
            make_version(Path(folder), where / "releases" / "second")
            return make_app(
                read_settings(where, local_accounts=True, public_url=url, provider=provider, slot=0)
            )

        with serving(make) as port:
            yield f"http://127.0.0.1:{port}", made[0]


def make_version(folder: Path, out: Path) -> None:
    """The second version of a release that a register counts."""
    house = folder / "house.yaml"
    house.write_text("register: {url: register.db, key: register.secret}\n")
    os.environ["LEEWARD_HOUSE"] = str(house)
    first, second = map(cohort, visits(400, 2, 10, 7))
    handover = {"recipient": "university", "line": "quarters"}
    lw.protect(first, lw.Visits(k=3, policy="none"), folder / "first", handover=handover)
    lw.refresh(folder / "first", second, out, published=first)


class Walk:
    """A walk through the pages, with what was wrong on the way."""

    def __init__(self, browser: Browser, url: str, demo: Demo, pictures: Path) -> None:
        self.browser, self.url, self.demo, self.pictures = browser, url, demo, pictures
        self.wrong: list[str] = []
        self.pages: set[str] = set()
        self.found: Counter[str] = Counter()
        """Severity -> findings of axe, one a page and rule."""

    def window(self) -> Page:
        """A new window of somebody who is not signed in."""
        page = self.browser.new_context(viewport={"width": 1200, "height": 900}).new_page()
        page.on("console", lambda said: self._heard(said.text) if self._is_ours(said) else None)
        page.on("pageerror", lambda error: self._heard(str(error)))
        page.goto(f"{self.url}/sign-in")
        return page

    def sign_in(self, login: str) -> Page:
        """A new window, signed in by the form."""
        page = self.window()
        page.fill("#login", login)
        page.fill("#password", self.demo.passwords[login])
        page.click("text=Sign in >> nth=-1")
        assert page.url == f"{self.url}/", page.url
        return page

    def _is_ours(self, said: ConsoleMessage) -> bool:
        """Whether it is an error of a page of the portal, not of the identity provider's."""
        return said.type == "error" and str(said.location["url"]).startswith(self.url)

    def _heard(self, text: str) -> None:
        if not any(known in text for known in ("401", "409", "422", "sandbox")):
            self.wrong.append(f"the browser says: {text[:200]}")

    def look(self, page: Page, name: str) -> None:
        """Pictures of a page, axe's findings with all that can be opened, and whether it fits into a narrow window."""
        self.pages.add(name)
        for kind, width in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme="light")
            page.screenshot(path=self.pictures / f"{name}-{kind}.png", full_page=True)
        closed = "details:not([open])"
        page.evaluate(
            f"document.querySelectorAll('{closed}').forEach(each => each.dataset.closed = each.open = true)"
        )
        for width in (390, 320):
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.documentElement.scrollWidth")
            if wide > width:
                self.wrong.append(f"{name}: {wide} pixels wide in a window of {width}")
        page.set_viewport_size({"width": 1200, "height": 900})
        findings = self._axe(page, f"{name}, light")
        page.emulate_media(color_scheme="dark")
        page.screenshot(path=self.pictures / f"{name}-dark.png", full_page=True)
        findings |= self._axe(page, f"{name}, dark")
        self.found.update(findings.values())
        page.evaluate("document.querySelectorAll('[data-closed]').forEach(each => each.open = false)")
        page.emulate_media(media="print", color_scheme="light")
        page.screenshot(path=self.pictures / f"{name}-print.png", full_page=True)
        page.emulate_media(media="screen")

    def _axe(self, page: Page, name: str) -> dict[str, str]:
        """Rule -> severity of what axe finds."""
        found = Axe().run(page).response["violations"]
        for each in found:
            where = "; ".join(str(node["target"]) for node in each["nodes"][:3])
            text = f"{name}: {each['id']} ({each['impact']}) at {where}"
            if each["impact"] in SERIOUS:
                self.wrong.append(text)
            else:
                sys.stdout.write(f"{text}\n")
        return {each["id"]: each["impact"] for each in found}

    def walk(self) -> None:
        """Pages 1 to 13, as those people who use them."""
        demo = self.demo
        nobody = self.browser.new_context().new_page()
        nobody.goto(f"{self.url}/sign-in")
        self.look(nobody, "01-sign-in")
        nobody.goto(f"{self.url}/help")
        self.look(nobody, "13-help")
        rita = self.sign_in("rita")
        self.look(rita, "02-projects")
        self.ask_by_keyboard(rita)
        self.look(rita, "04-answer")
        self.ask_a_histogram(rita)
        self.look(rita, "04-answer-by-month")
        self.ask_codes_by_keyboard(rita)
        self.look(rita, "04-answer-of-codes")
        rita.goto(f"{self.url}/projects/{demo.project}/answers")
        self.look(rita, "05-answers")
        rita.goto(f"{self.url}/projects/{demo.project}/batch")
        rita.fill("#lines", "fever --when 2025-01\ncough --by when")
        rita.click("text=Price")
        self.look(rita, "05-batch")
        rita.goto(f"{self.url}/catalogue")
        self.look(rita, "06-catalogue")
        rita.goto(f"{self.url}/releases")
        with rita.expect_download() as waiting:
            rita.click("text=README.md >> nth=0")
        assert waiting.value.path().stat().st_size > 0
        self.look(rita, "09-my-releases")
        lea = self.sign_in("lea")
        lea.goto(f"{self.url}/projects/{demo.project}")
        self.look(lea, "07-project")
        carl = self.sign_in("carl")
        carl.goto(f"{self.url}/custody/indexes")
        self.look(carl, "08-indexes")
        carl.goto(f"{self.url}/custody/releases/{demo.release}")
        carl.click("text=Verify now")
        self.look(carl, "09-release")
        frame = carl.locator("iframe.report")
        frame.scroll_into_view_if_needed()  # a browser without a screen draws a frame only where it can be seen
        carl.wait_for_timeout(500)
        carl.screenshot(path=self.pictures / "09-release-report-wide.png")
        anna = self.sign_in("anna")
        self.propose_release(carl)
        self.decide(anna, "publish a release", "10-decision-on-a-release")
        carl.goto(f"{self.url}/custody/releases")
        carl.click("text=Visits by quarter")
        self.look(carl, "09-release-of-a-version")
        anna.goto(f"{self.url}/decisions")
        self.look(anna, "10-decisions")
        anna.fill("textarea", "One season is enough.")
        anna.click("text=Decline")
        assert "Declined" in anna.inner_text("main")
        anna.goto(f"{self.url}/audit")
        self.look(anna, "11-audit")
        ida = self.sign_in("ida")
        ida.goto(f"{self.url}/admin")
        self.look(ida, "12-admin")

    def walk_from_invitation_to_audit(self) -> None:
        """Two people come, one with a set-up link and one from the university; what they need is opened, stopped and
        started again; the first one is made an auditor and looks at it."""
        ida, carl, anna = (self.sign_in(login) for login in ("ida", "carl", "anna"))
        tom, codes = self.set_up(ida)
        ida.goto(f"{self.url}/admin")
        row = ida.locator("div.card", has_text="Tom Tester").last
        row.locator("summary").click()
        row.locator("input[value=auditor]").check()
        row.locator("[name=reason]").first.fill("Audits the studies of this winter.")
        row.locator("button", has_text="Propose").first.click()
        self.look(ida, "17-decisions-on-accounts")
        self.decide(anna, "give roles of the house")

        eva = self.come_from_the_university()
        self.press(eva, "Data", link=True)
        self.look(eva, "19-data")
        self.tab_to(eva, "summary")
        eva.keyboard.press("Enter")
        self.tab_to(eva, "textarea")
        eva.keyboard.type("How often does a fever come without a cough? Ethics number 2026-077.")
        self.press(eva, "Send to the custodians")

        carl.goto(self.url)
        self.look(carl, "20-waiting")
        carl.goto(f"{self.url}/data")
        self.look(carl, "20-requests")
        carl.click("#requests >> text=Close")
        self.make_project(carl)
        for index in ("Clinic notes 2025", "Diagnoses (ICD-9-CM)"):
            self.propose_allotment(carl, index)
            self.decide(anna, "allot to a project", "21-decision-on-an-allotment")

        self.ask_everything_by_keyboard(eva)
        self.stop_and_start(carl, anna, eva)
        self.audit(tom, codes)

    def set_up(self, ida: Page) -> tuple[Page, pyotp.TOTP]:
        """An administrator makes an account; its owner sets a password and a second factor, and signs in with both."""
        ida.goto(f"{self.url}/admin")
        ida.fill("#login", "tom")
        ida.fill("#name", "Tom Tester")
        ida.click("text=Make the account")
        self.look(ida, "14-link")
        link = re.search(r"http\S+/set-up\?link=[\w-]+", ida.inner_text("main"))
        assert link is not None
        tom, password = self.window(), "a long password of Tom's"
        tom.goto(link[0])
        self.look(tom, "15-set-up")
        self.type_into(tom, "#password", password, "Enter")
        self.demo.passwords["tom"] = password
        tom = self.sign_in("tom")
        tom.goto(f"{self.url}/account")
        self.look(tom, "16-account")
        self.type_into(tom, "#password", password, "Enter")
        secret = tom.inner_text("code")
        self.look(tom, "16-second-factor")
        codes = pyotp.TOTP(secret)
        self.type_into(tom, "#code", codes.now(), "Enter")
        self.look(tom, "16-account-with-a-second-factor")
        return tom, codes

    def come_from_the_university(self) -> Page:
        """Somebody without an account here signs in at the identity provider, by keyboard."""
        eva = self.window()
        self.press(eva, "Sign in with the university", link=True)
        self.type_into(eva, "[name=sub]", "eva", "Enter")
        assert eva.url == f"{self.url}/", eva.url
        self.look(eva, "18-no-role-yet")
        return eva

    def make_project(self, carl: Page) -> None:
        carl.goto(self.url)
        carl.fill("#name", "Fever without cough")
        carl.fill("#plan", "How often does a fever come without a cough, by month?")
        carl.fill("#ethics", "2026-077")
        carl.select_option("#lead", label="Eva External")
        carl.click("text=Make the project")
        self.look(carl, "20-project-of-a-custodian")

    def propose_release(self, carl: Page) -> None:
        carl.goto(f"{self.url}/custody/releases")
        carl.select_option("#folder", label="second")
        carl.fill("#name", "Visits by quarter")
        carl.get_by_label("Rita Researcher").check()
        carl.fill("#ends", "2099-01-01")
        carl.fill("#reason", "The second quarter, as agreed.")
        carl.click("text=Verify and propose")

    def propose_allotment(self, carl: Page, index: str) -> None:
        carl.goto(self.url)
        carl.click("text=Fever without cough")
        carl.select_option("#index", label=index)
        carl.fill("#epsilon", "2")
        carl.fill("#most_an_answer", "1")
        carl.fill("#ends", "2099-01-01")
        carl.fill("#reason", "As in the ethics vote.")
        carl.click("form[action$='/custody/allotments'] button")

    def decide(self, anna: Page, what: str, name: str = "") -> None:
        """Confirm the newest open proposal of a kind."""
        anna.goto(f"{self.url}/decisions")
        if name:
            self.look(anna, name)
        waiting = anna.locator("section.card", has_text=re.compile(what, re.I))
        waiting = waiting.filter(has=anna.locator("button", has_text="Confirm")).first
        waiting.locator("[name=reason]").first.fill("I called back; it is right.")
        waiting.locator("button", has_text="Confirm").first.click()
        assert "/decisions" in anna.url, anna.inner_text("main")

    def ask_everything_by_keyboard(self, eva: Page) -> None:
        """One question with not on notes, one with or on codes, a batch."""
        eva.goto(self.url)
        self.look(eva, "22-projects-of-a-lead")
        self.press(eva, "Ask", link=True)
        self.type_into(eva, "#terms", "fever & !cough")
        self.type_into(eva, "#within", "25")
        eva.locator("#price", has_text="Left after").wait_for()
        self.press(eva, "Ask and pay …")
        self.press(eva, "Ask and pay ε")
        self.look(eva, "22-answer-with-not")
        eva.goto(f"{self.url}/projects/{self.project_of(eva)}/ask?index={self.demo.codes}")
        self.type_into(eva, "#terms", "401 | (250 & !585)")
        self.type_into(eva, "#within", "25")
        eva.locator("#price", has_text="Left after").wait_for()
        self.press(eva, "Ask and pay …")
        self.press(eva, "Ask and pay ε")
        self.look(eva, "22-answer-of-codes-with-or")
        eva.goto(f"{self.url}/projects/{self.project_of(eva)}/batch")
        self.type_into(eva, "#lines", "'fever | cough' --when 2025-01..2025-06")
        self.press(eva, "Price")
        self.press(eva, "Ask and pay")
        self.look(eva, "23-batch-done")

    def project_of(self, page: Page) -> str:
        """The project that somebody has."""
        page.goto(self.url)
        return str(page.get_attribute("main h2 a", "href")).rsplit("/", 1)[-1]

    def stop_and_start(self, carl: Page, anna: Page, eva: Page) -> None:
        """A custodian stops a project, its lead is refused; two people start it again."""
        project = self.project_of(eva)
        eva.goto(f"{self.url}/projects/{project}/ask")
        carl.goto(f"{self.url}/projects/{project}")
        carl.click("summary:has-text('Stop')")
        carl.locator("form[action$='/custody/stop'] [name=reason]").fill(
            "The ethics vote is looked at again."
        )
        carl.locator("form[action$='/custody/stop'] button").click()
        self.look(carl, "24-stopped")
        self.type_into(eva, "#terms", "rash")
        self.press(eva, "Price")
        self.look(eva, "24-refused-as-it-is-stopped")
        carl.click("summary:has-text('Start again')")
        carl.locator("form[action$='/custody/start'] [name=reason]").fill("The vote stands.")
        carl.locator("form[action$='/custody/start'] button").click()
        self.decide(anna, "start again", "24-decision-on-a-start")
        eva.goto(f"{self.url}/projects/{project}/ask")
        self.type_into(eva, "#terms", "rash")
        eva.locator("#price", has_text="Left after").wait_for()

    def audit(self, tom: Page, codes: pyotp.TOTP) -> None:
        """The auditor signs in with a code, and sees who did what."""
        tom.click("text=Sign out")
        tom.fill("#login", "tom")
        tom.fill("#password", self.demo.passwords["tom"])
        tom.click("text=Sign in >> nth=-1")
        self.look(tom, "25-code")
        self.type_into(tom, "#code", codes.at(int(time.time()) + 30), "Enter")
        tom.goto(f"{self.url}/audit")
        self.look(tom, "25-audit")
        tom.goto(f"{self.url}/decisions")
        self.look(tom, "25-decisions")

    def type_into(self, page: Page, target: str, text: str, key: str = "") -> None:
        """Tab to a field, write into it in the place of what is there, and press a key that leads to another page."""
        page.evaluate("document.activeElement.blur()")
        self.tab_to(page, target)
        page.keyboard.press("Control+A")
        page.keyboard.type(text)
        if key:
            with page.expect_navigation():
                page.keyboard.press(key)

    def ask_by_keyboard(self, page: Page) -> None:
        """Page 3 without a mouse: find a term, price, rehearse, ask and pay."""
        page.goto(f"{self.url}/projects/{self.demo.project}/ask")
        self.tab_to(page, "#find")
        page.keyboard.type("fev")
        page.wait_for_selector("#found button")
        self.look_live(page, "03-ask-terms")
        page.keyboard.press("Tab")  # Search
        page.keyboard.press("Tab")  # Browse
        page.keyboard.press("Tab")  # the first term
        assert page.evaluate("document.activeElement.name") == "add"
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.input_value("#terms") != ""
        self.tab_to(page, "#within")
        page.keyboard.press("Control+A")
        page.keyboard.type("15")
        page.locator("#price", has_text=re.compile("± 1[0-5]")).wait_for()
        self.look(page, "03-ask")
        self.press(page, "Rehearse")
        assert "made-up patients" in page.inner_text("main")
        self.look(page, "03-rehearsal")
        self.press(page, "Ask and pay …")
        self.look(page, "03-ask-and-pay")
        self.press(page, "Ask and pay ε")
        assert "/answers/" in page.url

    def ask_codes_by_keyboard(self, page: Page) -> None:
        """The index of codes: found by a word, browsed from the top, saved as a set, asked with or and not."""
        page.goto(f"{self.url}/projects/{self.demo.project}/ask?index={self.demo.codes}")
        assert "sore throat" not in page.inner_text("main") and "250 & (401 | 585)" in page.inner_text("main")
        self.tab_to(page, "#find")
        page.keyboard.type("hypertens")
        page.wait_for_selector("#found button")
        assert "Essential hypertension (401)" in page.inner_text("#found")
        self.look(page, "03-ask-codes-found")
        page.focus("#find")
        self.tab_to(page, "button[name=below][value='*']")
        page.keyboard.press("Enter")
        page.wait_for_selector("#found >> text=Top of the tree")
        self.look(page, "03-ask-codes-top")
        page.focus("#find")
        self.tab_to(page, "button[name=below][value='390-459']")
        page.keyboard.press("Enter")
        page.wait_for_selector("#found >> text=Hypertensive disease")
        self.look(page, "03-ask-codes-below")
        page.focus("#find")
        self.tab_to(page, "button[name=add][value='401-405']")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert (
            page.evaluate("document.activeElement.id") == "terms" and page.input_value("#terms") == "401-405"
        )
        page.fill("#terms", "401-405 | 250")
        page.click("summary")
        page.fill("#set_name", "risk")
        page.click("text=Save >> nth=-1")
        assert page.input_value("#terms") == "@risk"
        page.fill("#terms", "@risk & !585")
        page.fill("#within", "0")
        page.locator("#price", has_text="at most ε 1").wait_for()
        self.look(page, "03-ask-codes-ceiling")
        page.fill("#within", "15")
        page.locator("#price", has_text="with any one patient as without").wait_for()
        self.look(page, "03-ask-codes")
        self.press(page, "Ask and pay …")
        self.press(page, "Ask and pay ε")
        assert "times as likely with any one patient" in page.inner_text("main")

    def ask_a_histogram(self, page: Page) -> None:
        """A question by month, with the form."""
        page.goto(f"{self.url}/projects/{self.demo.project}/ask")
        page.fill("#terms", "influenza")
        page.select_option("#by", "when")
        page.fill("#within", "30")
        page.click("text=Rehearse")
        self.look(page, "03-rehearsal-by-month")
        page.click("text=Ask and pay …")
        page.click("main button.first")
        assert "/answers/" in page.url, page.inner_text("main")

    def look_live(self, page: Page, name: str) -> None:
        """A picture of what is open now."""
        page.screenshot(path=self.pictures / f"{name}-wide.png", full_page=True)

    def tab_to(self, page: Page, target: str) -> None:
        """Press Tab until something has the focus."""
        for _ in range(60):
            if page.evaluate(f"document.activeElement.matches({target!r})"):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not reach {target}")

    def press(self, page: Page, text: str, link: bool = False) -> None:
        """Tab to a button, or a link, by its text and press Enter."""
        page.evaluate("document.activeElement.blur()")
        for _ in range(80):
            page.keyboard.press("Tab")
            kind, has = page.evaluate(
                "[document.activeElement.tagName, document.activeElement.innerText || '']"
            )
            if has.startswith(text) and (kind in ("A", "BUTTON") if link else kind == "BUTTON"):
                with page.expect_navigation():
                    page.keyboard.press("Enter")
                return
        raise AssertionError(f"Tab does not reach the button {text}")


def chromium() -> str:
    """The system's Chromium."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        sys.exit("Chromium is missing (Debian: apt-get install chromium).")
    return found


def main() -> None:
    """Walk, and say what was wrong."""
    pictures = Path(sys.argv[1] if len(sys.argv) > 1 else ".cache/portal-pictures")
    pictures.mkdir(parents=True, exist_ok=True)
    with demo_portal() as (url, demo), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        walk = Walk(browser, url, demo, pictures)
        walk.walk()
        walk.walk_from_invitation_to_audit()
        browser.close()
    found = ", ".join(f"{number} {severity}" for severity, number in sorted(walk.found.items())) or "nothing"
    said = (
        f"{len(walk.pages)} pages; axe found {found}; {len(walk.wrong)} things wrong; pictures in {pictures}"
    )
    sys.stdout.write("\n".join([*walk.wrong, said, ""]))
    sys.exit(1 if walk.wrong else 0)


if __name__ == "__main__":
    main()
