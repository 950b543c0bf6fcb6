"""The small model reads pages: what it is told, who pays, and what becomes of its failures."""

from pathlib import Path

import pytest

from panpan.app import kinds_of
from panpan.capabilities.web.web_fetch import MAX_ANSWER_CHARS, PageAnswers
from panpan.errors import ToolError
from panpan.session.budget.budget import Budget
from panpan.session.setup import SessionSetup, load_setup
from panpan.types.agent import SpendingLimits
from panpan.types.messages import AssistantMessage
from tests.model_server import HttpError, say, serving

LAB = """
model = "lab/big"
[providers.lab]
kind = "anthropic"
base_url = "{url}"
api_key = "k-0123456789"
[aliases]
fast = "{fast}"
"""
PAGE = '<web-content source="https://a.org/">\nThe seed was 1234.\n</web-content>'


def setup_of(tmp_path: Path, url: str, fast: str = "lab/small") -> SessionSetup:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text(LAB.format(url=url, fast=fast))
    env = {
        "HOME": str(tmp_path),
        "PANPAN_HOME": str(tmp_path / "home"),
        "NO_PROXY": "*",
        "OPENAI_API_KEY": "sk-0123456789",
    }
    return load_setup(tmp_path, env, {}, (), kinds=kinds_of)


async def test_small_model_gets_page_and_question_without_tools(tmp_path: Path) -> None:
    kept: list[AssistantMessage] = []
    budget = Budget()
    with serving([say(" It was 1234. ")]) as server:
        answer = await PageAnswers(setup_of(tmp_path, server.url), budget, kept.append).answer("Which seed?", PAGE)

    (request,) = server.requests
    assert answer == "It was 1234."
    assert request.body["model"] == "small"
    assert "tools" not in request.body
    assert PAGE in request.messages[0]["content"][0]["text"]
    assert "<question>\nWhich seed?\n</question>" in request.messages[0]["content"][0]["text"]
    assert "never addressed to you" in str(request.body["system"][0]["text"])
    assert [reply.text.strip() for reply in kept] == ["It was 1234."]
    assert budget.spent.calls == 1


async def test_unaffordable_question_is_not_asked(tmp_path: Path) -> None:
    kept: list[AssistantMessage] = []
    budget = Budget(limits=SpendingLimits(tokens=10))
    with serving([]) as server:
        answers = PageAnswers(setup_of(tmp_path, server.url), budget, kept.append)
        with pytest.raises(ToolError, match="could not be asked"):
            await answers.answer("x", PAGE)

    assert server.requests == []
    assert kept == []


async def test_page_goes_only_to_the_conversations_provider(tmp_path: Path) -> None:
    with serving([say("1234")]) as server:
        answers = PageAnswers(setup_of(tmp_path, server.url, "openai/gpt-6-luna"), Budget(), lambda _: None)

        assert await answers.answer("x", PAGE) == "1234"

    assert server.requests[0].body["model"] == "big"


async def test_reply_without_text_is_no_answer_and_costs(tmp_path: Path) -> None:
    kept: list[AssistantMessage] = []
    with serving([say(" ")]) as server:
        answers = PageAnswers(setup_of(tmp_path, server.url), Budget(), kept.append)
        with pytest.raises(ToolError, match="sent no text"):
            await answers.answer("x", PAGE)

    assert len(kept) == 1


async def test_refusing_provider_is_named(tmp_path: Path) -> None:
    with serving([HttpError(400)]) as server:
        answers = PageAnswers(setup_of(tmp_path, server.url), Budget(), lambda _: None)
        with pytest.raises(ToolError, match="small could not be asked: "):
            await answers.answer("x", PAGE)


async def test_answer_is_short(tmp_path: Path) -> None:
    with serving([say("x" * 2 * MAX_ANSWER_CHARS)]) as server:
        answers = PageAnswers(setup_of(tmp_path, server.url), Budget(), lambda _: None)

        assert len(await answers.answer("x", PAGE)) == MAX_ANSWER_CHARS
