"""Trust in campaigns: what is shown, what is kept, and what happens without it."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from panpan.batch.definition.campaign_file import LoadedCampaign, load_campaign
from panpan.batch.definition.campaign_trust import CampaignTrust, require_trust
from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.records import FrozenCampaign
from panpan.config.project_files import read_project_files
from panpan.config.trust import Changed, Trusted, TrustStore, Untrusted
from panpan.errors import ConfigError
from tests.fakes.campaign import ONE_TASK, make_campaign

ALL = """
attempts = 3
verify = "pytest -q"
home = "../home"
tasks.jsonl = ["more.jsonl"]

[[task]]
id = "a"
prompt = "p"
verify = { command = "make\\nmake check", network = true }

[axes]
seed = [1, 2]

[attempt]
flags = ["--yes", "--allowedTools", "Bash(rm *)"]
max_usd = 2.0

[budget]
usd = 40.0

[workspace]
source = "../project"
environment = "uv"
setup = "pip install -e . # \\u202e"

[where]
on = "slurm"

[where.slurm]
directives = ["--gres=gpu:1"]
prologue = ["module load cuda"]
"""
MORE = '{"id": "b", "prompt": "p", "verify": "curl evil"}\n'


made = partial(make_campaign, is_repository=False)


def load(folder: CampaignFolder) -> LoadedCampaign:
    env = {"HOME": str(folder.path.parent), "PANPAN_HOME": str(folder.path.parent / "users-home")}
    return load_campaign(folder.path, env)


class Answers:
    """Answers a question, and keeps it."""

    def __init__(self, answer: bool | None) -> None:
        self.answer, self.questions = answer, list[str]()

    async def __call__(self, question: str) -> bool | None:
        self.questions.append(question)
        return self.answer


def test_text_shows_all_that_runs_with_every_character(tmp_path: Path) -> None:
    text = CampaignTrust(load(made(tmp_path, ALL, files={"more.jsonl": MORE}))).text()
    lines = [line.strip() for line in text.split("\n")]
    assert "is not trusted. It is code" in lines[0]
    project = (tmp_path / "project").resolve()
    for line in (
        "panpan, 12 times (tasks: 4, attempts at each: 3), with the flags: --yes --allowedTools 'Bash(rm *)'",
        f"files: worktree of {project} at HEAD",
        f"panpan home, with settings and keys: {(tmp_path / 'home').resolve()}",
        "verify: pytest -q",
        "verify with the network: make",
        "make check",
        "verify: curl evil",
        "setup, with the network: pip install -e . # <U+202E>",
        "axis seed: 1, 2",
        "on: slurm",
        "slurm directive: --gres=gpu:1",
        "slurm prologue: module load cuda",
        "limits: 2 usd for each attempt, 40 usd for all",
    ):
        assert line in lines


COMMANDS = """
[[task]]
id = "a"
command = "python run.py {seed}"
network = true

[axes]
seed = [1, 2]

[workspace]
source = "../project"
linked = ["data"]
"""


@pytest.mark.parametrize(
    ("more", "who"),
    [("", "commands, 2 times"), ('{"id": "b", "prompt": "p"}\n', "panpan or commands, 4 times")],
)
def test_text_shows_the_commands_of_tasks(tmp_path: Path, more: str, who: str) -> None:
    tables = '[tasks]\njsonl = ["more.jsonl"]\n' if more else ""
    text = CampaignTrust(load(made(tmp_path, COMMANDS + tables, files={"more.jsonl": more}))).text()
    lines = [line.strip() for line in text.split("\n")]

    assert any(line.startswith(who) for line in lines)
    assert "command with the network: python run.py {seed}" in lines
    assert "link in each of them: data" in lines


def test_answer_is_kept_for_exactly_these_files(tmp_path: Path) -> None:
    folder = made(tmp_path, ALL, files={"more.jsonl": MORE})
    trust = CampaignTrust(load(folder))
    assert trust.state == Untrusted()
    trust.keep(is_trusted=True)
    assert CampaignTrust(load(folder)).state == Trusted()
    (folder.path / "more.jsonl").write_text(MORE.replace("evil", "worse"))
    changed = CampaignTrust(load(folder))
    assert isinstance(changed.state, Changed)
    assert "changed since you trusted it" in changed.text()
    assert '    +{"id": "b", "prompt": "p", "verify": "curl worse"}' in changed.text().split("\n")


def test_trust_in_a_campaign_is_none_in_its_folder(tmp_path: Path) -> None:
    folder = made(tmp_path)
    loaded = load(folder)
    CampaignTrust(loaded).keep(is_trusted=True)
    store = TrustStore(loaded.users_home)
    assert store.state(read_project_files(folder.path, loaded.users_home)) == Untrusted()
    assert list(store.trusted_roots()) == [folder.campaign_file]


def test_home_of_a_campaign_gives_it_no_trust(tmp_path: Path) -> None:
    loaded = load(made(tmp_path, f'home = "../home"\n{ONE_TASK}'))
    TrustStore(loaded.home).keep(loaded.files, is_trusted=True)
    assert CampaignTrust(loaded).state == Untrusted()


async def test_user_is_asked_once(tmp_path: Path) -> None:
    loaded, yes = load(made(tmp_path)), Answers(True)
    await require_trust(loaded, ask=yes)
    await require_trust(loaded, ask=yes)
    await require_trust(loaded)
    assert len(yes.questions) == 1
    assert yes.questions[0].endswith("\nDo you trust this campaign?")


@pytest.mark.parametrize("answer", [False, None])
async def test_campaign_does_not_run_after_a_no(tmp_path: Path, answer: bool | None) -> None:
    loaded = load(made(tmp_path))
    with pytest.raises(ConfigError, match="is not trusted, so nothing ran"):
        await require_trust(loaded, ask=Answers(answer))
    assert CampaignTrust(loaded).state == Untrusted(is_refused=answer is False)
    later = Answers(True)
    await require_trust(loaded, ask=later)
    assert later.questions


async def test_flag_trusts_for_one_run(tmp_path: Path) -> None:
    loaded, never = load(made(tmp_path)), Answers(True)
    await require_trust(loaded, trusts=True, ask=never)
    assert not never.questions
    with pytest.raises(ConfigError, match="is not trusted; run it once on a terminal, which asks, or add --trust"):
        await require_trust(loaded)


async def test_changed_campaign_is_refused_without_a_terminal(tmp_path: Path) -> None:
    folder = made(tmp_path)
    CampaignTrust(load(folder)).keep(is_trusted=True)
    folder.campaign_file.write_text(folder.campaign_file.read_text() + "# more\n")
    with pytest.raises(ConfigError, match="changed since you trusted it; run it once on a terminal"):
        await require_trust(load(folder))


@pytest.mark.parametrize("more", [{f"n{number}": number for number in range(600)}])
async def test_more_than_a_screen_is_not_asked_about(tmp_path: Path, more: Mapping[str, int]) -> None:
    tasks = "".join(f'[[task]]\nid = "{name}"\nprompt = "p"\nverify = "make {name}"\n' for name in more)
    with pytest.raises(ConfigError, match="runs too much to ask about; read its files, then run it with --trust"):
        await require_trust(load(made(tmp_path, tasks)), ask=Answers(True))


def begun_campaign(folder: CampaignFolder, campaign_id: str = "theirs") -> None:
    fields = {"id": campaign_id, "tasks": 1, "tasks_digest": "", "source": "/", "home": "/", "campaign": {}}
    folder.write_frozen(FrozenCampaign.model_validate(fields))


async def test_state_of_somebody_else_is_asked_about(tmp_path: Path) -> None:
    folder = made(tmp_path)
    loaded = load(folder)
    CampaignTrust(loaded).keep(is_trusted=True)
    begun_campaign(folder)
    with pytest.raises(ConfigError, match="you did not begin this campaign; run it once on a terminal"):
        await require_trust(loaded)

    yes = Answers(answer=True)
    await require_trust(loaded, ask=yes)
    await require_trust(loaded)

    assert "is from somebody else or another folder. It is code, too" in yes.questions[0]
    begun_campaign(folder, "others")
    assert CampaignTrust(loaded).is_from_elsewhere


async def test_refused_state_of_somebody_else_is_not_kept(tmp_path: Path) -> None:
    folder = made(tmp_path)
    begun_campaign(folder)
    with pytest.raises(ConfigError, match="is not trusted, so nothing ran"):
        await require_trust(load(folder), ask=Answers(answer=False))

    assert CampaignTrust(load(folder)).is_from_elsewhere
