"""Signing in at a provider that others wrote (the package oidc-provider-mock, on Authlib's server)."""

from __future__ import annotations

from pathlib import Path

import httpx
import oidc_provider_mock as others
from tests.portal.made import make_bench

from leeward.portal.settings import Provider


def test_signing_in_at_a_provider_that_others_wrote(tmp_path: Path) -> None:
    claims = {"name": "Rita Researcher", "email": "rita@hospital.example"}
    rita = others.User(sub="rita-17", claims=claims)
    with others.run_server_in_thread(
        require_client_registration=True, require_nonce=True, user_claims=[rita]
    ) as server:
        issuer = f"http://localhost:{server.server_port}"
        callback = "http://127.0.0.1:8000/sign-in/callback"
        registered = httpx.post(f"{issuer}/oauth2/clients", json={"redirect_uris": [callback]}).json()
        provider = Provider(
            issuer=issuer, client_id=registered["client_id"], client_secret=registered["client_secret"]
        )
        client = make_bench(tmp_path / "portal", provider=provider).client()
        form = client.get("/sign-in/provider").headers["location"]
        assert "Rita" not in client.get("/").text
        back = httpx.post(form, data={"sub": "rita-17"}).headers["location"]
        assert back.startswith(callback)
        assert client.get(back).headers["location"] == "/"
        me = client.get("/api/v1/me").json()
        assert (me["name"], me["roles"]) == ("Rita Researcher", [])
