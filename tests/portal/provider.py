"""An OpenID Connect provider for tests: code flow with PKCE, and ID tokens that are wrong in a chosen way."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey
from tests.waiting import LONG

CLIENT, SECRET = "leeward", "a secret of the client"
KEY = RSAKey.generate_key(2048, {"kid": "provider", "use": "sig", "alg": "RS256"})
OTHER = RSAKey.generate_key(2048, {"kid": "provider"})
SIGNATURES = ("none", "hs256", "jwk", "other key")
CLAIMS = ("aud", "iss", "nonce", "exp", "iat", "tenant")
"""What can be wrong with a token: its signature, or a claim."""


def encoded(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class Provider:
    """What the provider knows, and how it misbehaves."""

    issuer: str
    fault: str | None = None
    lax: bool = False
    """Takes a code twice and does not ask for the verifier: then the portal's own checks are alone."""
    subject: str = "rita"
    claims: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser goes after somebody signed in there."""
        assert asked["response_type"] == "code" and asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256" and asked["code_challenge"]
        code = secrets.token_urlsafe(8)
        self.codes[code] = {**asked, "sub": self.subject}
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, form: dict[str, str]) -> dict[str, Any] | None:
        """Tokens for a code; None where it is unknown, used, or the verifier is another one."""
        found = self.codes.get(form["code"]) if self.lax else self.codes.pop(form["code"], None)
        if found is None:
            return None
        challenge = encoded(hashlib.sha256(form["code_verifier"].encode()).digest())
        if challenge != found["code_challenge"] and not self.lax:
            return None
        return {"access_token": "x", "token_type": "Bearer", "id_token": self.id_token(found)}

    def id_token(self, found: dict[str, str]) -> str:
        """A token, wrong as `fault` says."""
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.issuer, "aud": CLIENT, "sub": found["sub"], "nonce": found["nonce"], "iat": now,
            "exp": now + 300, "name": "Rita", "email": "rita@hospital.example", "tid": "ours", **self.claims,
        }  # fmt: skip
        wrong: dict[str, dict[str, Any]] = {
            "aud": {"aud": "another client"},
            "iss": {"iss": "https://another.example"},
            "nonce": {"nonce": "another sign-in"},
            "exp": {"exp": now - 3600},
            "iat": {"iat": now - 7200},
            "tenant": {"tid": "another tenant"},
        }
        claims |= wrong.get(self.fault or "", {})
        if self.fault == "none":
            return f"{encoded({'alg': 'none'})}.{encoded(claims)}."
        if self.fault == "hs256":
            public = KEY.as_pem(private=False)
            text = f"{encoded({'alg': 'HS256', 'kid': 'provider'})}.{encoded(claims)}"
            return f"{text}.{encoded(hmac.new(public, text.encode(), 'sha256').digest())}"
        if self.fault == "jwk":
            header = {"alg": "RS256", "jwk": OTHER.as_dict(private=False)}
            return jwt.encode(header, claims, OTHER)
        return jwt.encode(
            {"alg": "RS256", "kid": "provider"}, claims, OTHER if self.fault == "other key" else KEY
        )


@contextmanager
def running_provider() -> Iterator[Provider]:
    """A provider at an address of this computer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, query = urlsplit(self.path).path, urlsplit(self.path).query
            if path == "/.well-known/openid-configuration":
                root = provider.issuer
                self.say({
                    "issuer": root, "authorization_endpoint": f"{root}/authorize", "token_endpoint": f"{root}/token",
                    "jwks_uri": f"{root}/keys",
                })  # fmt: skip
            elif path == "/keys":
                self.say({"keys": [KEY.as_dict(private=False)]})
            elif path == "/authorize":
                self.send_response(303)
                self.send_header("location", provider.authorize(plain(query)))
                self.end_headers()
            else:
                self.say({}, 404)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            found = provider.token(plain(body))
            self.say(found or {"error": "invalid_grant"}, 200 if found else 400)

        def say(self, content: dict[str, Any], status: int = 200) -> None:
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: Any) -> None:
            pass

    def plain(text: str) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(text).items()}

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = Provider(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join(LONG)
        server.server_close()
