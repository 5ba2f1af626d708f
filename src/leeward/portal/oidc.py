"""Signing in at an OpenID Connect provider: authorization code with PKCE (RFC 7636).

State and nonce are kept in the session that began it; the ID token is checked with keys from the provider's own
address only.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Mapping
from threading import Lock
from typing import Any, Final

from leeward.errors import LeewardError
from leeward.portal.settings import Provider

LEEWAY: Final = 60
"""Seconds by which clocks may differ."""
OLDEST: Final = 600
"""An ID token is at most so many seconds old."""
KEPT: Final = 3600
"""Seconds that the provider's addresses and keys are kept."""
AGAIN: Final = 60
"""Seconds after which it is asked again for them: new keys, or where it did not answer."""
WAIT: Final = 10.0


class SignInRefused(LeewardError):
    """The provider's answer is not accepted; nobody is signed in and no account is made."""


def check_state(begun: dict[str, str], state: str) -> None:
    """SignInRefused where the session did not begin the sign-in that came back."""
    if not begun or not secrets.compare_digest(begun["state"].encode(), state.encode()):
        raise SignInRefused("this sign-in was not begun in this browser, or was used already")


class Client:
    """The portal as a client of one provider."""

    def __init__(self, provider: Provider, callback: str) -> None:
        self.provider = provider
        self.callback = callback
        self._lock = Lock()
        self._tried = -math.inf
        self._addresses: dict[str, Any] = {}
        self._keys: Any = None

    def begin(self) -> tuple[str, dict[str, str]]:
        """A sign-in under way: where to send the browser, and what the session keeps until it is back."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        with self._client() as client:
            address, _ = client.create_authorization_url(
                self._address("authorization_endpoint"), state=state, nonce=nonce, code_verifier=verifier
            )
        return address, {"state": state, "nonce": nonce, "verifier": verifier}

    def finish(self, kept: dict[str, str] | None, state: str, code: str) -> dict[str, Any]:
        """The claims of whoever came back with `state` and `code` to the session that kept `kept`; SignInRefused
        where the session did not begin it, the provider takes the code for used, or a token is wrong."""
        begun = kept or {}
        check_state(begun, state)
        try:
            with self._client() as client:
                tokens = client.fetch_token(
                    self._address("token_endpoint"), code=code, code_verifier=begun["verifier"]
                )
        except Exception as error:  # Authlib's, httpx's or JSON's: the provider said no, or nothing
            raise SignInRefused(f"the provider gave no token ({type(error).__name__})") from None
        token = tokens.get("id_token")
        if not isinstance(token, str):
            raise SignInRefused("the provider gave no ID token")
        return self.check(token, begun["nonce"])

    def check(self, token: str, nonce: str) -> dict[str, Any]:
        """The claims of an ID token (OpenID Connect Core 1.0, section 3.1.3.7). SignInRefused for any that is not
        from this provider, for this client, for this sign-in, and now."""
        from joserfc import jwt
        from joserfc.errors import JoseError

        algorithms = list(self.provider.algorithms)
        try:
            decoded = jwt.decode(token, self._key_set(), algorithms=algorithms)
        except (JoseError, ValueError, KeyError, TypeError):
            try:  # the provider may have new keys
                decoded = jwt.decode(token, self._key_set(again=True), algorithms=algorithms)
            except (JoseError, ValueError, KeyError, TypeError) as error:
                raise SignInRefused(
                    f"the signature of the ID token is wrong ({type(error).__name__})"
                ) from None
        claims = dict(decoded.claims)
        if fault := self._fault(claims, nonce):
            raise SignInRefused(fault)
        return claims

    def _fault(self, claims: dict[str, Any], nonce: str) -> str | None:
        now, provider = time.time(), self.provider
        audience, subject, given = (claims.get(name) for name in ("aud", "sub", "nonce"))
        audiences = audience if isinstance(audience, list) else [audience]
        right = {
            "the claim `iss` is of another provider": claims.get("iss") == provider.issuer,
            "the claim `aud` is of another client": provider.client_id in audiences,
            "the claim `azp` is of another client": len(audiences) == 1
            or claims.get("azp") == provider.client_id,
            "the claim `exp` is missing or over": _is_between(now - LEEWAY, claims.get("exp"), math.inf),
            "the claim `iat` is missing, old or in the future": _is_between(
                now - OLDEST, claims.get("iat"), now + LEEWAY
            ),
            "the claim `nonce` is of another sign-in": isinstance(given, str)
            and secrets.compare_digest(given.encode(), nonce.encode()),
            "the claim `sub` is missing": isinstance(subject, str) and 0 < len(subject) <= 255,
        } | {
            f"the claim `{name}` is missing or is another than this portal takes": value
            in (held if isinstance(held := claims.get(name), list) else [held])
            for name, value in provider.required.items()
        }
        return next((fault for fault, holds in right.items() if not holds), None)

    def _client(self) -> Any:
        from authlib.integrations.httpx_client import OAuth2Client

        return OAuth2Client(
            self.provider.client_id,
            self.provider.client_secret or None,
            scope="openid profile email",
            redirect_uri=self.callback,
            code_challenge_method="S256",
            timeout=WAIT,
        )

    def _address(self, name: str) -> str:
        self._refresh()
        found = self._addresses.get(name)
        if not isinstance(found, str):
            raise SignInRefused(f"the provider's discovery document has no `{name}`")
        return found

    def _key_set(self, again: bool = False) -> Any:
        self._refresh(again)
        return self._keys

    def _refresh(self, again: bool = False) -> None:
        """Read discovery document and keys from the provider; kept for an hour, asked anew at most once a minute."""
        import httpx
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        with self._lock:
            age = time.monotonic() - self._tried
            if self._addresses and age < (AGAIN if again else KEPT):
                return
            if not self._addresses and age < AGAIN:  # each try may take seconds, and others wait for it
                raise SignInRefused("the provider could not be reached a moment ago")
            self._tried = time.monotonic()
            root = self.provider.issuer.rstrip("/")
            try:
                found = (
                    httpx.get(f"{root}/.well-known/openid-configuration", timeout=WAIT)
                    .raise_for_status()
                    .json()
                )
                if found.get("issuer") != self.provider.issuer:
                    raise SignInRefused("the provider's discovery document is of another issuer")
                keys = httpx.get(found["jwks_uri"], timeout=WAIT).raise_for_status().json()
                # Only public keys: a shared secret in the set must never verify anything.
                public = [each for each in keys["keys"] if each.get("kty") in {"RSA", "EC", "OKP"}]
                self._keys = KeySet.import_key_set({"keys": public})
            except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError, JoseError) as error:
                raise SignInRefused(f"the provider cannot be reached ({type(error).__name__})") from None
            self._addresses = found


def address_of(claims: Mapping[str, Any]) -> str | None:
    """A person's address, if the provider says that it is verified: by an address people are invited."""
    address = claims.get("email") if claims.get("email_verified") is True else None
    return address if isinstance(address, str) else None


def _is_between(low: float, value: object, high: float) -> bool:
    return isinstance(value, int | float) and low <= value <= high
