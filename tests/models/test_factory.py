import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.app import PROVIDER_KINDS
from panpan.config.locations import Locations
from panpan.config.models import VENDORS, vendor_named
from panpan.config.settings import Settings
from panpan.config.settings_file import Source
from panpan.config.sources import Loaded, load_settings
from panpan.config.stored_keys import StoredKeys
from panpan.config.trust import trust_of
from panpan.errors import ConfigError, ProviderError
from panpan.models import factory
from panpan.models.factory import (
    GenerationOptions,
    ResolvedModel,
    create_client,
    create_provider,
    generation_options,
    model_options,
    profile_of,
)
from panpan.models.model_choice import ModelRequirement, NoModelError
from panpan.models.pace import SharedPace
from panpan.models.provider_kind import NamedProvider
from tests.config.test_stored_keys import NoKeyring
from tests.models.loopback import Answer, serving
from tests.models.wire import ask

resolve_model = partial(factory.resolve_model, kinds=PROVIDER_KINDS)
resolve_from = partial(factory.resolve_from, kinds=PROVIDER_KINDS)

ANTHROPIC = {"ANTHROPIC_API_KEY": "sk-ant"}
OPENAI = {"OPENAI_API_KEY": "sk-oai"}


def flag(**wish: Any) -> ModelRequirement:
    return ModelRequirement("the command line", **wish)


def variable(**wish: Any) -> ModelRequirement:
    return ModelRequirement("the environment", **wish)


def user_file(**wish: Any) -> ModelRequirement:
    return ModelRequirement("settings.toml", **wish)


def where(resolved: ResolvedModel) -> tuple[str, str, str]:
    return resolved.provider, resolved.model, resolved.api_key


@pytest.mark.parametrize(
    ("model", "env", "expected"),
    [
        ("claude-opus-5-5", ANTHROPIC, ("anthropic", "claude-opus-5-5", "sk-ant")),
        ("claude-not-yet-known", ANTHROPIC | OPENAI, ("anthropic", "claude-not-yet-known", "sk-ant")),
        ("gpt-7", ANTHROPIC | OPENAI, ("openai", "gpt-7", "sk-oai")),
        ("o9-mini", OPENAI, ("openai", "o9-mini", "sk-oai")),
        ("some-new-name", ANTHROPIC | OPENAI, ("openai", "some-new-name", "sk-oai")),
        ("openai/some-new-name", OPENAI, ("openai", "some-new-name", "sk-oai")),
        ("deepseek-v4-pro", {"DEEPSEEK_API_KEY": "k"}, ("deepseek", "deepseek-v4-pro", "k")),
        ("glm-5.3", {"ZAI_API_KEY": "k"}, ("zai", "glm-5.3", "k")),
        ("glm-5.3", {"ZHIPUAI_API_KEY": "k"}, ("zhipu", "glm-5.3", "k")),
        ("qwen3.8-max", {"DASHSCOPE_API_KEY": "k"}, ("dashscope", "qwen3.8-max", "k")),
        ("kimi-k3", {"MOONSHOT_API_KEY": "k"}, ("moonshot", "kimi-k3", "k")),
        ("mistral-large-4", {"MISTRAL_API_KEY": "k"}, ("mistral", "mistral-large-4", "k")),
        ("codestral-2508", {"MISTRAL_API_KEY": "k"}, ("mistral", "codestral-2508", "k")),
        ("gemini-4-argon", {"GOOGLE_API_KEY": "k"}, ("gemini", "gemini-4-argon", "k")),
        ("openrouter/anthropic/opus-9", {"OPENROUTER_API_KEY": "k"}, ("openrouter", "anthropic/opus-9", "k")),
        ("meta/llama-9", {"OPENROUTER_API_KEY": "k"}, ("openrouter", "meta/llama-9", "k")),
        ("groq/openai/gpt-oss-20b", {"GROQ_API_KEY": "k"}, ("groq", "openai/gpt-oss-20b", "k")),
        ("ollama/qwen3-coder:30b", {}, ("ollama", "qwen3-coder:30b", "")),
        ("sonnet", ANTHROPIC, ("anthropic", "claude-sonnet-5-5", "sk-ant")),
        ("fast", ANTHROPIC, ("anthropic", "claude-haiku-5-5", "sk-ant")),
        ("smart", OPENAI, ("openai", "gpt-6-astra", "sk-oai")),
        ("openai/fast", ANTHROPIC | OPENAI, ("openai", "gpt-6-luna", "sk-oai")),
        (None, ANTHROPIC, ("anthropic", "claude-sonnet-5-5", "sk-ant")),
        (None, OPENAI, ("openai", "gpt-6.1-sol", "sk-oai")),
        (None, ANTHROPIC | OPENAI, ("anthropic", "claude-sonnet-5-5", "sk-ant")),
        (None, {"ANTHROPIC_API_KEY": "  "} | OPENAI, ("openai", "gpt-6.1-sol", "sk-oai")),
        (None, {"MOONSHOT_API_KEY": " k\n"}, ("moonshot", "kimi-k3.1-pro", "k")),
        (None, OPENAI | {"OPENAI_BASE_URL": "http://h/v1"}, ("openai", "gpt-6.1-sol", "sk-oai")),
        (None, ANTHROPIC | {"ANTHROPIC_BASE_URL": "http://h"}, ("anthropic", "claude-sonnet-5-5", "sk-ant")),
        (None, {"ANTHROPIC_AUTH_TOKEN": "tok"}, ("anthropic", "claude-sonnet-5-5", "tok")),
        ("fast", OPENAI | {"ANTHROPIC_AUTH_TOKEN": "tok"}, ("anthropic", "claude-haiku-5-5", "tok")),
        (None, ANTHROPIC | {"ANTHROPIC_AUTH_TOKEN": "tok"}, ("anthropic", "claude-sonnet-5-5", "sk-ant")),
    ],
)  # fmt: skip
def test_model_goes_to_its_provider(model: str | None, env: dict[str, str], expected: tuple[str, str, str]) -> None:
    assert where(resolve_model([flag(model=model)], env)) == expected


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
def test_vendor_can_be_chosen_by_name(vendor) -> None:
    env = dict.fromkeys(vendor.key_variables[:1], "k")
    model = vendor.default_model or "m"

    resolved = resolve_model([flag(provider=vendor.name, model=None if vendor.default_model else model)], env)

    assert (resolved.provider, resolved.model, resolved.base_url) == (vendor.name, model, vendor.base_url)
    assert resolved.kind == vendor.dialect


def test_explicit_provider_overrides_the_model_name() -> None:
    resolved = resolve_model([variable(provider="openai"), flag(model="claude-opus-5-5")], OPENAI)

    assert (resolved.provider, resolved.kind, resolved.model) == ("openai", "openai", "claude-opus-5-5")


def test_stronger_source_overrides_a_weaker_one() -> None:
    wishes = [user_file(model="gpt-6"), variable(model="opus"), flag(model="haiku")]

    assert resolve_model(wishes, ANTHROPIC | OPENAI).model == "claude-haiku-5-5"
    assert resolve_model(wishes[:2], ANTHROPIC | OPENAI).model == "claude-opus-5-5"


@pytest.mark.parametrize(
    ("wishes", "env", "complaint"),
    [
        ([], {}, "no model is set up; run: panpan login, or set ANTHROPIC_API_KEY"),
        ([flag(model="claude-opus-5-5")], OPENAI, "no key for anthropic; run: panpan login anthropic, or set"),
        ([flag(model="gpt-6")], ANTHROPIC, "no key for openai; run: panpan login openai, or set OPENAI_API_KEY"),
        ([flag(model="sonet")], ANTHROPIC, "did you mean sonnet"),
        ([flag(model="llama-4")], {}, "write provider/model, such as openai/llama-4"),
        ([flag(model="foo/bar")], OPENAI, "there is no provider 'foo'; known are anthropic"),
        ([flag(provider="antropic")], ANTHROPIC, "did you mean anthropic"),
        ([flag(provider="ollama")], {}, "ollama needs to be told which model"),
        ([flag(model="ollama/")], {}, "names no model"),
        ([flag(model="ollama/fast")], {}, "ollama has no model called fast"),
        ([flag(model="cassette:")], {}, "names no file"),
        ([variable(base_url="http://127.0.0.1:9/v1")], ANTHROPIC, "nothing says which model"),
        ([variable(base_url="127.0.0.1:9", model="x")], {}, "base_url is not an address"),
        ([variable(api_key="k")], {}, "set PANPAN_PROVIDER or PANPAN_MODEL"),
        ([flag(model="opus")], ANTHROPIC | {"ANTHROPIC_BASE_URL": "nonsense"}, "ANTHROPIC_BASE_URL is not an address"),
        ([flag(model="opus")], {"ANTHROPIC_API_KEY": "two words"}, "the key in ANTHROPIC_API_KEY is empty or holds"),
        ([flag(model="opus", api_key_env="MY_KEY")], {}, "names the variable MY_KEY, which is not set"),
    ],
)  # fmt: skip
def test_unresolvable_model_error_names_the_setting_in_one_line(wishes, env, complaint) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_model(wishes, env)

    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not any(secret in str(caught.value) for secret in ("sk-ant", "sk-oai", "two words"))


def test_missing_model_is_an_error_of_its_own() -> None:
    with pytest.raises(NoModelError):
        resolve_model([], {})


NAMED = {
    "work": NamedProvider(
        "work", base_url="https://llm.example.com/v1/", models=("big", "small"), api_key_env="WORK_KEY"
    ),
    "lab": NamedProvider("lab", "anthropic", "http://10.0.0.5:4000", headers={"x-team": "t"}),
    "bare": NamedProvider("bare"),
}


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (flag(model="small"), ("work", "openai", "small", "https://llm.example.com/v1")),
        (flag(model="work/other"), ("work", "openai", "other", "https://llm.example.com/v1")),
        (flag(provider="work"), ("work", "openai", "big", "https://llm.example.com/v1")),
        (flag(model="lab/claude-opus-5-5"), ("lab", "anthropic", "claude-opus-5-5", "http://10.0.0.5:4000")),
        (flag(), ("work", "openai", "big", "https://llm.example.com/v1")),
    ],
)
def test_providers_of_the_settings_are_found_by_name_or_model(
    wish: ModelRequirement, expected: tuple[str, ...]
) -> None:
    resolved = resolve_model([wish], {"WORK_KEY": "w"}, providers=NAMED)

    assert (resolved.provider, resolved.kind, resolved.model, resolved.base_url) == expected
    assert resolved.api_key == ("w" if resolved.provider == "work" else "")
    assert resolved.headers == ({} if resolved.provider == "work" else {"x-team": "t"})


def test_provider_of_the_settings_needs_its_key_and_address() -> None:
    with pytest.raises(
        ConfigError, match=r"providers\.work\.api_key_env names the variable WORK_KEY, which is not set"
    ):
        resolve_model([flag(model="small")], ANTHROPIC, providers=NAMED)
    with pytest.raises(ConfigError, match=r"provider bare has no address; set providers\.bare\.base_url"):
        resolve_model([flag(model="bare/x")], {}, providers=NAMED)


def test_aliases_of_the_user_come_first_and_may_be_chained() -> None:
    aliases = {"sonnet": "mine", "mine": "openai/gpt-6-luna", "round": "about", "about": "round"}

    assert where(resolve_model([flag(model="sonnet")], OPENAI, aliases=aliases)) == ("openai", "gpt-6-luna", "sk-oai")
    with pytest.raises(ConfigError, match="leads back to itself"):
        resolve_model([flag(model="round")], OPENAI, aliases=aliases)


def test_vendor_key_goes_with_the_vendors_address_variable() -> None:
    env = (
        ANTHROPIC
        | {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9/"}
        | OPENAI
        | {"OPENAI_BASE_URL": "https://proxy.example/v1"}
    )

    opus, gpt = resolve_model([flag(model="opus")], env), resolve_model([flag(model="gpt-6")], env)

    assert (opus.base_url, opus.api_key) == ("http://127.0.0.1:9", "sk-ant")
    assert (gpt.base_url, gpt.api_key) == ("https://proxy.example/v1", "sk-oai")


def test_other_models_go_to_the_address_in_openais_variable() -> None:
    env = OPENAI | {"OPENAI_BASE_URL": "https://api.deepseek.example"}

    assert where(resolve_model([flag(model="deepseek-v4-pro")], env)) == ("openai", "deepseek-v4-pro", "sk-oai")


@pytest.mark.parametrize("model", ["gpt-6", "openai/gpt-6", "claude-opus-5-5", "anything"])
def test_vendor_key_does_not_go_to_an_address_of_the_settings(model: str) -> None:
    resolved = resolve_model([variable(base_url="https://elsewhere.example/v1", model=model)], ANTHROPIC | OPENAI)

    assert resolved.api_key == ""
    assert resolved.base_url == "https://elsewhere.example/v1"


def test_address_with_its_own_key_needs_no_vendor() -> None:
    wish = variable(base_url="https://elsewhere.example/v1", model="anything", api_key="k")

    resolved = resolve_model([wish], OPENAI)

    assert (resolved.provider, resolved.kind, resolved.api_key) == ("custom", "openai", "k")


def test_general_key_goes_to_the_target_of_its_source() -> None:
    key = variable(api_key="general", model="opus")

    assert resolve_model([key], OPENAI).api_key == "general"
    assert resolve_model([key, flag(model="haiku")], {}).api_key == "general"
    assert resolve_model([variable(api_key="general"), flag(model="gpt-6")], OPENAI).api_key == "general"
    assert resolve_model([user_file(provider="openai"), variable(api_key="general")], OPENAI).api_key == "general"


def test_general_key_goes_to_no_other_provider_or_address() -> None:
    key = variable(api_key="general", model="opus")

    assert resolve_model([key, flag(model="gpt-6")], OPENAI).api_key == "sk-oai"
    assert resolve_model([key, flag(base_url="https://elsewhere.example")], ANTHROPIC).api_key == ""
    elsewhere = flag(base_url="https://elsewhere.example", model="x")
    assert resolve_model([user_file(api_key="general"), elsewhere], OPENAI).api_key == ""
    with pytest.raises(ConfigError, match="the key of the environment was given for another provider"):
        resolve_model([key, flag(model="gpt-6")], {})


def test_key_variable_named_by_the_settings_is_used() -> None:
    wish = user_file(
        base_url="https://proxy.example/v1", model="gpt-6", provider="openai", api_key_env="OPENAI_API_KEY"
    )

    assert resolve_model([wish], OPENAI).api_key == "sk-oai"


def test_gateway_token_is_sent_as_a_token() -> None:
    env = {"ANTHROPIC_AUTH_TOKEN": "tok", "ANTHROPIC_BASE_URL": "https://gateway.example"}

    resolved = resolve_model([flag(model="opus")], env)

    assert resolved.headers == {"authorization": "Bearer tok"}
    assert resolved.key_place == "ANTHROPIC_AUTH_TOKEN"


@pytest.mark.parametrize(
    ("variable_name", "sent"),
    [
        ("ANTHROPIC_AUTH_TOKEN", {"authorization": "Bearer secret"}),
        (
            "ANTHROPIC_API_KEY",
            {"authorization": "Bearer secret", "x-api-key": "secret"},
        ),  # the SDK's, and the older one
    ],
)
async def test_token_is_sent_as_a_bearer_only_and_a_key_as_both(variable_name: str, sent: dict[str, str]) -> None:
    async with serving(Answer([], status=418)) as server:
        env = {variable_name: "secret", "ANTHROPIC_BASE_URL": server.url}
        provider = create_provider(resolve_model([], env))
        with pytest.raises(ProviderError):
            await ask(provider)
        await provider.aclose()

    headers = server.requests[0].headers
    assert {name: headers[name] for name in ("authorization", "x-api-key") if name in headers} == sent
    assert headers["anthropic-version"] == "2023-06-01"


@pytest.mark.parametrize(
    ("model", "address", "expected"),
    [
        ("deepseek-v4-pro", {}, ("deepseek", "reasoning_content", True)),
        ("deepseek-v4-pro", {"OPENAI_BASE_URL": "https://proxy.example/v1"}, ("deepseek", "reasoning_content", True)),
        ("kimi-k3", {"OPENAI_BASE_URL": "https://proxy.example/v1"}, ("kimi", "reasoning_content", True)),
        ("moonshotai/Kimi-K3", {"OPENAI_BASE_URL": "https://proxy.example/v1"}, ("kimi", "reasoning_content", True)),
        ("gpt-6", {"OPENAI_BASE_URL": "https://proxy.example/v1"}, ("gpt", None, False)),
        ("some-new-name", {"OPENAI_BASE_URL": "https://proxy.example/v1"}, ("generic", None, False)),
        ("some-new-name", {}, ("gpt", None, False)),
        ("openai/deepseek-v4-pro", {"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"}, ("vllm", "reasoning", False)),
    ],
)
def test_profile_follows_the_models_maker_at_any_address(
    model: str, address: dict[str, str], expected: tuple[str, str | None, bool]
) -> None:
    key = {} if address or model == "some-new-name" else {"DEEPSEEK_API_KEY": "k"}

    profile = profile_of(resolve_model([flag(model=model)], OPENAI | key | address))

    assert (profile.name, profile.reasoning_field, profile.needs_reasoning) == expected


def test_profile_elsewhere_omits_options_of_the_makers_server() -> None:
    wishes = [variable(base_url="http://gpu-box:9000/v1"), flag(model="qwen2.5-coder:7b")]

    profile = profile_of(resolve_model(wishes, {}))

    assert profile.max_tokens_field == "max_tokens"
    assert profile.reads_calls_in_text("qwen2.5-coder:7b")
    assert not profile.asks_for_parallel_calls
    assert profile.thinking["enable_thinking"] is True


secrets_of = {name: f"key-of-{name}" for vendor in VENDORS for name in vendor.key_variables}
models = st.sampled_from(
    ["opus", "gpt-6", "fast", "deepseek-v4-pro", "glm-5.3", "x", "openai/x", "ollama/x", "a/b", "work/y"]
)
wishes = st.builds(
    ModelRequirement,
    place=st.just("somewhere"),
    model=st.none() | models,
    provider=st.none() | st.sampled_from(["anthropic", "openai", "groq", "work", "ollama"]),
    base_url=st.none() | st.sampled_from(["https://one.example/v1", "http://127.0.0.1:5/v1"]),
)
environments = st.dictionaries(
    st.sampled_from([*secrets_of, "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "WORK_KEY"]), st.just("")
).map(
    lambda env: {
        name: "https://moved.example" if name.endswith("BASE_URL") else secrets_of.get(name, "key-of-work")
        for name in env
    }
)


@given(wishes=st.lists(wishes, max_size=3), env=environments)
def test_keys_go_only_to_their_own_address(wishes: list[ModelRequirement], env: dict[str, str]) -> None:
    resolved = resolved_or_complaint(wishes, env)

    assert "key-of-" not in (resolved if isinstance(resolved, str) else repr(resolved))
    if isinstance(resolved, str):
        return
    owner = next((vendor for vendor in VENDORS if resolved.key_place in vendor.key_variables), None)
    if owner is not None:
        moved = env.get(owner.base_url_variable or "", "")
        assert resolved.base_url == (moved or owner.base_url)
    elif resolved.api_key:
        assert (resolved.provider, resolved.api_key) == ("work", "key-of-work")


def resolved_or_complaint(wishes: list[ModelRequirement], env: dict[str, str]) -> ResolvedModel | str:
    try:
        return resolve_model(wishes, env, providers=NAMED)
    except ConfigError as exc:
        return str(exc)


givers = st.integers(0, 2)


@given(wishes=st.lists(wishes, min_size=3, max_size=3), env=environments, giver=givers)
def test_general_key_goes_only_where_its_source_allows(
    wishes: list[ModelRequirement], env: dict[str, str], giver: int
) -> None:
    from dataclasses import replace

    given_key = [replace(wish, api_key="general") if n == giver else wish for n, wish in enumerate(wishes)]
    resolved = resolved_or_complaint(given_key, env)
    if isinstance(resolved, str) or resolved.api_key != "general":
        return

    up_to_giver = wishes[: giver + 1]
    if any(wish.model or wish.provider for wish in up_to_giver):
        alone = resolve_model(given_key[: giver + 1], env, providers=NAMED)
        assert (alone.provider, alone.base_url) == (resolved.provider, resolved.base_url)


def test_prices_are_those_of_the_vendor_and_unknown_elsewhere() -> None:
    own = resolve_model([flag(model="opus")], ANTHROPIC)
    gateway = resolve_model([flag(model="opus")], ANTHROPIC | {"ANTHROPIC_BASE_URL": "https://g.example"})
    elsewhere = resolve_model([flag(model="gpt-6-sol", base_url="https://e.example", api_key="k")], {})
    local = resolve_model([flag(model="ollama/gpt-6-sol")], {})

    assert own.facts.price is not None
    assert own.facts.price == gateway.facts.price
    assert (elsewhere.facts.price, elsewhere.facts.context_tokens) == (None, 1_050_000)
    assert (local.facts.price, local.facts.is_known) == (None, False)


def test_cassette_needs_no_key_and_costs_nothing() -> None:
    from panpan.types.messages import Usage

    resolved = resolve_model([variable(provider="openai"), flag(model="cassette:a/b.toml")], OPENAI)

    assert (resolved.kind, resolved.base_url, resolved.api_key) == ("cassette", "a/b.toml", "")
    assert resolved.facts.price.cost_usd(Usage(input_tokens=5)) == 0


def test_reason_is_one_line_without_the_key() -> None:
    resolved = resolve_model([flag(model="opus")], ANTHROPIC)

    assert resolved.reason == (
        "claude-opus-5-5 at anthropic (https://api.anthropic.com), since the command line chose opus"
    )
    assert resolved.key_place == "ANTHROPIC_API_KEY"
    assert resolve_model([], ANTHROPIC).reason.endswith("since ANTHROPIC_API_KEY is set")


@pytest.mark.parametrize("model", ["opus", "smart", "ollama/x", "local"])
@pytest.mark.parametrize("provider", [None, "anthropic"])
def test_reason_quotes_the_source_that_names_the_model(model: str, provider: str | None) -> None:
    weaker = variable(model="haiku", provider=provider if model in ("opus", "smart") else None)
    because = ModelRequirement("the command line", model=model, reason="it runs here")

    assert resolve_model([weaker, because], ANTHROPIC).reason.endswith(", since it runs here")
    assert resolve_model([because, flag(model="opus")], ANTHROPIC).reason.endswith("since the command line chose opus")


def test_reason_quotes_an_override_that_names_the_model(tmp_path: Path) -> None:
    loaded, env = loaded_from(tmp_path / "a", "", ANTHROPIC, flags={"model": "opus"})
    other, _ = loaded_from(tmp_path / "b", 'model = "opus"', ANTHROPIC, flags={"effort": "low"})

    assert resolve_from(loaded, env, why_override="it is here").reason.endswith("since it is here")
    assert resolve_from(loaded, env).reason.endswith("since the command line chose opus")
    assert resolve_from(other, env, why_override="it is here").reason.endswith("chose opus")


def loaded_from(
    folder: Path, user: str, env: dict[str, str], project: str = "", flags: dict[str, object] | None = None
):
    home, root = folder / "home", folder / "project"
    (root / ".panpan").mkdir(parents=True)
    home.mkdir()
    env = {"PANPAN_HOME": str(home), "HOME": str(folder), **env}
    (home / "settings.toml").write_text(user)
    (home / "settings.toml").chmod(0o600)
    (root / ".panpan" / "settings.toml").write_text(project)
    locations = Locations.find(root, env)
    return load_settings(root, env, flags or {}, locations, trust=trust_of(locations).for_this_run()), env


def test_loaded_settings_lead_to_a_model(tmp_path: Path) -> None:
    user = """
        model = "mine"
        [aliases]
        mine = "work/big"
        [providers.work]
        base_url = "https://llm.example.com/v1"
        api_key = "from-file"
        headers = { x-team = "t" }
        [providers.anthropic]
        models = ["claude-opus-5-5"]
    """
    loaded, env = loaded_from(tmp_path, user, ANTHROPIC)

    work = resolve_from(loaded, env)
    assert (where(work), work.headers) == (("work", "big", "from-file"), {"x-team": "t"})


def test_vendor_in_the_settings_keeps_dialect_address_and_key(tmp_path: Path) -> None:
    user = 'provider = "anthropic"\n[providers.anthropic]\nmodels = ["claude-opus-5-5"]'
    loaded, env = loaded_from(tmp_path, user, ANTHROPIC)

    resolved = resolve_from(loaded, env)

    assert (resolved.kind, where(resolved)) == ("anthropic", ("anthropic", "claude-opus-5-5", "sk-ant"))


def test_project_may_choose_a_model_of_the_same_vendor(tmp_path: Path) -> None:
    loaded, env = loaded_from(tmp_path, "", ANTHROPIC, project='model = "opus"')

    assert resolve_from(loaded, env).model == "claude-opus-5-5"


def test_project_cannot_choose_the_target_of_requests_or_keys(tmp_path: Path) -> None:
    for number, model in enumerate(("gpt-6", "some-unknown-name", "openrouter/x", "meta/llama", "ollama/x")):
        env = ANTHROPIC | OPENAI | {"OPENROUTER_API_KEY": "k"}
        loaded, env = loaded_from(tmp_path / str(number), "", env, project=f'model = "{model}"')

        resolved = resolve_from(loaded, env)

        assert where(resolved) == ("anthropic", "claude-sonnet-5-5", "sk-ant")


@pytest.mark.parametrize("model", ["ollama/x", "llamacpp/x", "claude-opus-5-5"])
def test_project_cannot_choose_a_place_unknown_to_the_user(tmp_path: Path, model: str) -> None:
    loaded, env = loaded_from(tmp_path, "", {}, project=f'model = "{model}"')

    with pytest.raises(ConfigError):  # or whoever has Ollama's port would get the user's code unasked
        resolve_from(loaded, env)


def test_project_may_choose_a_model_at_a_place_of_the_users(tmp_path: Path) -> None:
    user = '[providers.lab]\nbase_url = "http://127.0.0.1:9999/v1"'
    loaded, env = loaded_from(tmp_path, user, {}, project='model = "lab/big"')

    assert where(resolve_from(loaded, env)) == ("lab", "big", "")


def test_project_cannot_say_whose_a_general_key_is(tmp_path: Path) -> None:
    loaded, env = loaded_from(tmp_path, "", {"PANPAN_API_KEY": "general"}, project='model = "deepseek-v4-pro"')

    with pytest.raises(ConfigError, match="nothing says whose"):
        resolve_from(loaded, env)


def test_project_settings_beyond_the_model_are_ignored() -> None:
    values = {"model": "opus", "base_url": "https://evil.example", "api_key": "theirs", "provider": "openai"}
    loaded = Loaded(Settings(), [Source("project", "the project", values, {})], ())

    assert where(resolve_from(loaded, ANTHROPIC)) == ("anthropic", "claude-opus-5-5", "sk-ant")


def test_options_stay_within_the_models_abilities() -> None:
    opus = resolve_model([flag(model="opus")], ANTHROPIC)
    local = resolve_model([flag(model="ollama/x")], {})
    old = resolve_model([flag(model="gpt-4.1")], OPENAI)

    assert model_options(opus, GenerationOptions()).max_output_tokens == 32_000
    assert model_options(opus, GenerationOptions(max_output_tokens=10**6)).max_output_tokens == 128_000
    assert model_options(old, GenerationOptions(max_output_tokens=10**6)).max_output_tokens == 32_768
    assert model_options(local, GenerationOptions()).max_output_tokens == 8_192
    assert model_options(local, GenerationOptions(max_output_tokens=20_000)).max_output_tokens == 20_000


def test_settings_become_requirements_for_the_answer() -> None:
    settings = Settings(thinking=True, thinking_budget_tokens=2048, effort="low", temperature=0.5, max_output_tokens=5)
    resolved = resolve_model([flag(model="opus")], ANTHROPIC)

    options = model_options(resolved, generation_options(settings))

    assert (options.thinking_budget_tokens, options.effort, options.temperature) == (2048, "low", 0.5)
    assert options.max_output_tokens == 5
    assert generation_options(Settings()).thinking_budget_tokens is None
    assert generation_options(Settings()).idle_timeout_s is None


def test_choosing_a_model_loads_no_sdk() -> None:
    program = (
        "import sys\n"
        "from panpan.models.factory import resolve_model, create_client\n"
        "from panpan.models.model_choice import ModelRequirement\n"
        "for model in ('opus', 'gpt-6'):\n"
        "    env = {'ANTHROPIC_API_KEY': 'k', 'OPENAI_API_KEY': 'k'}\n"
        "    create_client(resolve_model([ModelRequirement(model=model)], env))\n"
        "print({'anthropic', 'openai', 'httpx2', 'tomllib'} & sys.modules.keys())\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


async def test_clients_of_both_dialects_talk_to_the_model_server() -> None:
    from contextlib import aclosing

    from panpan.types.llm import ModelRequest
    from panpan.types.messages import UserMessage
    from tests.model_server import HttpError, say
    from tests.model_server import serving as model_serving

    with model_serving([say("one"), HttpError(529), say("two")], api_key="secret") as server:
        env = {"ANTHROPIC_API_KEY": "secret", "ANTHROPIC_BASE_URL": f"{server.url}/v1/"}
        env |= {"OPENAI_API_KEY": "secret", "OPENAI_BASE_URL": server.openai_url}
        texts = []
        for model in ("sonnet", "gpt-6"):
            client = create_client(resolve_model([flag(model=model)], env))
            try:
                async with aclosing(client.stream(ModelRequest("", (), [UserMessage.of("hi")]))) as events:
                    *_, message = [event async for event in events]
                texts.append((message.text, message.cost_usd is not None))
            finally:
                await client.aclose()

    assert texts == [("one", True), ("two", False)]
    assert [request.path for request in server.requests] == ["/v1/messages"] + ["/v1/chat/completions"] * 2


def test_clients_of_one_provider_share_their_pace(tmp_path: Path) -> None:
    def pace_of(model: str) -> object:
        env = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
        (place := tmp_path / model).mkdir(parents=True)
        flagged = loaded_from(place, "", env, flags={"model": model, "retry.shared_folder": "/pace"})
        return create_client(resolve_from(*flagged))._pace

    paces = [pace_of(model) for model in ("opus", "haiku", "gpt-6", "ollama/llama")]

    assert paces[0] is paces[1] is not paces[2]
    assert isinstance(paces[2], SharedPace)
    assert not isinstance(paces[3], SharedPace)  # each machine has its own


def test_vendor_names_are_prefixes() -> None:
    assert all("/" not in vendor.name and vendor_named(vendor.name) is vendor for vendor in VENDORS)


EXTRA = {
    "lab": NamedProvider("lab", base_url="https://lab.example/v1", headers={"x-team": "t"}, body={"seed": 1}),
    "openai": NamedProvider("openai", headers={"x-team": "t"}, body={"seed": 1}),
}


@pytest.mark.parametrize(
    ("wish", "is_sent"),
    [
        (flag(model="lab/m"), True),
        (flag(model="lab/m", base_url="https://lab.example/other"), True),
        (flag(model="lab/m", base_url="https://lab.example.org/v1"), False),
        (flag(model="lab/m", base_url="http://lab.example/v1"), False),
        (flag(model="lab/m", base_url="https://lab.example:8443/v1"), False),
        (flag(model="openai/gpt-6-luna"), True),
        (flag(model="openai/gpt-6-luna", base_url="https://gateway.example/v1"), True),
    ],
)
def test_headers_and_fields_of_a_provider_go_to_no_other_host(wish: ModelRequirement, is_sent: bool) -> None:
    resolved = resolve_model([wish], {"OPENAI_API_KEY": "k"}, providers=EXTRA)

    assert ("x-team" in resolved.headers, "seed" in resolved.body) == (is_sent, is_sent)


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
async def test_sampling_and_fields_of_the_settings_are_sent(tmp_path: Path, kind: str) -> None:
    async with serving(Answer([], status=418)) as server:
        user = f"""
            model = "lab/m"
            top_p = 0.9
            top_k = 40
            [providers.lab]
            kind = "{kind}"
            base_url = "{server.url}"
            headers = {{ x-team = "t" }}
            body = {{ seed = 1, extra = {{ nested = [true, "a", 0.5] }}, top_k = 50 }}
        """
        loaded, env = loaded_from(tmp_path, user, {})
        resolved = resolve_from(loaded, env)
        provider = create_provider(resolved)
        with pytest.raises(ProviderError):
            await ask(provider, options=model_options(resolved, generation_options(loaded.settings)))
        await provider.aclose()

    (request,) = server.requests
    body = json.loads(request.body)
    assert request.headers["x-team"] == "t"
    assert (body["top_p"], body["top_k"], body["seed"]) == (0.9, 50, 1)
    assert body["extra"] == {"nested": [True, "a", 0.5]}
    assert list(body)[-1] == "messages"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{model = 'x'}", "has model, which panpan sets itself; remove it"),
        ("{max_tokens = 5, n = 2}", "has max_tokens"),
        ("{x = inf}", "finite"),
        ("{x = 2026-01-01}", "body"),
    ],
)
def test_fields_that_cannot_be_added_are_named(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        loaded_from(tmp_path, f"[providers.lab]\nbase_url = 'https://lab.example'\nbody = {body}", {})


def stored(home: Path, **keys: str) -> StoredKeys:
    kept = StoredKeys(home, NoKeyring())
    for vendor, key in keys.items():
        kept.keep(vendor, key)
    return kept


def test_stored_key_counts_if_the_environment_has_none(tmp_path: Path) -> None:
    keys = stored(tmp_path, anthropic="sk-stored", openrouter="sk-router")

    logged_in = resolve_model([], {"ANTHROPIC_API_KEY": " "}, keys=keys)
    assert (where(logged_in), logged_in.key_place) == (
        ("anthropic", "claude-sonnet-5-5", "sk-stored"),
        "panpan login",
    )
    assert logged_in.reason.endswith("since you logged in to Anthropic")
    assert resolve_model([], ANTHROPIC, keys=keys).api_key == "sk-ant"
    assert where(resolve_model([flag(model="meta/any")], {}, keys=keys)) == ("openrouter", "meta/any", "sk-router")


def test_stored_key_goes_to_no_other_address(tmp_path: Path) -> None:
    keys = stored(tmp_path, anthropic="sk-stored")
    gateway = NamedProvider("gateway", "anthropic", "https://g.example", api_key_env="ANTHROPIC_API_KEY")

    assert resolve_model([flag(model="opus", base_url="https://e.example")], {}, keys=keys).api_key == ""
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY, which is not set"):
        resolve_model([flag(model="gateway/claude-x")], {}, providers={"gateway": gateway}, keys=keys)
    moved = resolve_model([flag(model="opus")], {"ANTHROPIC_BASE_URL": "https://g.example"}, keys=keys)
    assert (moved.base_url, moved.api_key) == ("https://g.example", "sk-stored")


def test_settings_bring_the_stored_keys_of_the_home(tmp_path: Path) -> None:
    locations = Locations.find(tmp_path, {"PANPAN_HOME": str(tmp_path / "home")})
    stored(locations.home, groq="sk-groq")

    assert where(resolve_from(load_settings(tmp_path, {}, {}, locations), {})) == (
        "groq",
        "openai/gpt-oss-120b",
        "sk-groq",
    )
