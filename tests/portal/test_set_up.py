"""docs/how-to/set-up.md followed from its first line, on a Debian of its own with systemd (tests/portal/container.py).

    make test-set-up      on a new Debian, where everything is installed as the page says

The test begins with a copy of this machine's system. What is installed here is not installed again: Debian's packages,
and the libraries of the lock file, if Python there is of the same version. Every other line is run as it stands.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from tests.environments import ROOT, SITE, checkout_wheel, link_distributions
from tests.portal.container import Container, check_that_it_can_run, running_container
from tests.waiting import LONG

PAGE = ROOT / "docs" / "how-to" / "set-up.md"
HOSTS = "127.0.0.1 localhost\n127.0.0.2 portal.hospital.example db.hospital.example\n127.0.0.3 sso.hospital.example\n"
AUTHORITIES = Path("/usr/local/share/ca-certificates")
"""Of this machine, which has its own way to the packages, perhaps."""
OUTSIDE = re.compile(r"apt-get|pip install")
"""What needs a way to the packages: Debian's and Python's."""


def blocks_of(page: Path) -> list[str]:
    """What a page says to paste."""
    return re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def make_certificates(folder: Path) -> None:
    """An authority of the house, and a certificate with its key for each name in it."""
    for name in ("portal", "sso"):
        subprocess.run(["bash", "-euc", f"""
            [ -e ca.crt ] || openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=Hospital -keyout ca.key -out ca.crt
            openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=hospital.example -CA ca.crt -CAkey ca.key \\
                -addext subjectAltName=DNS:{name}.hospital.example,DNS:db.hospital.example \\
                -addext basicConstraints=critical,CA:FALSE -keyout {name}.key -out {name}.pem"""],
            cwd=folder, check=True, capture_output=True, timeout=LONG,
        )  # fmt: skip


def offer_packages(folder: Path) -> None:
    """What pip takes there: a wheel of this checkout, the versions of the lock file, and links to the distributions of
    that file that are here."""
    wheel = Path(shutil.copy(checkout_wheel(), folder))
    lock = (ROOT / "requirements" / "portal.txt").read_text(encoding="utf-8")
    pins = dict(re.findall(r"^([\w.-]+)==([^ ]+)", lock, re.MULTILINE))
    pins["leeward"] = wheel.name.split("-")[1]
    text = "".join(f"{name}=={pin}\n" for name, pin in pins.items())
    (folder / "pins.txt").write_text(text, encoding="utf-8")
    (folder / "libraries").mkdir()
    link_distributions(pins.keys() - {"leeward"}, folder / "libraries", Path("/opt/site"))


PROVIDER = """
import sys
from oidc_provider_mock import User, app
from werkzeug.serving import run_simple
rita = User(sub="rita-17", claims={"name": "Rita Researcher"})
made = app(require_nonce=True, user_claims=[rita])
run_simple("127.0.0.3", 8443, made, threaded=True, ssl_context=("sso.pem", "sso.key"))
"""
VISIT = """
import json, ssl, sys
import httpx
link = sys.argv[1]
root = "https://portal.hospital.example"
trusted = ssl.create_default_context(cafile="ca.crt")
seen = {"plain": httpx.get("http://portal.hospital.example/sign-in").headers["location"]}
with httpx.Client(base_url=root, verify=trusted, headers={"origin": root}) as rita:
    away = rita.get("/sign-in/provider").headers["location"]
    back = rita.post(away, data={"sub": "rita-17"}, headers={"origin": "https://sso.hospital.example:8443"})
    rita.get(back.headers["location"])
    seen["rita"] = rita.get("/api/v1/me").json()
with httpx.Client(base_url=root, verify=trusted, headers={"origin": root}) as ida:
    password = "a password of Ida's own"
    if link:
        ida.post("/set-up", data={"link": link.partition("link=")[2], "password": password})
    ida.post("/sign-in", data={"login": "ida", "password": password})
    seen["ida"] = ida.get("/api/v1/me").json()
    seen["admin"] = ida.get("/admin").text
print(json.dumps(seen))
"""


class House:
    """The house around the server: its names, its provider, and people who visit the portal."""

    def __init__(self, system: Container, folder: Path) -> None:
        self.system, self.folder = system, folder

    def python(self, code: str, *arguments: str) -> list[str]:
        """A program of this machine's Python in the network of the container, with the house's names."""
        hosts = 'mount --bind hosts /etc/hosts && exec "$@"'
        return [
            "nsenter", f"--target={self.system.first}", "--net", "unshare", "--mount", "sh", "-c", hosts, "sh",
            sys.executable, "-c", code, *arguments,
        ]  # fmt: skip

    def visit(self, link: str) -> Any:
        """What Rita, by the provider, and Ida, by a password (set by a link where there is one), see of the portal."""
        program = self.python(VISIT, link)
        done = subprocess.run(
            program, cwd=self.folder, capture_output=True, text=True, timeout=LONG, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @contextmanager
    def providing(self) -> Iterator[None]:
        with (self.folder / "provider.log").open("w") as said:
            provider = subprocess.Popen(self.python(PROVIDER), cwd=self.folder, stdout=said, stderr=said)
        try:
            yield
        finally:
            provider.kill()
            provider.wait(LONG)


def follow(lower: Path = Path("/"), say: Callable[[str], None] = lambda text: None) -> None:
    """Follow the page; AssertionError where a line of it fails, or the portal is not what the page says it is."""
    check_that_it_can_run()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        make_certificates(folder)
        offer_packages(folder)
        (folder / "hosts").write_text(HOSTS, encoding="ascii")
        with running_container(
            {"/opt/shown": folder, "/opt/site": SITE, "/opt/authorities": AUTHORITIES}, lower
        ) as system:
            system.run(HOUSE)
            house = House(system, folder)
            try:
                with house.providing():
                    follow_blocks(system, house, say, installed=lower == Path("/"))
            except AssertionError as fault:
                logs = "journalctl --no-pager --lines 60; tail --lines 5 /var/log/nginx/*.log || true"
                raise AssertionError(f"{fault}\n{system.run(logs)}") from None


HOUSE = """
cat /opt/shown/hosts > /etc/hosts
echo 'APT::Get::Upgrade "false";' > /etc/apt/apt.conf.d/99here
find /opt/authorities -name '*.crt' -exec cp '{}' /usr/local/share/ca-certificates \\;
install -D /opt/shown/ca.crt /usr/local/share/ca-certificates/hospital.crt
install -D /opt/shown/portal.pem /etc/ssl/certs/portal.pem
install -D -m 600 /opt/shown/portal.key /etc/ssl/private/portal.key
for cluster in $(pg_lsclusters --no-header 2> /dev/null | cut -d' ' -f1 || true); do
    pg_dropcluster --stop "$cluster" main
    pg_createcluster --start "$cluster" main
done
"""
"""What the page expects to be there, and a cluster of PostgreSQL as its package makes it, where that is installed."""
SAME_PYTHON = """
site=/opt/leeward/lib/python{}.{}/site-packages
if [ -d $site ]; then echo /opt/shown/libraries > $site/here.pth; fi
"""


def follow_blocks(system: Container, house: House, say: Callable[[str], None], *, installed: bool) -> None:
    """Each block in turn, as it stands. `installed`: with the libraries that are here."""
    settings = {
        "PIP_FIND_LINKS": "/opt/shown",
        "PIP_CONSTRAINT": "/opt/shown/pins.txt",
        "PIP_CERT": "/etc/ssl/certs/ca-certificates.crt",
    }
    for block in blocks_of(PAGE):
        say(f"$ {block}")
        said = system.run(block, outside=bool(OUTSIDE.search(block)), **settings)
        say(said)
        if installed and "python3 -m venv" in block:
            system.run(SAME_PYTHON.format(*sys.version_info[:2]))
        if "--add-account" in block:
            seen = house.visit(said.strip())
            assert seen["plain"] == "https://portal.hospital.example/sign-in"
            assert (seen["rita"]["name"], seen["rita"]["roles"]) == ("Rita Researcher", [])
            assert seen["ida"]["roles"] == ["admin"] and "none by" in seen["admin"]
    seen = house.visit("")  # by the accounts that were put back
    assert (seen["rita"]["name"], seen["ida"]["roles"]) == ("Rita Researcher", ["admin"])
    assert re.search(r"Last backup</dt><dd>20", seen["admin"])
    check_the_service(system)


def check_the_service(system: Container) -> None:
    """It can do what it needs and no more, speaks to its database over TLS alone, and the backup has what it should."""
    system.run("""
        refused() { if "$@" 2> /dev/null; then echo "this was not refused: $*"; exit 1; fi; }
        systemd-analyze verify /etc/systemd/system/leeward*
        first=$(systemctl show --property MainPID --value leeward)
        [ "$(stat -c %U /proc/$first)" = leeward ]
        grep -q 'NoNewPrivs:.1' /proc/$first/status
        grep -q 'CapEff:.0*$' /proc/$first/status
        for folder in /srv/leeward /var/lib/leeward /var/backups/leeward; do
            [ "$(stat -c %U%a $folder)" = leeward700 ]
        done
        [ -z "$(find /srv/leeward /var/lib/leeward -perm /077 ! -type l)" ]
        inside="nsenter --target=$first --mount setpriv --reuid=leeward --regid=leeward --clear-groups"
        $inside touch /srv/leeward/written /var/lib/leeward/written
        for place in /etc /usr /opt/leeward /var/log /var/backups/leeward; do refused $inside touch $place/written; done
        newest=$(ls /var/backups/leeward/*.dump | tail -n 1)
        [ "$(stat -c %a "$newest")" = 600 ]
        tar -tf "${newest%.dump}.tar.gz" > files
        grep -q indexes/codes/index.json files
        refused grep -E 'ledger|portal.toml|pgpass' files
        systemctl list-timers | grep leeward-backup
        """)
    ask = "runuser -u postgres -- psql --no-align --tuples-only --dbname leeward --command"
    clear = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'leeward'"
    assert int(system.run(f'cd / && {ask} "{clear} AND ssl"')) > 0
    assert int(system.run(f'cd / && {ask} "{clear} AND NOT ssl"')) == 0
    assert int(system.run(f"cd / && {ask} 'SELECT count(*) FROM data_sets'")) == 1


def test_the_page_of_the_set_up_is_followed() -> None:
    follow()


if __name__ == "__main__":
    follow(Path(sys.argv[1]).resolve(), lambda text: click.echo(f"{datetime.now():%H:%M:%S} {text}"))
