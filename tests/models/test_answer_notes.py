from typing import Any

import pytest

from panpan.app import PROVIDER_KINDS
from panpan.config.settings import Settings
from panpan.config.sources import Origin
from panpan.models.factory import generation_options, notes_on_options, resolve_model
from panpan.models.model_choice import ModelRequirement

ENV = {
    f"{name}_API_KEY": "k" for name in ("ANTHROPIC", "OPENAI", "DEEPSEEK", "ZAI", "DASHSCOPE", "MOONSHOT", "OPENROUTER")
}
BUDGET = {"thinking": True, "thinking_budget_tokens": 2048}


def notes(model: str, **settings: Any) -> tuple[str, ...]:
    resolved = resolve_model([ModelRequirement(model=model)], ENV, kinds=PROVIDER_KINDS)
    return notes_on_options(resolved, generation_options(Settings(**settings)))


@pytest.mark.parametrize(
    "model", ["opus", "gpt-6.1-sol", "deepseek-v4-pro", "ollama/qwen3", "cassette:t.jsonl", "local"]
)
def test_answer_notes_without_requirements_are_empty(model: str) -> None:
    assert notes(model) == ()


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("claude-haiku-4-5", BUDGET),
        ("claude-opus-5-5", {"thinking": True}),
        ("claude-opus-5-5", {"effort": "max"}),
        ("deepseek-v4-pro", {"thinking": True, "effort": "medium"}),
        ("glm-5.3", {"thinking": True, "effort": "high"}),
        ("qwen3.8-max", BUDGET),
        ("cassette:t.jsonl", BUDGET),
        ("gpt-6.1-sol", {"thinking": False, "thinking_budget_tokens": 2048, "effort": "xhigh"}),
    ],
)
def test_answer_notes_are_silent_about_fulfilled_options(model: str, settings: dict[str, Any]) -> None:
    assert notes(model, **settings) == ()


@pytest.mark.parametrize(
    ("model", "settings", "beginning"),
    [
        ("claude-opus-5-5", BUDGET, "claude-opus-5-5 decides itself how much it thinks, so the thinking budget has no"),
        ("gpt-6.1-sol", {"thinking": True}, "gpt-6.1-sol at openai has no switch for thinking that panpan knows"),
        ("ollama/qwen3", BUDGET, "qwen3 at ollama has no switch for thinking"),
        ("openrouter/x/y", BUDGET, "x/y at openrouter has no switch for thinking"),
        ("deepseek-v4-pro", BUDGET, "deepseek-v4-pro at deepseek takes no number of tokens to think"),
        ("kimi-k3", {"effort": "medium"}, "kimi-k3 at moonshot knows no effort medium, so high is asked for"),
        ("qwen3.8-max", {"effort": "max"}, "qwen3.8-max at dashscope knows no effort max, so xhigh is asked for"),
        ("local", {"thinking": True}, "the small local model does not think"),
        ("local", {"effort": "low"}, "the small local model knows no effort"),
    ],
)
def test_answer_notes_name_an_option_without_effect(model: str, settings: dict[str, Any], beginning: str) -> None:
    (note,) = notes(model, **settings)

    assert note.startswith(beginning)
    assert "\n" not in note


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("--effort", "so --effort has no effect"),
        ("~/.panpan/settings.toml:3", "so the effort that ~/.panpan/settings.toml:3 asks for has no effect"),
        ("PANPAN_EFFORT", "so the effort that PANPAN_EFFORT asks for has no effect"),
        ("", "so the effort has no effect"),
    ],
)
def test_answer_notes_name_the_place_of_an_option_without_effect(place: str, said: str) -> None:
    origins = {"effort": Origin("user", place)} if place else {}
    answers = generation_options(Settings(effort="low"), origins)

    assert notes_on_options(resolve_model([ModelRequirement(model="local")], ENV, kinds=PROVIDER_KINDS), answers) == (
        f"the small local model knows no effort, {said}",
    )


def test_answer_notes_name_the_file_that_enabled_thinking() -> None:
    answers = generation_options(Settings(thinking=True), {"thinking": Origin("user", "a.toml:2")})
    for model in ("local", "ollama/qwen3"):
        (note,) = notes_on_options(resolve_model([ModelRequirement(model=model)], ENV, kinds=PROVIDER_KINDS), answers)
        assert "so thinking that a.toml:2 asks for has no effect" in note
