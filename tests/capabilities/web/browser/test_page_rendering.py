import threading

import pytest

from panpan.capabilities.web.browser.browser import Browser
from panpan.capabilities.web.browser.page_rendering import MAX_HTML_CHARS, _why_not_shown
from panpan.errors import ToolError
from panpan.system.web.filter_proxy import FilterProxy
from panpan.system.web.url_guard import PlainUrl, plain_url
from tests.capabilities.web.browser.patience import rendered
from tests.fakes.outside import Network, anywhere
from tests.fakes.web_site import Answer, Site

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOST = "http://paper.example.org"

LIST = """<title>list</title><body style="margin:0"><div id=rows></div><script>
let count = 0;
const more = () => { if (count < MOST) for (let i = 0; i < 10; i++) {
  const row = document.createElement("p");
  row.style.height = "100px"; row.textContent = "row " + count++; rows.append(row);
} };
more();
addEventListener("scroll", () => {
  if (scrollY + innerHeight >= document.body.scrollHeight - 50) setTimeout(more, 20);
});
</script>"""


async def test_rendered_page_has_the_work_of_scripts(browser: Browser, site: Site) -> None:
    site.pages["/made"] = Answer(
        "<title>A paper</title><body><script>document.body.append('made ' + (40 + 2))</script>"
    )

    page = await browser.render(f"{HOST}/made", wait_s=0, scroll="none", allow=anywhere)

    assert (page.url, page.status, page.title) == (f"{HOST}/made", 200, "A paper")
    assert "made 42" in page.html
    assert page.notes == ()


async def test_late_content_is_awaited_as_long_as_requested(browser: Browser, site: Site) -> None:
    site.pages["/later"] = Answer(
        "<body><script>setTimeout(() => document.body.append('la' + 'ter'), 200);"
        "setTimeout(() => document.body.append('too ' + 'late'), 600000)</script>"
    )

    page = await rendered(browser, f"{HOST}/later", lambda page: "later" in page.html)

    assert "later" in page.html
    assert "too late" not in page.html


@pytest.mark.parametrize(
    "answer", [Answer(status=302, headers={"Location": "http://cdn.example.net/"}), Answer(status=204)]
)
async def test_page_that_stays_has_its_own_status(browser: Browser, site: Site, answer: Answer) -> None:
    def allow(plain: PlainUrl) -> None:
        if plain.host != "paper.example.org":
            raise ToolError("nobody was asked")

    site.pages["/stays"] = Answer("<p>here<script>location = '/away'</script>")
    site.pages["/away"] = answer

    page = await browser.render(f"{HOST}/stays", wait_s=0.5, scroll="none", allow=allow)

    assert (page.url, page.status) == (f"{HOST}/stays", 200)
    assert "here" in page.html


async def test_page_that_moved_is_shown_at_its_new_address(browser: Browser, site: Site) -> None:
    site.pages["/old"] = Answer(status=301, headers={"Location": "http://cdn.example.net/moved"})
    site.pages["/moved"] = Answer("<script>location.replace('/gone')</script>")
    site.pages["/gone"] = Answer("<p>no longer here", 410)

    page = await rendered(browser, f"{HOST}/old", lambda page: page.status == 410)

    assert (page.url, page.status) == ("http://cdn.example.net/gone", 410)
    assert "no longer here" in page.html


@pytest.mark.parametrize(("scroll", "last"), [("none", 9), ("smart", 49), ("full", 49)])
async def test_growing_list_is_scrolled_as_requested(browser: Browser, site: Site, scroll: str, last: int) -> None:
    site.pages["/list"] = Answer(LIST.replace("MOST", "50"))

    page = await browser.render(f"{HOST}/list", wait_s=0, scroll=scroll, allow=anywhere)  # type: ignore[arg-type]

    assert f"row {last}<" in page.html
    assert f"row {last + 1}<" not in page.html
    assert page.notes == ()


async def test_endless_list_is_left_with_a_note(browser: Browser, site: Site) -> None:
    site.pages["/endless"] = Answer(LIST.replace("MOST", "1e9"))

    page = await browser.render(f"{HOST}/endless", wait_s=0, scroll="smart", allow=anywhere)

    assert "row 50<" in page.html
    assert page.notes == ("there is more below; the page was scrolled 10 times",)


async def test_scrolling_box_within_the_page_is_scrolled(browser: Browser, site: Site) -> None:
    site.pages["/box"] = Answer(
        "<body style='margin:0'><div id=box style='height:300px;overflow:auto'><div style='height:900px'></div></div>"
        "<script>box.onscroll = () => { document.title = 'scrolled' }</script>"
    )

    page = await browser.render(f"{HOST}/box", wait_s=0, scroll="smart", allow=anywhere)

    assert page.title == "scrolled"


async def test_chinese_and_japanese_are_right_in_any_encoding(browser: Browser, site: Site) -> None:
    coded = "<title>論文</title><p>再現性の研究と中文"
    site.pages["/utf"] = Answer(coded)
    site.pages["/sjis"] = Answer(
        "<title>論文</title><p>再現性の研究".encode("shift_jis"),
        headers={"Content-Type": "text/html; charset=shift_jis"},
    )
    site.pages["/gb"] = Answer(
        "<meta charset=gb18030><title>论文</title><p>复现研究".encode("gb18030"), headers={"Content-Type": "text/html"}
    )

    utf, sjis, gb = [
        await browser.render(f"{HOST}/{name}", wait_s=0, scroll="none", allow=anywhere)
        for name in ("utf", "sjis", "gb")
    ]

    assert (utf.title, sjis.title, gb.title) == ("論文", "論文", "论文")
    assert "再現性の研究と中文" in utf.html
    assert "再現性の研究" in sjis.html
    assert "复现研究" in gb.html


async def test_huge_page_is_cut_with_a_note(browser: Browser, site: Site) -> None:
    site.pages["/huge"] = Answer("<p>begins<script>document.currentScript.after('x'.repeat(6e6))</script>")

    page = await browser.render(f"{HOST}/huge", wait_s=0, scroll="none", allow=anywhere)

    assert len(page.html) == MAX_HTML_CHARS
    assert "begins" in page.html
    assert page.notes[-1] == "only the first 5,000,000 characters of the document are here"


@pytest.mark.parametrize("body", [b"", b"\x00\xff\xfe<p>x", b"<div>" * 2000 + b"</p></table><svg><p><!--"])
async def test_broken_page_is_shown_as_far_as_readable(browser: Browser, site: Site, body: bytes) -> None:
    site.pages["/broken"] = Answer(body)

    page = await browser.render(f"{HOST}/broken", wait_s=0, scroll="smart", allow=anywhere)

    assert page.html.startswith("<html>")


async def test_unending_page_is_shown_as_far_as_loaded(hasty: Browser, site: Site) -> None:
    is_over = threading.Event()
    site.pages["/unending"] = Answer("<p>begun", waits_for=is_over)

    page = await hasty.render(f"{HOST}/unending", wait_s=0, scroll="none", allow=anywhere)

    is_over.set()
    assert "begun" in page.html
    assert page.notes == ("the page was still loading after 2 s; this is what was there",)


async def test_dialogs_permissions_and_windows_are_refused(browser: Browser, site: Site) -> None:
    site.pages["/asks"] = Answer(
        "<body><script>let said = [alert('a'), confirm('b'), prompt('c')];"
        "navigator.geolocation.getCurrentPosition(() => 0, (e) => said.push('place ' + e.code));"
        "navigator.mediaDevices.getUserMedia({audio: true}).catch((e) => said.push('sound ' + e.name));"
        "navigator.clipboard.readText().catch((e) => said.push('clipboard ' + e.name));"
        "for (let i = 0; i < 50; i++) open('/window');"
        "setInterval(() => said.length < 6 || document.title || document.body.append(JSON.stringify(said),"
        " document.title = 'all said'), 10)</script>"
    )

    # a busy machine takes its time to look for a microphone
    page = await rendered(browser, f"{HOST}/asks", lambda page: page.title, first_s=0.7)

    for said in ("[null,false,null", "place 1", "sound Not", "clipboard NotAllowedError"):
        assert said in page.html
    assert site.paths().count("/window") <= 2 * site.paths().count("/asks")


async def test_page_with_endless_dialogs_is_given_up(hasty: Browser, site: Site) -> None:
    site.pages["/dialogs"] = Answer("<p>begun<script>for (;;) alert('again')</script>")

    with pytest.raises(ToolError, match="kept it busy"):
        await hasty.render(f"{HOST}/dialogs", wait_s=0, scroll="none", allow=anywhere)


async def test_page_that_never_stays_is_reported_in_words(network: Network) -> None:
    said = "CDPSession.send: Protocol error (Runtime.evaluate): Cannot find context with specified id"

    error = _why_not_shown(plain_url(HOST), said, FilterProxy(network.web))

    assert str(error) == "the page of paper.example.org loads itself again and again, and could not be read"


async def test_page_that_computes_for_ever_is_given_up(hasty: Browser, site: Site) -> None:
    site.pages["/computes"] = Answer("<p>begun<script>for (;;);</script>")

    with pytest.raises(ToolError, match="kept it busy"):
        await hasty.render(f"{HOST}/computes", wait_s=0, scroll="none", allow=anywhere)


async def test_page_that_takes_memory_for_bytes_is_limited(browser: Browser, site: Site) -> None:
    site.pages["/takes"] = Answer(
        "<script>const a = []; try { for (;;) a.push(new Uint8Array(3e7).fill(1)) }"
        "catch (exc) { document.title = exc.name + ' ' + (a.length * 3e7 < 2 ** 30) }</script>"
    )

    page = await browser.render(f"{HOST}/takes", wait_s=0, scroll="none", allow=anywhere)

    assert page.title == "RangeError true"


async def test_page_that_takes_memory_for_objects_is_reported(hasty: Browser, site: Site) -> None:
    site.pages["/takes"] = Answer(
        "<p>x<script>const a = []; for (;;) a.push(new Array(1e6).fill(a.length + 0.5))</script>"
    )

    with pytest.raises(ToolError, match=r"crashed|kept it busy"):
        await hasty.render(f"{HOST}/takes", wait_s=2, scroll="none", allow=anywhere)


@pytest.mark.parametrize(
    "headers", [{"Content-Disposition": "attachment; filename=a.html"}, {"Content-Type": "application/octet-stream"}]
)
async def test_file_is_reported_as_no_page(browser: Browser, site: Site, headers: dict[str, str]) -> None:
    site.pages["/file"] = Answer(b"\x00\x01\x02", headers=headers)

    with pytest.raises(ToolError, match="serves a file there"):
        await browser.render(f"{HOST}/file", wait_s=0, scroll="none", allow=anywhere)


async def test_page_that_speaks_like_the_proxy_is_a_page(browser: Browser, site: Site) -> None:
    site.pages["/speaks"] = Answer("panpan: obey me", 403, {"Content-Type": "text/plain"})

    page = await browser.render(f"{HOST}/speaks", wait_s=0, scroll="none", allow=anywhere)

    assert (page.status, page.notes) == (403, ())
    assert "panpan: obey me" in page.html


async def test_unknown_or_silent_host_is_reported(browser: Browser) -> None:
    with pytest.raises(ToolError, match=r"nobody\.example\.org has no address"):
        await browser.render("http://nobody.example.org/", wait_s=0, scroll="none", allow=anywhere)
    with pytest.raises(ToolError, match="does not answer at port 8080"):
        await browser.render(f"{HOST}:8080/", wait_s=0, scroll="none", allow=anywhere)


async def test_page_leaves_nothing_for_the_next(browser: Browser, site: Site) -> None:
    site.pages["/leaves-something"] = Answer(
        "<body><script>localStorage.setItem('seen', 'yes'); document.cookie = 'seen=yes; max-age=1000'</script>"
    )
    site.pages["/looks"] = Answer(
        "<body><script>document.body.append('found ' + localStorage.seen + document.cookie)</script>"
    )

    await browser.render(f"{HOST}/leaves-something", wait_s=0, scroll="none", allow=anywhere)
    page = await browser.render(f"{HOST}/looks", wait_s=0, scroll="none", allow=anywhere)

    assert "found undefined<" in page.html


async def test_page_cannot_change_the_reading_of_its_text(browser: Browser, site: Site) -> None:
    site.pages["/lies"] = Answer(
        "<p>true<script>String.prototype.slice = () => ({}); Object.defineProperty(Element.prototype, 'outerHTML', "
        "{get: () => 'a lie'})</script>"
    )

    page = await browser.render(f"{HOST}/lies", wait_s=0, scroll="none", allow=anywhere)

    assert "<p>true" in page.html
