import json
import re
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.faces.server.served_page import chromium, served_page
from tests.model_server import Hold, Reply, Text, Thinking, ToolCall, call, say

WHOLE = "This reply comes in two halves, and **both** are shown."
HOSTILE = (
    "<img src=x onerror=document.title='owned'><script>document.title='owned'</script> \u202egnp.exe \x1b]0;owned\x07"
    "\x1b[31mred\x1b[0m [here](javascript:document.title='owned') ![picture](https://example.org/p.png) <b>bold</b>"
)
LONG_LINE = "x" * 1_000_000
CHANGE = ToolCall("Edit", {"file_path": "hello.py", "old_string": "hi", "new_string": "hello"})
QUESTION = {
    "header": "Greeting",
    "question": "Which greeting?",
    "options": [{"label": "hello", "description": "friendly"}, {"label": "hi", "description": "short"}],
    "multiSelect": False,
}


PLAN = "# Greet\n\n1. Change `hello.py`, so that it greets politely.\n2. Run it, and look at what it prints.\n"


class Browsing:
    """A browser with the page, and what its tabs did."""

    def __init__(self, address: str, browser: Any, project: Path, release: Event) -> None:
        self.address, self.browser, self.project, self.release = address, browser, project, release
        self.origin = address.partition("#")[0]
        self.console: list[str] = []
        self.requests: list[str] = []
        self.contexts: list[Any] = []

    def tab(self, width: int = 1200, height: int = 800, **options: Any) -> Any:
        context = self.browser.new_context(viewport={"width": width, "height": height}, **options)
        self.contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("console", lambda message: self.console.append(message.text))
        page.on("pageerror", lambda error: self.console.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        return page

    def opened(self, **options: Any) -> Any:
        """Return a tab with the page, ready for a prompt in a new session."""
        page = self.tab(**options)
        page.goto(self.address)
        page.locator("#prompt").wait_for()
        return page

    def beside(self, page: Any) -> Any:
        """Return another tab on the same session."""
        other = self.tab()
        page.wait_for_url(re.compile("session="))
        other.goto(f"{page.url}#{self.address.partition('#')[2]}")
        return other


@pytest.fixture(scope="module")
def browsing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browsing]:
    place, release = tmp_path_factory.mktemp("page"), Event()
    scripts = {
        "two halves": [Reply((Thinking("Two of them."), Text(WHOLE)), faults=(Hold("text", release),), chunk_chars=20)],
        "edit": [call("Read", {"file_path": "hello.py"}), Reply((Text("I change it."), CHANGE)), say("It is changed.")],
        "ask": [Reply((ToolCall("AskUserQuestion", {"questions": [QUESTION]}),)), say("As you like.")],
        "plan": [call("ExitPlanMode", {"plan": PLAN}), say("Then I begin.")],
        "claim": [say("All tests pass.")],
        "hostile": [
            Reply((Thinking(HOSTILE), Text(HOSTILE), ToolCall("Read", {"file_path": HOSTILE}))),
            say(LONG_LINE),
        ],
    }  # fmt: skip
    try:
        with chromium() as browser, served_page(place, scripts) as address:
            yield Browsing(address, browser, place / "project", release)
    except RuntimeError as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def quiet(browsing: Browsing) -> Iterator[None]:
    """Close the tabs of a test; its console must be empty, and no request may have left the origin."""
    (browsing.project / "hello.py").write_text("print('hi')\n")
    browsing.release.clear()
    yield
    while browsing.contexts:
        browsing.contexts.pop().close()
    assert browsing.console == []
    assert [url for url in browsing.requests if not url.startswith((browsing.origin, "data:"))] == []


@pytest.fixture(scope="module")
def tab(browsing: Browsing) -> Any:
    """Return a tab for what needs no session."""
    page = browsing.browser.new_page()
    page.goto(browsing.address)
    return page


def send(page: Any, words: str) -> None:
    page.locator("#prompt").fill(words)
    page.keyboard.press("Enter")


def reply(page: Any, words: str) -> Any:
    return page.locator(".reply").filter(has_text=words)


def test_two_tabs_show_one_session(browsing: Browsing) -> None:
    page = browsing.opened()
    send(page, "two halves")
    reply(page, "This reply").wait_for()
    other = browsing.beside(page)
    reply(other, "This reply").wait_for()

    browsing.release.set()

    for tab in (page, other):
        reply(tab, WHOLE.replace("*", "")).wait_for()
        tab.locator(".ended").wait_for()
    assert page.locator(".transcript").inner_text() == other.locator(".transcript").inner_text()
    assert page.locator(".user").all_inner_texts() == ["two halves"]


def test_evidence_for_an_answer_is_shown_below_it(browsing: Browsing) -> None:
    page = browsing.opened()
    send(page, "claim")

    page.locator(".ended").wait_for()

    assert page.locator(".ended p").all_inner_texts()[0] == 'unverified: "All tests pass"'


def test_token_leaves_the_address_at_once(browsing: Browsing) -> None:
    page = browsing.opened()

    assert page.url == browsing.origin
    page.reload()
    page.locator("#prompt").wait_for()
    other = browsing.tab()
    other.goto(browsing.origin)
    other.get_by_label("Token").wait_for()
    browsing.console.clear()  # the browser writes a line for the 401
    other.get_by_label("Token").fill(browsing.address.partition("#")[2])
    other.keyboard.press("Enter")
    other.locator("#prompt").wait_for()


@pytest.mark.parametrize("way", ["form", "address"])
def test_open_tab_takes_the_token_of_a_new_start(browsing: Browsing, way: str) -> None:
    page = browsing.opened()
    browsing.release.set()
    send(page, "two halves")
    page.locator(".ended").wait_for()
    page.evaluate("sessionStorage.setItem('panpan.token', 'a-token-of-the-start-before')")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # the page follows the events anew
    page.get_by_text("does not take the token of this tab").wait_for()
    browsing.console.clear()  # the browser writes a line for each 401

    if way == "form":
        page.get_by_label("Token").fill(browsing.address)
        page.keyboard.press("Enter")
    else:
        page.goto(f"{page.url}#{browsing.address.partition('#')[2]}")

    reply(page, WHOLE.replace("*", "")).wait_for()
    assert "#" not in page.url


def test_reload_goes_on_in_the_middle_of_a_reply(browsing: Browsing) -> None:
    page = browsing.opened()
    send(page, "two halves")
    reply(page, "This reply").wait_for()

    page.reload()
    reply(page, "This reply").wait_for()
    browsing.release.set()

    reply(page, WHOLE.replace("*", "")).wait_for()
    assert page.locator(".reply").count() == 1


def test_question_and_session_close_in_the_other_tab(browsing: Browsing) -> None:
    page = browsing.opened()
    send(page, "edit")
    page.locator(".question").wait_for()
    other = browsing.beside(page)
    other.locator(".question").wait_for()
    shown = other.locator(".question").inner_text()

    page.get_by_role("button", name="Yes", exact=True).click()

    other.locator(".question").wait_for(state="detached")
    reply(other, "It is changed.").wait_for()
    page.locator(".ended").wait_for()
    page.get_by_role("button", name="Close", exact=True).click()
    other.get_by_text("this session was closed").wait_for()  # and is not opened again by reading on
    assert "Edit hello.py?" in shown
    assert "+print('hello')" in shown
    assert (browsing.project / "hello.py").read_text() == "print('hello')\n"


def wait_for_mode(page: Any, mode: str) -> None:
    page.locator(f'label:has-text("Mode") option[value="{mode}"]:checked').wait_for(state="attached")


def test_plan_is_approved_with_a_mode(browsing: Browsing) -> None:
    page = browsing.opened()
    send(page, "/plan")
    wait_for_mode(page, "plan")
    send(page, "plan")

    shown = page.locator(".question .plan").inner_text()
    page.get_by_role("button", name="Yes, and accept edits automatically").click()
    reply(page, "Then I begin.").wait_for()

    assert "Change hello.py, so that it greets politely." in shown
    wait_for_mode(page, "acceptEdits")


def test_undo_shows_its_difference_first(browsing: Browsing) -> None:
    page = browsing.opened()
    send(page, "edit")
    page.get_by_role("button", name="Yes", exact=True).click()
    page.locator(".ended").wait_for()

    page.get_by_role("tab", name="Changes").click()
    page.get_by_role("button", name="Undo last turn").click()
    shown = page.get_by_role("dialog").inner_text()
    before = (browsing.project / "hello.py").read_text()
    page.get_by_role("button", name="Undo", exact=True).click()
    page.get_by_text("This session has changed no files.").wait_for()

    assert "-print('hello')" in shown
    assert "+print('hi')" in shown
    assert before == "print('hello')\n"
    assert (browsing.project / "hello.py").read_text() == "print('hi')\n"


def test_keyboard_alone_sends_and_answers(browsing: Browsing) -> None:
    page = browsing.opened()

    def focus(name: str) -> None:
        for _ in range(40):
            if page.evaluate("(document.activeElement.id || document.activeElement.textContent)") == name:
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"{name} has no focus")

    focus("prompt")
    page.keyboard.type("ask")
    page.keyboard.press("Enter")
    page.locator(".question:focus").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    focus("Answer")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    page.keyboard.press("Enter")

    reply(page, "As you like.").wait_for()
    assert page.evaluate("document.activeElement.id") == "prompt"
    assert "Greeting: hello" in page.locator(".call").inner_text()
    assert outline == "solid"


def test_hostile_text_is_shown_as_text(browsing: Browsing) -> None:
    page = browsing.opened()
    send(page, "hostile")
    page.get_by_role("button", name="Show all").last.wait_for()
    for summary in page.locator("summary").all():
        summary.click()
    text = reply(page, "onerror").inner_text()

    assert "<img src=x onerror=document.title='owned'><script>" in text
    assert "<U+202E>gnp.exe <U+001B>]0;owned<U+0007>red here (javascript:document.title='owned')" in text
    assert page.title() == "hostile"
    assert page.locator("main img, main script, main b:text('bold'), main a[href^=javascript]").count() == 0
    assert len(page.locator(".reply").last.inner_text()) < 50_000


def test_narrow_screen_has_no_sideways_scroll(browsing: Browsing) -> None:
    page = browsing.opened(width=320, height=600, color_scheme="dark")
    send(page, "edit")
    page.locator(".question").wait_for()
    wide = "document.documentElement.scrollWidth > 320 || document.querySelector('.transcript').scrollWidth > 320"

    asked = page.evaluate(wide)
    page.get_by_role("button", name="No", exact=True).click()
    page.locator(".ended").wait_for()
    page.get_by_role("button", name="Details").click()
    page.get_by_role("tab", name="Files").click()
    page.get_by_role("button", name="hello.py").wait_for()

    assert (asked, page.evaluate(wide)) == (False, False)


def test_events_are_read_wherever_the_stream_is_cut(browsing: Browsing) -> None:
    stream = (
        'id: e:1\r\nevent: text_delta\r\ndata: {"index":0,"text":"a: b\\r\\n\\r\\n"}\r\n\r\n: ping\r\n\r\n'
        "id: e:12\r\nevent: turn_closed\r\ndata: {}\r\n\r\nid: e:13\r\nevent: tu"
    )
    read = """async stream => {
        const { EventParser } = await import("/page/api.js");
        const found = new Set();
        for (let size = 1; size <= stream.length; size++) {
            const parser = new EventParser();
            const events = [];
            for (let at = 0; at < stream.length; at += size) events.push(...parser.push(stream.slice(at, at + size)));
            found.add(JSON.stringify(events));
        }
        return [...found];
    }"""

    (found,) = browsing.opened().evaluate(read, stream)

    assert json.loads(found) == [
        {"epoch": "e", "number": 1, "name": "text_delta", "data": {"index": 0, "text": "a: b\r\n\r\n"}},
        {"epoch": "e", "number": 12, "name": "turn_closed", "data": {}},
    ]


def user(uuid: str) -> dict[str, Any]:
    return {"type": "user", "uuid": uuid, "content": [{"type": "text", "text": uuid}]}


DELTA = ("text_delta", {"index": 0, "text": "half"})
BLOCK = {"index": 0, "kind": "text", "text": "half a reply", "tool_use_id": "", "tool_name": ""}


@pytest.mark.parametrize(
    ("events", "shown", "goes_on"),
    [
        ([DELTA, DELTA], ["one", "two", "halfhalf"], True),
        ([DELTA, ("retry_scheduled", {}), DELTA], ["one", "two", "half"], True),
        ([DELTA, ("resync", {"blocks": [BLOCK], "is_whole": True}), DELTA], ["one", "two", "half a replyhalf"], True),
        ([("resync", {"blocks": [], "is_whole": False})], ["one", "two"], False),
        ([("rewound", {"last": "one"})], ["one"], True),
        ([("rewound", {"last": ""})], [], True),
        ([("rewound", {"last": "unknown"})], ["one", "two"], False),
        ([("message_recorded", {"message": user("two")}), ("unknown", {})], ["one", "two"], True),
    ],
    ids=["deltas", "retry", "resync", "resync-in-part", "rewound", "rewound-to-nothing", "rewound-to-unknown", "again"],
)
def test_conversation_follows_its_events(tab: Any, events: list[Any], shown: list[str], goes_on: bool) -> None:
    follow = """async ([messages, events]) => {
        const { Conversation } = await import("/page/conversation.js");
        const conversation = new Conversation();
        conversation.load(messages);
        const goesOn = events.every(([name, data]) => conversation.apply(name, data));
        return [conversation.items.map((item) => item.text ?? item.blocks[0].text), goesOn];
    }"""

    assert tab.evaluate(follow, [[user("one"), user("two")], events]) == [shown, goes_on]
