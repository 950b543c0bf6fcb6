import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette

from panpan.faces.server import page_files
from panpan.faces.server.guard import Entrance, Guard, Tokens
from panpan.faces.server.page_files import PAGE_FILES, page_routes

FOLDER = Path(page_files.__file__).with_name("page")
PREACT = "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7"
"""SHA-256 of preact/standalone.module.js in the package htm 3.1.1 of npm."""


@asynccontextmanager
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    guard = Guard(Starlette(routes=page_routes()), Entrance(Tokens("a-token-of-this-test"), ["host"], ["http://host"]))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(guard), base_url="http://host") as ours:
        yield ours


async def test_page_comes_without_a_token_and_with_its_policy() -> None:
    async with client() as ours:
        answers = {address: await ours.get(address) for address in PAGE_FILES}

    assert {answer.status_code for answer in answers.values()} == {200}
    policies = {answer.headers["content-security-policy"] for answer in answers.values()}
    assert policies == {
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    }
    assert {answer.headers["x-content-type-options"] for answer in answers.values()} == {"nosniff"}
    assert {answer.headers["referrer-policy"] for answer in answers.values()} == {"no-referrer"}
    assert answers["/page/main.js"].headers["content-type"].startswith("text/javascript")


async def test_page_that_is_known_is_not_sent_again() -> None:
    async with client() as ours:
        first = await ours.get("/page/main.js")
        again = await ours.get("/page/main.js", headers={"If-None-Match": first.headers["etag"]})

    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/page/", "/page/nothing.js", "/page/../app.py", "/page/%2e%2e/app.py", "/page//etc/passwd"]
)
async def test_page_has_no_file_outside_its_table(path: str) -> None:
    async with client() as ours:
        answer = await ours.get(path)

    assert answer.status_code in (401, 404)


async def test_page_under_another_name_or_origin_is_refused() -> None:
    async with client() as ours:
        renamed = await ours.get("/", headers={"Host": "evil.example"})
        foreign = await ours.get("/page/main.js", headers={"Origin": "https://evil.example"})

    assert (renamed.status_code, foreign.status_code) == (421, 403)


def test_table_has_every_file_of_the_page() -> None:
    assert {name for name, _ in PAGE_FILES.values()} == {path.name for path in FOLDER.iterdir()}


def test_vendored_module_is_the_published_one() -> None:
    assert sha256((FOLDER / "preact.js").read_bytes()).hexdigest() == PREACT


def test_page_makes_no_html_of_strings() -> None:
    own = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir() if path.name != "preact.js"}
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|\sstyle=|\son\w+=\""
    )

    assert [name for name, text in own.items() if forbidden.search(text)] == []
    assert "<script>" not in own["index.html"]
    assert "<style" not in own["index.html"]
