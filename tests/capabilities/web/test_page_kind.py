from collections.abc import Mapping

import pytest

from panpan.capabilities.web.page_tree import Obstacle, facts_of, obstacle_of, parse_html

LONG = "<p>The seed of every run was 1234, and the batch had 32 examples.</p>" * 60
APP = "<div id=root></div><script src=/app.js></script>"


def seen(
    body: str,
    *,
    status: int = 200,
    title: str = "A page",
    headers: Mapping[str, str] = {},
    url: str = "https://a.org/x",
) -> Obstacle | None:
    html = f"<html><head><title>{title}</title></head><body>{body}</body></html>"
    return obstacle_of(status, headers, facts_of(parse_html(html)), html, asked="https://a.org/x", url=url)


def kind(*args: object, **more: object) -> str | None:
    found = seen(*args, **more)  # type: ignore[arg-type]
    return found.kind if found else None


@pytest.mark.parametrize(
    "page",
    [
        {"body": "<p>Checking…</p><script>window._cf_chl_opt={}</script>", "title": "Just a moment...", "status": 403},
        {"body": "", "status": 503, "headers": {"cf-mitigated": "challenge"}},
        {"body": "Please verify you are a human <div class=px-captcha></div>"},
        {"body": "Our systems have detected unusual traffic from your computer network.", "status": 429},
        {"body": "<script src='https://geo.captcha-delivery.com/c.js'></script>", "status": 403, "title": "paper.org"},
        {"body": "<h1>Making sure you're not a bot!</h1><p>Loading...</p>", "title": "Making sure you're not a bot!"},
        {"body": "请完成验证后继续访问"},
        {"body": f"Please solve the CAPTCHA. {'The block ends soon after those requests stop. ' * 18}"},
    ],
)
def test_page_that_wants_a_person_is_recognised(page: dict[str, object]) -> None:
    assert kind(**page) == "challenge"


@pytest.mark.parametrize(
    "page",
    [
        {"body": APP},
        {"body": f"<noscript>You need to enable JavaScript to run this app.</noscript>{APP}"},
        {"body": f"<p>This site requires Javascript. {'Please. ' * 20}</p><script>1</script>"},
        {"body": "JavaScript is disabled in your browser."},
        {"body": "<p>JavaScriptを有効にしてください。</p><script>1</script>"},
    ],
)
def test_page_made_by_scripts_is_recognised(page: dict[str, object]) -> None:
    assert kind(**page) == "scripts"


def test_short_page_with_scripts_may_be_complete() -> None:
    found = seen("<p>Moved to the new wiki.</p><script>count()</script>")

    assert found is not None
    assert (found.kind, found.is_partial, found.may_yield_to_a_browser) == ("scripts", True, True)


def test_page_whose_scripts_ran_needs_none() -> None:
    html = "<html><body>Hi. JavaScript is required.<script>1</script></body></html>"
    facts = facts_of(parse_html(html))

    assert obstacle_of(200, {}, facts, html, asked="https://a.org/", url="https://a.org/", is_rendered=True) is None


@pytest.mark.parametrize(
    "page",
    [
        {"body": "", "status": 401},
        {"body": "<form><input name=user><input type=password></form> Welcome"},
        {"body": "Please log in."},
        {"body": "Welcome back to our site", "url": "https://a.org/users/sign_in?back=/x"},
        {"body": "You must be logged in to view this page."},
        {"body": f"<input type=password><p>{'By going on you accept. ' * 40}</p>", "title": "Sign in - Papers"},
    ],
)
def test_page_behind_a_login_is_recognised(page: dict[str, object]) -> None:
    assert kind(**page) == "login"


@pytest.mark.parametrize(
    ("status", "expected"),
    [(403, "forbidden"), (404, "missing"), (410, "missing"), (429, "too many"), (451, "withheld"), (500, "fault"),
     (503, "fault"), (418, "refused"), (402, "paywall")],
)  # fmt: skip
def test_server_status_decides_the_kind(status: int, expected: str) -> None:
    assert kind(LONG, status=status) == expected


def test_pause_wanted_by_a_server_is_reported() -> None:
    found = seen("", status=429, headers={"retry-after": "120"})

    assert found is not None
    assert "120 s" in found.reason


@pytest.mark.parametrize(
    "body",
    [
        f"{LONG}<p>Already a subscriber? Buy this article.</p>",
        f"<script type='application/ld+json'>{{\"isAccessibleForFree\": false}}</script>{LONG}",
    ],
)
def test_partly_open_page_is_still_read(body: str) -> None:
    found = seen(body)

    assert found is not None
    assert (found.kind, found.is_partial) == ("paywall", True)


@pytest.mark.parametrize(
    "body",
    [
        LONG,
        "<p>Short, and all that there is.</p>",
        "",
        f"{LONG}<script src='https://www.google.com/recaptcha/api.js'></script><input type=password> Please log in.",
        f"<p>How to enable JavaScript in tests, and whether you are a robot.</p>{LONG}",
        f"<p>{'A short page of a blog with a counter. ' * 9}</p><script>1</script>",
        f"<p>{'The box that asks whether I am not a robot, and how to solve the CAPTCHA. ' * 15}</p>",
        f"<form>Name <input name=n> <input type=password></form><p>{'A forum about seeds of runs. ' * 30}</p>",
    ],
)
def test_page_is_a_page_whatever_it_speaks_of(body: str) -> None:
    assert seen(body) is None
