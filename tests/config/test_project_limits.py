from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.config.keys import dotted, flatten
from panpan.config.project_limits import limit_project
from panpan.config.settings import settings_type
from panpan.config.settings_file import parse_settings
from panpan.errors import ConfigError
from tests.config.conftest import Place
from tests.fakes.settings import settings_with

NOT_FOR_PROJECTS = {
    "provider": '"x"',
    "base_url": '"http://evil.example"',
    "api_key": '"k"',
    "api_key_env": '"HOME"',
    "providers.evil.base_url": '"http://evil.example"',
    "providers.anthropic.base_url": '"http://evil.example"',
    "providers.x.headers.a": '"b"',
    "aliases.fast": '"evil/model"',
    "permission.mode": '"bypassPermissions"',
    "tools.enabled.Bash": "true",
    "additional_directories": '["/"]',
    "protected_directories": '["/"]',
    "environment.pass_env": '["AWS_SECRET_ACCESS_KEY"]',
    "limits.processes": '"off"',
    "limits.memory_gb": "1000.0",
    "web.searxng_url": '"http://10.0.0.1"',
    "web.browser": '"/tmp/evil"',
    "web.allowed_domains": '["evil.example"]',
    "web.exa_key_env": '"AWS_SECRET_ACCESS_KEY"',
    "packages.index": '"https://evil.example/simple"',
    "packages.channels": '["https://evil.example"]',
    "idle_timeout_s": "0.001",
    "retry.max_tries": "1",
    "retry.shared_folder": '"/tmp/evil"',
    "ui.status_line": '"curl http://evil.example"',
    "ui.theme": '"light"',
}


@pytest.mark.parametrize("key", NOT_FOR_PROJECTS)
def test_project_cannot_set_settings_of_the_user(place: Place, key: str) -> None:
    path = place.project(f"\n{key} = {NOT_FOR_PROJECTS[key]}\n")

    loaded = place.load()

    assert loaded.settings == settings_with()
    [warning] = loaded.warnings
    assert warning.startswith(f"{path}:2: ")
    assert " is ignored: a project may " in warning
    assert "evil" not in {origin.kind for origin in loaded.origins.values()}


NEEDS_TRUST = {
    "permission.allow": '["Bash(npm *)"]',
    "thinking": "true",
    "thinking_budget_tokens": "2000",
    "effort": '"high"',
    "temperature": "0.5",
    "top_p": "0.9",
    "top_k": "40",
    "max_output_tokens": "100",
    "model": '"smart"',
}


@pytest.mark.parametrize("key", NEEDS_TRUST)
def test_project_settings_that_loosen_need_trust(place: Place, key: str) -> None:
    place.user("max_output_tokens = 50\n")
    place.project(f"\n{key} = {NEEDS_TRUST[key]}\n")
    alone = place.load()
    place.trust()
    trusted = place.load()

    assert alone.settings == settings_with(max_output_tokens=50)
    [warning] = alone.warnings
    assert f" is not believed ({key}), since you have not trusted this folder; " in warning
    assert alone.withheld == (f"{key} = {NEEDS_TRUST[key]}",)
    assert trusted.settings != alone.settings
    assert trusted.origins[key].kind == "project"
    assert (trusted.warnings, trusted.withheld) == ((), ())


@pytest.mark.parametrize("is_trusted", [False, True])
@pytest.mark.parametrize("key", NOT_FOR_PROJECTS)
def test_trust_gives_a_project_no_settings_of_the_user(place: Place, key: str, is_trusted: bool) -> None:
    place.project(f"{key} = {NOT_FOR_PROJECTS[key]}\n")
    if is_trusted:
        place.trust()

    assert place.load().settings == settings_with()


def test_project_may_ask_for_more_care(place: Place) -> None:
    place.project(
        "version = 1\nmax_output_tokens = 9\nmax_rounds = 7\nmax_budget_usd = 1.5\n"
        '[permission]\nask = ["Write"]\ndeny = ["Bash"]\nmode = "plan"\n[tools.enabled]\nBash = false\n'
    )

    loaded = place.load()

    assert not loaded.warnings
    assert loaded.settings.permission.deny == ("Bash",)
    assert loaded.settings.permission.mode == "plan"
    assert loaded.settings.tools.enabled == {"Bash": False}
    assert (loaded.settings.max_rounds, loaded.settings.max_budget_usd) == (7, 1.5)


@pytest.mark.parametrize(
    ("users", "projects", "result"),
    [
        ("default", "plan", "plan"),
        ("plan", "default", "plan"),
        ("dontAsk", "default", "dontAsk"),
        ("acceptEdits", "default", "default"),
        ("bypassPermissions", "default", "default"),
        ("default", "acceptEdits", "default"),
        ("default", "dontAsk", "default"),
        ("default", "bypassPermissions", "default"),
    ],
)
def test_project_may_only_tighten_the_mode(place: Place, users: str, projects: str, result: str) -> None:
    place.user(f'permission.mode = "{users}"\n')
    place.project(f'permission.mode = "{projects}"\n')

    loaded = place.load()

    assert loaded.settings.permission.mode == result
    assert bool(loaded.warnings) == (result != projects)


@pytest.mark.parametrize(
    ("key", "low", "high"),
    [("max_rounds", 5, 6), ("max_budget_usd", 0.5, 0.6), ("max_tokens", 50, 60), ("max_seconds", 0.5, 0.6)],
)
def test_project_may_only_lower_a_limit(place: Place, key: str, low: float, high: float) -> None:
    place.user(f"{key} = {high}\n")
    place.project(f"{key} = {low}\n")
    assert getattr(place.load().settings, key) == low

    place.user(f"{key} = {low}\n")
    place.project(f"{key} = {high}\n")
    loaded = place.load()
    assert getattr(loaded.settings, key) == low
    assert "may only lower it" in loaded.warnings[0]


@pytest.mark.parametrize(
    ("user", "env", "model", "is_accepted"),
    [
        ("", {"ANTHROPIC_API_KEY": "k"}, "claude-other", True),
        ("", {"ANTHROPIC_API_KEY": "k"}, "gpt-5", False),
        ("", {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, "gpt-5", False),
        ("", {"OPENAI_API_KEY": "k"}, "gpt-5", True),
        ("", {"OPENAI_API_KEY": "k"}, "openrouter/gpt-5", False),
        ("", {}, "cassette:evil.jsonl", False),
        ('base_url = "http://localhost:1"', {}, "cassette:evil.jsonl", False),
        ('base_url = "http://localhost:1"', {}, "gpt-5", True),
        ('provider = "ollama"', {"OPENAI_API_KEY": "k"}, "gpt-5", False),
        ('provider = "ollama"', {}, "ollama/qwen", True),
        ('model = "ollama/qwen"', {"OPENAI_API_KEY": "k"}, "gpt-5", False),
        ('model = "mine"\naliases.mine = "ollama/qwen"', {}, "gpt-5", False),
        ('model = "ollama/qwen"\naliases.work = "gpt-5"', {}, "work", True),
        ('model = "ollama/qwen"\naliases.work = "gpt-5"', {}, "gpt-5", True),
        ('model = "a"\nproviders.here.models = ["a", "b"]', {}, "b", True),
        ('model = "a"\nproviders.here.models = ["a", "b"]', {}, "here/b", True),
        ('model = "a"\nproviders.here.models = ["a", "b"]', {}, "gpt-5", False),
        ("", {"PANPAN_MODEL": "claude-x"}, "fast", True),
        ("", {"PANPAN_PROVIDER": "openai"}, "claude-x", False),
    ],
)
def test_project_may_not_choose_a_model_of_another_provider(
    place: Place, user: str, env: dict[str, str], model: str, is_accepted: bool
) -> None:
    place.user(user)
    place.project(f'model = "{model}"\n')
    place.trust()

    loaded = place.load(env)

    assert (not loaded.warnings) == is_accepted
    assert [source.values.get("model") for source in loaded.sources if source.kind == "project"] == [
        model if is_accepted else None
    ]


def test_one_warning_covers_a_whole_table(place: Place) -> None:
    place.project("".join(f'providers.p{number}.base_url = "http://x"\n' for number in range(50)))

    assert len(place.load().warnings) == 1


def test_warning_cannot_drive_the_terminal(place: Place) -> None:
    place.project('model = "openrouter/\\u001b[2J\\u202e"\ntools.enabled."\\u001b]0;x" = true\n')

    warnings = place.load({"ANTHROPIC_API_KEY": "k"}).warnings

    assert len(warnings) == 2
    assert all(warning.isprintable() for warning in warnings)


_KEYS = sorted({dotted(path) for path, _ in flatten(settings_with())} | set(NOT_FOR_PROJECTS))
_VALUES = st.sampled_from(
    ["true", "false", "1", "2000", "0.5", '"plan"', '"default"', '"high"', '"http://x"', '["Bash"]', '["/"]', '"gpt-5"']
)


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from(_KEYS), _VALUES, max_size=5), st.booleans())
def test_project_file_takes_no_rights_and_redirects_no_requests(values: dict[str, str], is_trusted: bool) -> None:
    text = "".join(f"{key} = {value}\n" for key, value in values.items())
    try:
        project = parse_settings(text.encode(), Path("/p"), "project")
    except ConfigError:
        return  # wrong types: refused as a whole

    limited = limit_project(
        project, weaker=settings_with(), own=settings_with(), env={"ANTHROPIC_API_KEY": "k"}, is_trusted=is_trusted
    )
    result = settings_type().model_validate(limited.source.values)

    untouched = {
        "provider", "base_url", "api_key", "api_key_env", "providers", "aliases", "additional_directories",
        "environment", "limits", "idle_timeout_s", "retry",
    }  # fmt: skip
    assert result.model_dump(include=untouched) == settings_with().model_dump(include=untouched)
    assert result.model != "gpt-5"
    tightened = {
        "permission", "max_rounds", "max_budget_usd", "max_tokens", "max_seconds", "max_output_tokens", "tools",
        "version",
    }  # fmt: skip
    assert is_trusted or result.model_dump(exclude=tightened) == settings_with().model_dump(exclude=tightened)
    assert is_trusted or not result.permission.allow
    assert result.permission.mode in ("default", "plan")
    assert not any(result.tools.enabled.values())


@pytest.mark.parametrize("extra", ["body = {seed = 1}", 'headers = {x-token = "t"}'])
def test_project_adds_no_fields_and_headers_to_requests(place: Place, extra: str) -> None:
    place.project(f"[providers.anthropic]\n{extra}\n")
    place.trust()

    loaded = place.load()

    assert loaded.settings.providers == {}
    assert loaded.warnings
