"""Pages are parsed in a process of its own; the pages are real, and so are the processes."""

import os

import anyio
import pytest

from panpan.capabilities.web.fetching import FetchedPage, Kind, ParsedPage, ParseRequest, parse_page
from panpan.errors import ToolError
from panpan.system.processes.process_table import running_processes
from panpan.system.sandbox.command_sandbox import CommandSandbox

PAGE = "http://example.org/paper"
SLOW = b"<math alttext='x'>y</math>" * 190_000
"""A minute's work."""


def job(kind: Kind, body: bytes, *, charset: str | None = None, pages: str | None = None) -> ParseRequest:
    return ParseRequest(FetchedPage(PAGE, 200, {}, kind, "", charset, body), PAGE, pages=pages)


async def made(kind: Kind, body: bytes, *, charset: str | None = None, pages: str | None = None) -> ParsedPage:
    return await parse_page(job(kind, body, charset=charset, pages=pages), CommandSandbox())


def workers() -> list[int]:
    return [process.pid for process in running_processes().values() if process.parent == os.getpid()]


async def test_page_becomes_text_with_its_facts() -> None:
    body = "<title>Läufe</title><p>The seed was <a href='x'>1234</a>.<meta http-equiv=refresh content='0;url=on'>"

    found = await made("html", body.encode("latin-1"), charset="latin1")

    assert (found.title, found.sends_on_to) == ("Läufe", "on")
    assert "The seed was [1234](http://example.org/x)." in found.text
    assert found.obstacle is None


async def test_slow_page_is_given_up_and_its_process_ends() -> None:
    before = workers()

    with pytest.raises(ToolError, match=r"more than 0\.3 s"):
        await parse_page(job("html", SLOW), CommandSandbox(), within_s=0.3)

    assert workers() == before


async def test_page_of_a_cancelled_reader_is_abandoned() -> None:
    before = workers()

    async with anyio.create_task_group() as task_group:
        task_group.start_soon(made, "html", SLOW)
        with anyio.fail_after(20):
            while workers() == before:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        task_group.cancel_scope.cancel()

    assert workers() == before


@pytest.mark.skipif(not hasattr(__import__("resource"), "prlimit"), reason="the system bounds no memory")
async def test_page_that_grows_beyond_measure_is_given_up() -> None:
    grows = b"<blockquote>a" * 250 + b"<p>line<br>" * 5_000

    with pytest.raises(ToolError, match="takes too much memory"):
        await parse_page(job("html", grows), CommandSandbox(), memory_bytes=200_000_000)


async def test_growing_text_is_cut() -> None:
    rows = b"<tr><td rowspan=9000 colspan=900>a<td>b</tr>" * 2_000

    found = await made("html", b"<table>" + rows + b"</table>")

    assert found.is_cut
    assert len(found.text) == 5_000_000


@pytest.mark.parametrize(
    "start",
    [
        b"<meta http-equiv=refresh content='1" + b"." * 2_000_000 + b"'>",
        b"<p style='background: " + b"url(" * 1_000_000 + b"'>",
        b"<base href='http://a.org/" + b"x/" * 500_000 + b"'>" + b"<a href=x>y</a>" * 10_000,
        b"<div>" * 200_000,
        b"<p style=display:none>" * 100_000,
        b"&#" + b"9" * 2_000_000 + b";",
        b"<script type='application/ld+json'>" + b"[" * 1_000_000 + b"</script>",
        b"<p " + b"a=b " * 500_000 + b">",
    ],
    ids=["refresh", "style", "base", "deep", "hidden", "entity", "data", "attributes"],
)
async def test_hostile_page_is_parsed_in_bounded_time(start: bytes) -> None:
    found = await parse_page(job("html", b"<p>begun</p>" + start + b"<p>ended</p>"), CommandSandbox(), within_s=20)

    assert found.title == ""


async def test_library_messages_about_a_file_are_not_shown() -> None:
    broken = b"%PDF-1.7\n1 0 obj <</obey me>> trailer <</Root 1 0 R /obey>> startxref 9 %%EOF"

    with pytest.raises(ToolError) as failure:
        await made("pdf", broken)

    assert str(failure.value) == "the PDF is a PDF that cannot be read"


async def test_text_is_cleaned_before_it_is_cut() -> None:
    found = await made("text", b"a\x1b[2Jb\x00c\xe2\x80\xaed\r\ne")

    assert found.text == "abc<U+202E>d\ne"
