"""Mistakes in `campaign.toml`: each is one sentence with the line, the key and what to do."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from panpan.batch.definition.campaign_file import LoadedCampaign, load_campaign
from panpan.batch.definition.campaign_rules import OWN_FLAGS
from panpan.cli_kit.options import run_options
from panpan.errors import ConfigError
from tests.fakes.campaign import ONE_TASK, make_campaign


def env_of(tmp_path: Path) -> Mapping[str, str]:
    return {"HOME": str(tmp_path), "PANPAN_HOME": str(tmp_path / "users-home")}


def loaded(tmp_path: Path, text: str, files: Mapping[str, str] | None = None) -> LoadedCampaign:
    return load_campaign(make_campaign(tmp_path, text, files=files, is_repository=False).path, env_of(tmp_path))


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text)
    return str(caught.value)


def test_campaign_is_read_with_its_files(tmp_path: Path) -> None:
    more = '{"id": "b", "prompt": "p"}\n'
    found = loaded(tmp_path, f'tasks.jsonl = ["more.jsonl"]\n{ONE_TASK}', {"more.jsonl": more})
    assert found.source == (tmp_path / "project").resolve()
    assert found.home == found.users_home == (tmp_path / "users-home").resolve()
    assert dict(found.jsonl) == {"more.jsonl": more.encode()}
    assert set(found.files.content) == {"campaign.toml", "more.jsonl"}
    assert found.files.root == found.folder.campaign_file


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("attempts = 0", "campaign.toml:1: attempts is too small; write at least 1"),
        ('attempts = "3"', "campaign.toml:1: attempts is a text; write a whole number"),
        ("atempts = 3", "campaign.toml:1: there is no key atempts; did you mean attempts?"),
        ("\n[attempt]\nmax_turn = 3", "there is no key attempt.max_turn; did you mean attempt.max_turns?"),
        ("[where.slurm]\nwall = '1'", "there is no key where.slurm.wall; did you mean where.slurm.walltime?"),
        ("[rate.one]\nrequest_per_minute = 3", "request_per_minute; did you mean rate.one.requests_per_minute?"),
        ("[rate.one]\nmax_usd = 3", "there is no key rate.one.max_usd; did you mean attempt.max_usd?"),
        ("verify = 3", "campaign.toml:1: verify is a whole number; write a command in quotes"),
        ("verify = ' '", "campaign.toml:1: verify.command is empty"),
        ("task = ['p']", "campaign.toml:1: task 1 is a text; write a table"),
        ("[[task]]\nid = 'a'\nprompt = 'p'\n[[task]]\nprompt = 'q'", "campaign.toml:4: task 2: id is missing; add it"),
        ("[[task]]\nid = 'a'\npromt = 'p'", "there is no key task.promt; did you mean task.prompt?"),
        ("[axes]\nseed = []", "campaign.toml:2: axes.seed is empty; write a value, or remove it"),
        ("[axes]\nseed = 3", "campaign.toml:2: axes.seed is a whole number; write a list"),
        ("[axes]\nseed = [1, [2]]", "campaign.toml:2: axes.seed has an item 2 that is a list; write texts, numbers"),
        ("[axes]\nseed = [nan]", "campaign.toml:2: axes.seed has an item 1 that is not finite"),
        ("[axes]\n'no name' = [1]", 'campaign.toml:2: axes."no name" is no name; write letters'),
        ("[workspace]\nisolation = 'none'", "workspace.isolation is unknown; write 'worktree' or 'copy'"),
        ("[workspace]\nsource = 'gone'\n[[task]]\nid='a'\nprompt='p'", "gone is no folder; correct the path"),
        (
            "[where.slurm]\nwalltime = '01:00:00'\nqueue = \"q\\ncurl evil\"\n[[task]]\nid='a'\nprompt='p'",
            "campaign.toml:3: where.slurm.queue has a character that cannot be seen; remove it",
        ),
        ("attempts = ", "campaign.toml:1: is not valid TOML: invalid value"),
        ("a." * 5_000 + "b = 1", "campaign.toml: is nested too deeply"),
        ("[attempt]\nflags = [3]", "campaign.toml:2: attempt.flags has an item that is a whole number; write a text"),
    ],
)  # fmt: skip
def test_mistake_is_named_with_line_key_and_correction(tmp_path: Path, text: str, sentence: str) -> None:
    assert sentence in refusal(tmp_path, text)


def test_first_campaign_is_helped_to_begin(tmp_path: Path) -> None:
    for folder, problem in ((tmp_path / "gone", "there is no folder"), (tmp_path, "has no campaign.toml")):
        with pytest.raises(ConfigError, match=f"{problem}.*panpan batch new {folder}"):
            load_campaign(folder, env_of(tmp_path))


def test_folders_that_are_no_place_for_campaigns(tmp_path: Path) -> None:
    (tmp_path / "users-home/c").mkdir(parents=True)
    (tmp_path / "file").touch()
    for folder, problem in (
        (tmp_path / "file", "is no folder"),
        (tmp_path / "users-home/c", "is in the panpan home"),
        (Path("/"), "is the root of the file system"),
    ):
        with pytest.raises(ConfigError, match=problem):
            load_campaign(folder, env_of(tmp_path))


def test_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, is_repository=False)
    folder.campaign_file.write_bytes(b"# one\n# \xff")
    with pytest.raises(ConfigError, match=r"campaign.toml:2: is not UTF-8; save the file as UTF-8"):
        load_campaign(folder.path, env_of(tmp_path))
    folder.campaign_file.unlink()
    folder.campaign_file.symlink_to("nowhere")
    with pytest.raises(ConfigError, match=r"campaign.toml cannot be read: .*; change or remove the file"):
        load_campaign(folder.path, env_of(tmp_path))


def test_home_of_the_attempts_is_beside_the_campaign(tmp_path: Path) -> None:
    found = loaded(tmp_path, f'home = "../shared"\n{ONE_TASK}')
    assert found.home == (tmp_path / "shared").resolve()
    assert found.users_home == (tmp_path / "users-home").resolve()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("attempts = 2", "campaign.toml: there are no tasks; write a [[task]]"),
        ("[tasks]\neach = '*.md'", "campaign.toml:2: tasks.each needs tasks.prompt"),
        ("[tasks]\neach = '*.md'\nprompt = 'p'", "campaign.toml:3: tasks.prompt is the same for all files"),
        ("[tasks]\nprompt = 'p'", "campaign.toml:2: tasks.prompt is for the files of tasks.each"),
        (ONE_TASK + "[axes]\nfile = [1]", "axes.file has a name that means something else"),
        (ONE_TASK + "[axes]\nSeed = [1]\nseed = [1]", "axes.seed differs from axes.Seed in case alone"),
        (ONE_TASK + "[axes]\nmodel = ['a', 1]", "axes.model has an item that names no model"),
        (ONE_TASK + "[budget]\nusd = 3", "budget.usd needs attempt.max_usd"),
        (ONE_TASK + "[budget]\ntokens = 3", "budget.tokens needs attempt.max_tokens"),
        (ONE_TASK + "[budget]\nseconds = 3", "budget.seconds needs attempt.max_seconds"),
        (ONE_TASK + "[budget]\ngpu_seconds = 3", "budget.gpu_seconds needs attempt.max_seconds and attempt.gpu"),
        (
            ONE_TASK + "[budget]\nusd = 3\n[attempt]\nmax_usd = 4",
            "budget.usd = 3 is less than one attempt may take (4)",
        ),
        (
            ONE_TASK + "[budget]\ngpu_seconds = 9\n[attempt]\ngpu = 2\nmax_seconds = 5",
            "budget.gpu_seconds = 9 is less than one attempt may take (10)",
        ),
        (ONE_TASK + "[workspace]\npython = '3.12'", 'set workspace.environment = "uv"'),
        (ONE_TASK + "[workspace]\nisolation = 'copy'\ncommit = 'v1'", "workspace.commit is for worktrees"),
        (ONE_TASK + "[workspace]\ncommit = '--all'", "workspace.commit begins with a dash"),
        *(
            (
                ONE_TASK + f"[workspace]\nlinked = ['{path}']",
                f"workspace.linked has {path}, which is no path in the project",
            )
            for path in ("/data", "a/../../b", ".git/x")
        ),
        (ONE_TASK + "[workspace]\nleft_out = ['out']", "workspace.left_out is for copies"),
        (ONE_TASK + "[attempt]\ngpu = 2\n[where]\ngpus = [0]", "attempt.gpu = 2 is more than the 1 of where.gpus"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(tmp_path: Path, text: str, sentence: str) -> None:
    assert sentence in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("flags", "advice"),
    [
        (["--session-id", "x"], "each attempt has a session of its own"),
        (["-p"], "the prompt is that of the task"),
        (["-yp"], "the prompt is that of the task"),
        (["-fjson"], "panpan reads the output itself"),
        (["--output-format=json"], "panpan reads the output itself"),
        (["--cwd", "/"], "set workspace.source"),
        (["--max-budget-usd", "3"], "set attempt.max_usd"),
        (["--max-turns=3"], "set attempt.max_turns"),
        (["--model", "m"], "set model, or the axis model"),
        (["--set", "model=m"], "set model, or the axis model"),
        (["--set=max_rounds=3"], "set attempt.max_turns"),
        (["-c"], "each attempt has a session of its own"),
        (["--yes", "--", "x"], "the prompt is that of the task"),
        (["yes"], "begin with a flag, such as --yes"),
    ],
)
def test_flags_of_the_campaign_itself_are_refused(tmp_path: Path, flags: list[str], advice: str) -> None:
    message = refusal(tmp_path, f"{ONE_TASK}[attempt]\nflags = {flags}")
    assert message.startswith("campaign.toml:6: attempt.flags ")
    assert advice in message


def test_other_flags_are_taken(tmp_path: Path) -> None:
    flags = ["-y", "--sandbox", "off", "--allowedTools", "Bash(make *)", "--set", "ui.plain=true", "-q", "--effort=low"]
    assert loaded(tmp_path, f"{ONE_TASK}[attempt]\nflags = {flags}").campaign.attempt.flags == tuple(flags)


def test_flags_of_the_campaign_are_options_of_panpan() -> None:
    @run_options
    def command(**_: object) -> None:
        pass

    options = {name for option in getattr(command, "__click_params__") for name in option.opts}  # noqa: B009
    assert set(OWN_FLAGS) - options == {"--", "--help", "--version"}
