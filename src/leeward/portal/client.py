"""`leeward.connect(url)`: ask a portal from Python."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from leeward.errors import BadInput, GuaranteeUnreachable, require_extra

if TYPE_CHECKING:
    import httpx
    import polars as pl

WAIT: Final = 120.0
TRIES: Final = 4
LONGEST_PAUSE: Final = 60
"""Seconds to wait at most before the next try, whatever the portal says."""


class PortalSilent(BadInput):
    """The portal does not answer."""

    def __init__(self, url: str) -> None:
        super().__init__(f"{url}: the portal does not answer.")


class PortalRefused(BadInput):
    """The portal refused; `status` is the HTTP status, `problem` the reply's body."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(f"{problem.get('title', 'refused')}: {problem.get('detail', '')}")
        self.status, self.problem = status, problem


class NotEnoughBudget(GuaranteeUnreachable):
    """What is left does not pay for the question; nothing was charged."""


@dataclass(frozen=True, repr=False)
class Portal:
    """A portal, asked with a token for one project."""

    url: str
    project: str
    http: httpx.Client = field(repr=False)
    """Has the token. It follows no redirect: a token and a question go to the address that was given, or nowhere."""

    def __repr__(self) -> str:
        return f"<Portal {self.url}, project {self.project}>"

    def indexes(self) -> list[dict[str, Any]]:
        """Indexes that the project may ask, with what is left."""
        return list(self._get(f"/projects/{self.project}")["indexes"])

    def terms(self, index: str, words: str) -> list[dict[str, Any]]:
        """Terms and codes of the public vocabulary, best first: by the beginning of a code, words of a name, synonyms.
        `asked` is how a question writes one."""
        return list(self._get(f"/indexes/{quote(index)}/vocabulary", prefix=words))

    def browse(self, index: str, name: str = "") -> list[dict[str, Any]]:
        """The names directly below one in the vocabulary's tree; by default its top."""
        return list(self._get(f"/indexes/{quote(index)}/vocabulary", below=name))

    def sets(self) -> dict[str, str]:
        """The project's saved sets of terms, by name; a question names one as `@name`."""
        return {each["name"]: each["terms"] for each in self._get(f"/projects/{self.project}/sets")}

    def save_set(self, name: str, terms: str) -> None:
        """Save terms such as `401 | 402` under a name, in the place of what was there."""
        self._send("PUT", f"/projects/{self.project}/sets/{quote(name)}", json={"terms": terms})

    def remove_set(self, name: str) -> None:
        """Take a set's name away; answers to questions that named it stay."""
        self._send("DELETE", f"/projects/{self.project}/sets/{quote(name)}")

    def price(self, index: str, terms: str, **question: Any) -> dict[str, Any]:
        """What a question costs and how exact its answer is; nothing is charged."""
        return self._post("/questions:price", self._question(index, terms, question))

    def rehearse(self, index: str, terms: str, **question: Any) -> dict[str, Any]:
        """The answer of made-up patients; nothing is charged."""
        return self._post("/questions:rehearse", self._question(index, terms, question))

    def ask(self, index: str, terms: str, *, key: str | None = None, **question: Any) -> dict[str, Any]:
        """Ask and pay. `question`: `epsilon` or `within`, and `conditions`, `by`, `most`, `count`, `unit`. A lost
        reply is asked for again with the same key and charged once. NotEnoughBudget where the budget does not pay,
        else PortalRefused."""
        return self._post(
            "/questions", self._question(index, terms, question), key or secrets.token_urlsafe(16)
        )

    def ask_all(
        self, index: str, questions: Sequence[Mapping[str, Any]], *, key: str | None = None
    ) -> list[dict[str, Any]]:
        """Several questions, all charged or none."""
        body = {"project": self.project, "index": index, "questions": list(questions)}
        return list(self._post("/batches", body, key or secrets.token_urlsafe(16))["answers"])

    def answers(self) -> list[dict[str, Any]]:
        """The project's answers, newest first."""
        found: list[dict[str, Any]] = []
        path, after = f"/projects/{self.project}/answers", ""
        while part := self._get(path, after=after):
            found += part
            after = part[-1]["id"]
        return found

    def answer(self, answer: str) -> dict[str, Any]:
        return dict(self._get(f"/answers/{quote(answer)}"))

    def releases(self) -> list[dict[str, Any]]:
        return list(self._get("/releases"))

    def download(self, release: str, path: str, to: str | Path) -> Path:
        """A file of a release, written to `to`."""
        target = Path(to)
        target.write_bytes(self._send("GET", f"/releases/{quote(release)}/files/{quote(path)}").content)
        return target

    @staticmethod
    def frame(answer: Mapping[str, Any]) -> pl.DataFrame:
        """An answer as a table with the columns bin, count, low and high; count is null where it is hidden."""
        import polars as pl

        binned = isinstance(answer["answer"], Mapping)
        counts = answer["answer"] if binned else {"": answer["answer"]}
        ends = answer["interval"] if binned else {"": answer["interval"]}
        rows = [(name, count, *(ends[name] or (None, None))) for name, count in counts.items()]
        schema = {"bin": pl.String, "count": pl.Float64, "low": pl.Float64, "high": pl.Float64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def _question(self, index: str, terms: str, question: Mapping[str, Any]) -> dict[str, Any]:
        return {"project": self.project, "index": index, "terms": terms, **question}

    def _get(self, path: str, **params: Any) -> Any:
        return self._send("GET", path, params=params).json()

    def _post(self, path: str, body: Mapping[str, Any], key: str | None = None) -> dict[str, Any]:
        headers = {} if key is None else {"Idempotency-Key": key}
        return dict(self._send("POST", path, json=body, headers=headers).json())

    def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        """The reply. A busy portal and a lost reply are asked again, with the same key where it pays. PortalSilent,
        NotEnoughBudget or PortalRefused otherwise."""
        import httpx

        for again in range(TRIES):
            last = again == TRIES - 1
            try:
                reply = self.http.request(method, f"/api/v1{path}", **more)
            except httpx.TransportError:
                if last:
                    raise PortalSilent(self.url) from None
                pause = 2.0**again / 4
            else:
                if reply.status_code not in {429, 503} or last:
                    return _checked(reply)
                said = reply.headers.get("retry-after", "")
                pause = float(said) if said.isdecimal() else 2.0**again
            time.sleep(min(pause, LONGEST_PAUSE))
        raise AssertionError


def _checked(reply: httpx.Response) -> httpx.Response:
    if reply.is_success:
        return reply
    if reply.is_redirect:
        where = {
            "title": "the portal is elsewhere",
            "detail": f"connect to {reply.headers.get('location', '')}",
        }
        raise PortalRefused(reply.status_code, where)
    try:
        problem = reply.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {"title": f"HTTP {reply.status_code}"}
    if reply.status_code == 402:
        raise NotEnoughBudget(str(problem.get("detail", "")))
    raise PortalRefused(reply.status_code, problem)


def connect(url: str, *, token: str | None = None) -> Portal:
    """Connect to a portal.

    Parameters
    ----------
    url : str
        Address of the portal; it begins with https unless it is this machine.
    token : str, optional
        Token that a member of a project made in the portal; by default, the variable LEEWARD_TOKEN.

    Returns
    -------
    Portal
        Its `ask`, `price`, `answers`, `releases` … act for the token's project.

    Raises
    ------
    BadInput
        There is no token, the address is not safe, or the portal does not answer.

    Examples
    --------
    >>> import leeward as lw
    >>> try:
    ...     portal = lw.connect("http://portal.hospital.example", token="made-up")
    ... except lw.BadInput as error:
    ...     print(error)
    the address of a portal must begin with https; otherwise others could read the token.
    """
    secret = token or os.environ.get("LEEWARD_TOKEN", "")
    if not secret:
        raise BadInput("a portal needs a token; give `token`, or set LEEWARD_TOKEN.")
    if not (secret.isascii() and secret.isprintable()):
        raise BadInput("the token has characters that no token has; copy it again.")
    parts = urlsplit(url)
    if parts.scheme != "https" and (parts.hostname or "") not in {"127.0.0.1", "localhost", "::1"}:
        raise BadInput(
            "the address of a portal must begin with https; otherwise others could read the token."
        )
    require_extra("a portal's client", "client", "httpx")
    import httpx

    address = url.rstrip("/")
    http = httpx.Client(base_url=address, headers={"authorization": f"Bearer {secret}"}, timeout=WAIT)
    (project,) = Portal(address, "", http)._get("/me")["projects"]
    return Portal(address, project, http)
