"""Releases for their recipients: files of `share/`, until the link ends; and catalogues of itemsets among them."""

from __future__ import annotations

import json

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from leeward.portal import releases
from leeward.portal.guards import need, portal_of, viewer_of
from leeward.portal.indexes import Unknown
from leeward.portal.replies import page
from leeward.release import Release

router = APIRouter(include_in_schema=False)
SHOWN = 500


@router.get("/releases", dependencies=need("download"))
def listing(request: Request) -> Response:
    """What I may download, until when."""
    rows = releases.visible(portal_of(request).database, viewer_of(request))
    listed = []
    for row in rows:
        manifest = Release.open(row["folder"], compare=False).manifest
        listed.append(
            {
                **row,
                "method": manifest["method"],
                "guarantee": manifest["guarantee"],
                "paths": json.loads(row["files"]),
            }
        )
    return page(request, "releases.html", releases=listed)


@router.get("/releases/{release}/files/{path:path}", dependencies=need("download"))
def download(request: Request, release: str, path: str) -> Response:
    """A file of `share/`, by its entry in the manifest and its digest."""
    blocks = releases.read_file(portal_of(request).database, viewer_of(request), release, path)
    name = path.rsplit("/", 1)[-1].replace('"', "")
    return StreamingResponse(
        blocks, media_type="application/octet-stream",
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )  # fmt: skip


@router.get("/catalogue", dependencies=need("download"))
def catalogue(request: Request, find: str = "") -> Response:
    """Catalogues of itemsets that were published to me, with their noisy counts."""
    portal, viewer = portal_of(request), viewer_of(request)
    found = []
    for row in releases.visible(portal.database, viewer):
        release = Release.open(row["folder"], compare=False)
        if release.method != "notes" or "data/itemsets.parquet" not in json.loads(row["files"]):
            continue
        if not row["passed"]:
            raise Unknown
        table = release.table("itemsets.parquet").collect()
        rows = [(" & ".join(items), count) for items, count in table.iter_rows()]
        wanted = find.casefold()
        found.append(
            {
                **row,
                "rows": [each for each in rows if wanted in each[0].casefold()][:SHOWN],
                "guarantee": release.guarantee,
            }
        )
    return page(request, "catalogue.html", catalogues=found, find=find)
