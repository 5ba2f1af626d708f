"""`leeward.connect(url)`: ask a portal from Python. Needs nothing but Python itself."""

from __future__ import annotations

import json
import os
import secrets
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from leeward.errors import BadInput, GuaranteeUnreachable

WAIT = 120.0


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
    token: str
    project: str

    def __repr__(self) -> str:
        return f"<Portal {self.url}, project {self.project}>"

    def indexes(self) -> list[dict[str, Any]]:
        """Indexes that the project may ask, with what is left."""
        return list(self._get(f"/projects/{self.project}")["indexes"])

    def terms(self, index: str, words: str) -> list[dict[str, Any]]:
        """Terms and codes of the public vocabulary, best first: by the beginning of a code, words of a name, synonyms.
        `asked` is how a question writes one."""
        return list(self._get(f"/indexes/{quote(index)}/vocabulary?{urlencode({'prefix': words})}"))

    def browse(self, index: str, name: str = "") -> list[dict[str, Any]]:
        """The names directly below one in the vocabulary's tree; by default its top."""
        return list(self._get(f"/indexes/{quote(index)}/vocabulary?{urlencode({'below': name})}"))

    def sets(self) -> dict[str, str]:
        """The project's saved sets of terms, by name; a question names one as `@name`."""
        return {each["name"]: each["terms"] for each in self._get(f"/projects/{self.project}/sets")}

    def save_set(self, name: str, terms: str) -> None:
        """Save terms such as `401 | 402` under a name, in the place of what was there."""
        self._open("PUT", f"/projects/{self.project}/sets/{quote(name)}", {"terms": terms}, {}).close()

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
        while part := self._get(f"{path}?{urlencode({'after': after})}"):
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
        with self._open("GET", f"/releases/{quote(release)}/files/{quote(path)}", None, {}) as reply:
            target.write_bytes(reply.read())
        return target

    def _question(self, index: str, terms: str, question: Mapping[str, Any]) -> dict[str, Any]:
        return {"project": self.project, "index": index, "terms": terms, **question}

    def _get(self, path: str) -> Any:
        with self._open("GET", path, None, {}) as reply:
            return json.load(reply)

    def _post(self, path: str, body: Mapping[str, Any], key: str | None = None) -> dict[str, Any]:
        headers = {} if key is None else {"Idempotency-Key": key}
        for again in (True, False):
            try:
                with self._open("POST", path, body, headers) as reply:
                    return dict(json.load(reply))
            except (PortalSilent, ConnectionError, TimeoutError):
                if not again or key is None:
                    raise PortalSilent(self.url) from None
        raise AssertionError

    def _open(
        self, method: str, path: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]
    ) -> Any:
        data = None if body is None else json.dumps(body).encode()
        more = {"authorization": f"Bearer {self.token}", "content-type": "application/json", **headers}
        asked = urllib.request.Request(f"{self.url}/api/v1{path}", data, more, method=method)
        try:
            return urllib.request.urlopen(asked, timeout=WAIT)
        except urllib.error.HTTPError as error:
            with error:
                problem = _problem(error)
            if error.code == 402:
                raise NotEnoughBudget(str(problem.get("detail", ""))) from None
            raise PortalRefused(error.code, problem) from None
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            raise PortalSilent(self.url) from None


def _problem(error: urllib.error.HTTPError) -> dict[str, Any]:
    try:
        found = json.loads(error.read())
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"title": f"HTTP {error.code}"}


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
    found = Portal(url.rstrip("/"), secret, "")
    (project,) = found._get("/me")["projects"]
    return Portal(found.url, secret, project)
