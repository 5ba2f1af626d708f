"""Walk pages 1 to 13 of a demo portal with the system's Chromium: pictures, accessibility by axe, page 3 by keyboard.

    python -m tests.portal.browser FOLDER

Pictures are 1200 and 390 pixels wide, light, dark and as printed. Ends with 1 where axe finds something serious, a
page is wider than the window, a script is blocked, or the keyboard does not reach what it has to. It is a program and
no test of pytest, so that the tests need no Chromium for the portal.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright
from tests.portal.served import serving

from leeward.portal.app import make_app
from leeward.portal.settings import read_settings
from leeward.runs.portal import Demo, make_demo

SERIOUS = {"serious", "critical"}
WIDTHS = {"wide": 1200, "narrow": 390}


@contextmanager
def demo_portal(patients: int = 2000) -> Iterator[tuple[str, Demo]]:
    """The address of a demo portal, and what is in it."""
    with tempfile.TemporaryDirectory() as folder:
        where, made = Path(folder) / "portal", []

        def make(port: int) -> Any:
            url = f"http://127.0.0.1:{port}"
            made.append(make_demo(where, patients=patients, public_url=url))
            return make_app(read_settings(where, local_accounts=True, public_url=url))

        with serving(make) as port:
            yield f"http://127.0.0.1:{port}", made[0]


class Walk:
    """A walk through the pages, with what was wrong on the way."""

    def __init__(self, browser: Browser, url: str, demo: Demo, pictures: Path) -> None:
        self.browser, self.url, self.demo, self.pictures = browser, url, demo, pictures
        self.wrong: list[str] = []
        self.sessions: dict[str, Any] = {}

    def sign_in(self, login: str, **options: Any) -> Page:
        """A new window, signed in by the form."""
        context = self.browser.new_context(viewport={"width": 1200, "height": 900}, **options)
        page = context.new_page()
        page.on("console", lambda message: self._heard(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self._heard(str(error)))
        page.goto(f"{self.url}/sign-in")
        page.fill("#login", login)
        page.fill("#password", self.demo.passwords[login])
        page.click("main button")
        assert page.url == f"{self.url}/", page.url
        return page

    def _heard(self, text: str) -> None:
        if "401" not in text and "sandbox" not in text:
            self.wrong.append(f"the browser says: {text[:200]}")

    def look(self, page: Page, name: str) -> None:
        """Pictures of a page, axe's findings, and whether it fits into a narrow window."""
        for kind, width in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme="light")
            page.screenshot(path=self.pictures / f"{name}-{kind}.png", full_page=True)
        for width in (390, 320):
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.documentElement.scrollWidth")
            if wide > width:
                self.wrong.append(f"{name}: {wide} pixels wide in a window of {width}")
        page.set_viewport_size({"width": 1200, "height": 900})
        self._axe(page, f"{name}, light")
        page.emulate_media(color_scheme="dark")
        page.screenshot(path=self.pictures / f"{name}-dark.png", full_page=True)
        self._axe(page, f"{name}, dark")
        page.emulate_media(media="print", color_scheme="light")
        page.screenshot(path=self.pictures / f"{name}-print.png", full_page=True)
        page.emulate_media(media="screen")

    def _axe(self, page: Page, name: str) -> None:
        found = Axe().run(page).response
        for each in found["violations"]:
            if each["impact"] in SERIOUS:
                where = "; ".join(str(node["target"]) for node in each["nodes"][:3])
                self.wrong.append(f"{name}: {each['id']} ({each['impact']}) at {where}")

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

    def press(self, page: Page, text: str) -> None:
        """Tab to a button by its text and press Enter."""
        page.evaluate("document.activeElement.blur()")
        for _ in range(80):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.innerText || ''").startswith(text):
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
        browser.close()
    sys.stdout.write("\n".join([*walk.wrong, f"{len(walk.wrong)} things wrong; pictures in {pictures}", ""]))
    sys.exit(1 if walk.wrong else 0)


if __name__ == "__main__":
    main()
