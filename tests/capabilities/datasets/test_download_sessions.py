"""Downloads of data sets in a session as `open_session` puts it together, with a model server and a server of files."""

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.session.session import Session
from panpan.types.messages import SystemReminder
from panpan.types.permission import PermissionAnswer, PermissionQuestion
from tests.capabilities.subagents.test_subagent_sessions import Place, results, turn
from tests.fakes.file_server import Files
from tests.fakes.outside import PUBLIC, Network
from tests.fakes.outside import serving as serving_bytes
from tests.model_server import RecordedRequest, Reply, call, say, serving

PREPARE = call("DatasetDownload", {"action": "prepare", "source": "http://data.example.org/words.csv"})
CONTENT = b"word\n" * 500


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "workspace").mkdir()
    return Place(tmp_path)


def download(**more: object) -> Callable[[RecordedRequest], Reply]:
    """Call for the download of the plan that was prepared."""

    def reply(request: RecordedRequest) -> Reply:
        plan = re.findall(r"with plan ([0-9a-f]{8})", str(request.messages))[-1]
        return call("DatasetDownload", {"action": "download", "plan": plan, **more})

    return reply


@asynccontextmanager
async def opened(
    place: Place,
    files: Files,
    *replies: Reply | Callable[[RecordedRequest], Reply],
    asked: list[PermissionQuestion],
    refuses: str = "a word of no question",
    network: Network | None = None,
    **overrides: object,
) -> AsyncGenerator[Session, None]:
    steps = iter(replies)

    def answer(request: RecordedRequest) -> Reply:
        step = next(steps)
        return step if isinstance(step, Reply) else step(request)

    async def ask(question: PermissionQuestion) -> PermissionAnswer:
        asked.append(question)
        return PermissionAnswer(is_allowed=refuses not in question.wording.effect)

    network = network or Network(names={"data.example.org": [PUBLIC]})
    async with serving_bytes(files.serve) as port:
        network.ports[PUBLIC, 80] = port
        with serving(answer) as place.server:
            async with place.open(overrides, ask=ask, is_interactive=True, network=network.web) as session:
                yield session


async def test_user_approves_exactly_the_plan_each_time(place: Place) -> None:
    files, asked = Files({"/words.csv": CONTENT}), list[PermissionQuestion]()
    async with opened(place, files, PREPARE, download(), say("done"), asked=asked) as session:
        prepared, downloaded = results(await turn(session))

    first, second = asked
    assert "downloads nothing" in first.wording.effect
    assert first.rule == "WebFetch(domain:data.example.org)"
    assert "words.csv from http://data.example.org into data; size: 2.5 kB (2,500 bytes)" in second.wording.effect
    assert (second.rule, second.prefix_rule) == (None, None)
    assert not downloaded.is_error
    assert (place.workspace / "data" / "words.csv").read_bytes() == CONTENT
    assert "nothing was downloaded yet" in prepared.text


async def test_refused_download_does_not_start(place: Place) -> None:
    files = Files({"/words.csv": CONTENT})
    async with opened(place, files, PREPARE, download(), say("done"), asked=[], refuses="2.5 kB") as session:
        _, refused = results(await turn(session))

    assert refused.is_error
    assert [asked for asked, _ in files.asked] == ["HEAD /words.csv"]


async def test_plan_mode_allows_prepare_but_no_download(place: Place) -> None:
    files = Files({"/words.csv": CONTENT})
    mode = {"permission.mode": "plan"}
    async with opened(place, files, PREPARE, download(), say("done"), asked=[], **mode) as session:
        prepared, refused = results(await turn(session))

    assert (prepared.is_error, refused.is_error) == (False, True)
    assert not (place.workspace / "data").exists()


async def test_background_download_is_a_task_with_a_reported_end(place: Place) -> None:
    files = Files({"/words.csv": CONTENT}, cut_after=[100])
    background = download(run_in_background=True)
    async with opened(place, files, PREPARE, background, say("done"), say("well"), asked=[]) as session:
        _, started = results(await turn(session))
        (task,) = session[BackgroundTasks].tasks
        ended = await session[BackgroundTasks].wait(task.id, 20)
        await turn(session, "and?")
        reminders = [one.text for one in session.conversation.messages if isinstance(one, SystemReminder)]

    assert f"in the background as task {task.id}" in started.text
    assert (ended.kind, ended.state) == ("download", "finished")
    assert "words.csv: 2.5 kB, SHA-256" in reminders[-1]
    assert (place.workspace / "data" / "words.csv").read_bytes() == CONTENT


@pytest.mark.parametrize("denied", ["data.example.org", "example.org", "cdn.example.net", PUBLIC])
async def test_denied_host_is_not_reached_by_any_redirect(denied: str, place: Place) -> None:
    files = Files({"/there.csv": CONTENT}, redirects={"/words.csv": "http://cdn.example.net/there.csv"})
    network = Network(names={"data.example.org": [PUBLIC], "cdn.example.net": [PUBLIC]})
    rules = {"permission.deny": [f"WebFetch(domain:{denied})"], "permission.mode": "bypassPermissions"}
    async with opened(place, files, PREPARE, say("done"), asked=[], network=network, **rules) as session:
        (refused,) = results(await turn(session))

    assert refused.is_error
    assert f"the rule WebFetch(domain:{denied})" in refused.text
    assert [asked for asked, _ in files.asked] == (["HEAD /words.csv"] if denied.startswith("cdn") else [])


async def test_archive_is_not_unpacked_against_a_deny_rule(place: Place) -> None:
    files = Files({"/words.zip": CONTENT})
    rules = {"permission.deny": ["Edit(data/words)"], "permission.mode": "bypassPermissions"}
    source = {"action": "prepare", "source": "http://data.example.org/words.zip", "unpack": True}
    prepare = call("DatasetDownload", source)
    async with opened(place, files, prepare, download(), say("done"), asked=[], **rules) as session:
        _, refused = results(await turn(session))

    assert refused.is_error
    assert "the rule Edit(data/words)" in refused.text
    assert [asked for asked, _ in files.asked] == ["HEAD /words.zip"]


async def test_asked_host_is_not_reached_through_another(place: Place) -> None:
    files = Files({"/there.csv": CONTENT}, redirects={"/words.csv": "http://cdn.example.net/there.csv"})
    network = Network(names={"data.example.org": [PUBLIC], "cdn.example.net": [PUBLIC]})
    rules = {"permission.ask": ["WebFetch(domain:cdn.example.net)"], "permission.mode": "bypassPermissions"}
    there = call("DatasetDownload", {"action": "prepare", "source": "http://cdn.example.net/there.csv"})
    asked: list[PermissionQuestion] = []
    async with opened(place, files, PREPARE, there, say("done"), asked=asked, network=network, **rules) as session:
        refused, prepared = results(await turn(session))

    assert "to go on, prepare http://cdn.example.net/there.csv" in refused.text
    assert [question.title for question in asked] == ["look at http://cdn.example.net/there.csv"]
    assert not prepared.is_error


async def test_host_allowed_for_pages_may_be_looked_at_unasked(place: Place) -> None:
    files, asked = Files({"/words.csv": CONTENT}), list[PermissionQuestion]()
    rules = {"permission.allow": ["WebFetch(domain:data.example.org)"]}
    async with opened(place, files, PREPARE, download(), say("done"), asked=asked, **rules) as session:
        prepared, _ = results(await turn(session))

    assert not prepared.is_error
    assert [question.title for question in asked] == ["download http://data.example.org/words.csv"]


@pytest.mark.parametrize(
    ("source", "host"),
    [("http://\u0430pple.com/x.csv", "xn--pple-43d.com"), ("http://a.apple.com.EXAMPLE.net:8080", "example.net:8080")],
)
async def test_question_before_a_look_names_the_host(source: str, host: str, place: Place) -> None:
    asked: list[PermissionQuestion] = []
    prepare = call("DatasetDownload", {"action": "prepare", "source": source})
    async with opened(place, Files({}), prepare, say("done"), asked=asked, refuses="it asks") as session:
        await turn(session)

    assert f"{host} what it is, and downloads nothing" in asked[0].wording.effect.replace(":80 ", " ")


@pytest.mark.parametrize(("mode", "questions"), [("auto", 1), ("default", 2)])
async def test_small_download_in_auto_mode_needs_no_second_question(place: Place, mode: str, questions: int) -> None:
    files, asked = Files({"/words.csv": CONTENT}), list[PermissionQuestion]()
    overrides = {"permission.mode": mode, "sandbox.mode": "on"}
    async with opened(place, files, PREPARE, download(), say("done"), asked=asked, **overrides) as session:
        if session.permission_mode != mode:
            pytest.skip("no sandbox works here")
        _, downloaded = results(await turn(session))

    assert len(asked) == questions
    assert not downloaded.is_error


async def test_large_download_in_auto_mode_is_asked_about(place: Place) -> None:
    asked = list[PermissionQuestion]()
    files = Files({"/words.csv": CONTENT}, tells_size=False, headers={"Content-Length": "1000000001"})
    overrides = {"permission.mode": "auto", "sandbox.mode": "on"}
    async with opened(
        place, files, PREPARE, download(), say("done"), asked=asked, refuses="1 GB", **overrides
    ) as session:
        if session.permission_mode != "auto":
            pytest.skip("no sandbox works here")
        await turn(session)

    assert len(asked) == 2
