"""The small model is asked where the conversation goes anyway, and nowhere else."""

from pathlib import Path

import pytest

from panpan.app import kinds_of
from panpan.errors import BudgetError
from panpan.session.one_shot import small_model
from panpan.session.setup import SessionSetup, load_setup


def setup_of(tmp_path: Path, *, settings: str = "", key: str = "ANTHROPIC_API_KEY", **env: str) -> SessionSetup:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    (home / "settings.toml").write_text(settings)
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    keys = {key: "sk-test-0123456789"} if key else {}
    own = {"HOME": str(tmp_path), "PANPAN_HOME": str(home), **keys, **env}
    return load_setup(workspace, own, {}, (), kinds=kinds_of)


def test_small_model_is_of_the_same_provider(tmp_path: Path) -> None:
    setup = setup_of(tmp_path)

    model = small_model(setup)

    assert model.model != setup.model.model
    assert (model.provider, model.base_url) == (setup.model.provider, setup.model.base_url)


def test_small_model_of_a_single_vendor_asks_no_other(tmp_path: Path) -> None:
    setup = setup_of(tmp_path, settings='model = "deepseek-v4-pro"', DEEPSEEK_API_KEY="sk-test-0123456789")

    model = small_model(setup)

    assert (setup.model.provider, model.provider) == ("deepseek", "deepseek")


@pytest.mark.parametrize(
    ("settings", "env"),
    [
        ("", {"ANTHROPIC_BASE_URL": "http://localhost:9/proxy"}),
        ('base_url = "http://localhost:9"\nmodel = "m"\napi_key = "k0123456789"', {}),
        ('model = "lab/m"\n[providers.lab]\nbase_url = "http://localhost:9"', {}),
        ('[aliases]\nfast = "openai/gpt-6-luna"', {"OPENAI_API_KEY": "sk-test-0123456789"}),
        ('[aliases]\nfast = "nowhere/x"', {}),
    ],
)
def test_small_model_is_the_sessions_own_where_none_is_known(
    tmp_path: Path, settings: str, env: dict[str, str]
) -> None:
    setup = setup_of(tmp_path, settings=settings, **env)

    assert small_model(setup) is setup.model


def test_small_model_of_the_user_counts_at_the_same_place(tmp_path: Path) -> None:
    lab = 'model = "lab/big"\n[aliases]\nfast = "lab/small"\n[providers.lab]\nbase_url = "http://localhost:9"'

    model = small_model(setup_of(tmp_path, settings=lab))
    with_budget = small_model(setup_of(tmp_path, settings='[aliases]\nfast = "anthropic/unknown"\n'))

    assert (model.provider, model.model) == ("lab", "small")
    assert with_budget.model == "unknown"


def test_small_model_may_be_elsewhere_with_the_users_consent(tmp_path: Path) -> None:
    setup = setup_of(tmp_path, settings='[aliases]\nfast = "openai/gpt-6-luna"', OPENAI_API_KEY="sk-test-0123456789")

    model = small_model(setup, may_be_elsewhere=True)

    assert model.provider == "openai"


def test_budget_needs_a_known_price_at_the_start(tmp_path: Path) -> None:
    settings = 'model = "openai/unheard-of"\n'
    assert setup_of(tmp_path, settings=settings, key="OPENAI_API_KEY").model.model == "unheard-of"
    with pytest.raises(BudgetError, match="the price of unheard-of is unknown"):
        setup_of(tmp_path, settings=f"{settings}max_budget_usd = 1.0\n", key="OPENAI_API_KEY")
