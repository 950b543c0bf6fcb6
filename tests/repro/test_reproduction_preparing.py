"""Preparation of claims by a real panpan with a scripted model: what it may say, and that it goes on after kills."""

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from panpan.errors import AnswerNeededError, BudgetError, ConfigError, PanpanError
from panpan.repro.claims.claim import Claim, Claims, Data
from panpan.repro.claims.claims_file import claims_text, load_claims
from panpan.repro.journey.model_runs import ModelOptions, ModelRuns
from panpan.repro.journey.preparing import prepare
from panpan.repro.journey.reproduction_folder import JourneyState, ReproductionFolder
from tests.model_server import HttpError, ModelServer, RecordedRequest, Reply, ToolCall, call, calls, say, serving
from tests.prepared_command import PREPARED
from tests.repro.toy_papers import ScriptedModel, fill_means, toy_repository

CLAIMS = Claims(
    claim=(
        Claim(id="trimmed", row="trimmed mean", value="3.50"),
        Claim(id="bootstrap", row="bootstrap mean", value="3.502", seed=0),
        Claim(id="guess", row="human guess", value="much better"),
    )
)
COMMENT = b"# read by Ada\n"


class Place:
    """A folder of a reproduction, with claims and a model."""

    def __init__(self, root: Path, server: ModelServer) -> None:
        self.folder = ReproductionFolder((root / "robust-means-reproduction").resolve())
        self.folder.path.mkdir()
        self.folder.source.symlink_to(toy_repository("robust-means", root))
        self.folder.claims_file.write_bytes(COMMENT + claims_text(CLAIMS).encode())
        (root / "home").mkdir()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            "PANPAN_HOME": str(root / "home" / ".panpan"),
            "PANPAN_SESSIONS_TITLE": "first-words",
            "NO_PROXY": "*",
            "ANTHROPIC_API_KEY": "sk-ant-test-0123456789abcdef",
            "ANTHROPIC_BASE_URL": server.url,
        }
        self.said: list[str] = []

    def clone(self) -> None:
        """Put the repository into the folder, in place of the link."""
        target = self.folder.source.resolve()
        self.folder.source.unlink()
        target.rename(self.folder.source)

    def write_settings(self, text: str) -> None:
        """Write the settings of the user."""
        settings = Path(self.env["PANPAN_HOME"], "settings.toml")
        settings.parent.mkdir()
        settings.write_text(text)

    async def prepare(self, **options: Any) -> Claims:
        """Prepare the claims, and return them."""
        state = self.folder.state() or JourneyState()
        chosen = ModelOptions(panpan=PREPARED.argv(env=self.env), **options)
        await prepare(self.folder, ModelRuns(self.folder, state, chosen, self.env, self.said.append), self.said.append)
        return self.claims

    @property
    def claims(self) -> Claims:
        return load_claims(self.folder.path).claims

    @property
    def state(self) -> JourneyState:
        state = self.folder.state()
        assert state is not None
        return state


async def test_model_completes_commands_and_places(tmp_path: Path) -> None:
    model = ScriptedModel(fill_means)
    with serving(model) as server:
        place = Place(tmp_path, server)
        claims = await place.prepare()
        await place.prepare()

    trimmed, bootstrap, guess = claims.claim
    assert (trimmed.command, trimmed.value) == ("python3 experiment.py --seed {seed}", "3.50")
    assert bootstrap.extract is not None
    assert bootstrap.extract.output == r"bootstrap mean: ([0-9.]+)"
    assert (guess.command, guess.value) == ("", "much better")
    assert place.folder.claims_file.read_bytes().startswith(COMMENT)
    assert len(model.prompts) == 1, "complete claims need no model"
    assert [line.split()[1] for line in place.said[1:3]] == ["Read", "Write"], "its calls are said as they come"
    assert place.state.work["prepare"].model.startswith("claude")
    assert "trimmed, bootstrap" in model.prompts[0]


def _tampered(claim: Claim) -> Claim:
    return claim.model_copy(
        update={"value": "9.99", "spread": 50.0, "seed": 3, "confirmed": True, "not_reproducible": "because"}
    )


async def test_model_cannot_change_what_the_paper_says(tmp_path: Path) -> None:
    with serving(ScriptedModel(fill_means, tamper=_tampered)) as server:
        place = Place(tmp_path, server)
        claims = await place.prepare()

    for before, after in zip(CLAIMS.claim, claims.claim, strict=True):
        assert (after.value, after.spread, after.confirmed) == (before.value, before.spread, before.confirmed)
        assert after.not_reproducible == ""
    assert claims.claim[1].seed == 0
    assert any("trimmed: value stays as it was" in line for line in place.said)


def with_a_mistake(request: RecordedRequest) -> Reply:
    """Write a draft that is no TOML, and mend it once that is told."""
    path = request_draft(request)
    edit = {"file_path": path, "old_string": "[[claim]\n", "new_string": '[[claim]]\nid = "x"\n'}
    steps: Sequence[Reply] = (
        call("Read", {"file_path": path}),
        call("Write", {"file_path": path, "content": "[[claim]\n"}),
        say("Done."),
        call("Read", {"file_path": path}),
        call("Edit", edit),
        say("Mended."),
    )
    return steps[sum(message["role"] == "assistant" for message in request.messages)]


def simply_asked(request: RecordedRequest) -> str:
    """Return the claim that a simple question is about; empty if a request is none."""
    found = re.search(r'prints the number of \\"(.*?)\\"', json.dumps(request.messages[0]))
    return found[1] if found else ""


def knowing_nothing(script: Callable[[RecordedRequest], Reply]) -> Callable[[RecordedRequest], Reply]:
    """Return a script that knows no answer to simple questions."""
    return lambda request: say('{"command": "", "before": ""}') if simply_asked(request) else script(request)


def request_draft(request: RecordedRequest) -> str:
    """Return the path of the draft in the first message."""
    return json.dumps(request.messages[0]).split("The file ")[1].split(" lists")[0]


async def test_model_is_told_what_is_wrong_with_its_draft(tmp_path: Path) -> None:
    with serving(knowing_nothing(with_a_mistake)) as server:
        place = Place(tmp_path, server)
        claims = await place.prepare()

    assert [claim.id for claim in claims.claim] == ["trimmed", "bootstrap", "guess"]
    assert any("x: the paper has no such claim" in line for line in place.said)
    assert len(place.state.work["prepare"].prompts) == 2


OPTIONS = [{"label": "a", "description": "first"}, {"label": "b", "description": "second"}]
QUESTION = {"question": "Which split?", "header": "Split", "options": OPTIONS}


async def test_question_stops_and_the_answer_goes_on(tmp_path: Path) -> None:
    model = ScriptedModel(fill_means)

    def answer(request: RecordedRequest) -> Reply:
        if len(request.messages) == 1:
            return calls(ToolCall("AskUserQuestion", {"questions": [QUESTION]}))
        return say(f"Done with {'the first' if 'answered: a' in json.dumps(request.messages) else 'nothing'}.")

    with serving(knowing_nothing(answer)) as server:
        place = Place(tmp_path, server)
        with pytest.raises(AnswerNeededError, match="Which split") as asked:
            await place.prepare()
        with pytest.raises(AnswerNeededError):
            await place.prepare()
        requests = len(server.requests)
        await place.prepare(answer="a")

    assert f"panpan reproduce {place.folder.path} --answer TEXT" in str(asked.value)
    assert requests == 1
    assert place.state.work["prepare"].text == "Done with the first."
    assert not model.prompts


async def test_session_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    model = ScriptedModel(fill_means)
    with serving(model) as server:
        place = Place(tmp_path, server)
        await place.prepare()
        work = place.state.work["prepare"]
        # as a kill leaves it: the session has the message, and nobody noted its end
        cut = work.model_copy(update={"has_ended": False, "text": ""})
        place.folder.write_state(place.state.model_copy(update={"work": {"prepare": cut}}))
        place.folder.claims_file.write_bytes(COMMENT + claims_text(CLAIMS).encode())
        await place.prepare()

    after = place.state.work["prepare"]
    assert after.session_id == work.session_id
    assert len(after.prompts) == 2
    assert after.prompts[1].startswith("This work was interrupted")
    assert place.claims.claim[0].command


@pytest.mark.parametrize("leaves", ["nothing", "claims of its own"])
async def test_model_adds_claims_only_where_there_are_none(tmp_path: Path, leaves: str) -> None:
    own = Claim(id="mine", value="1.0", command="true", confirmed=True, spread=9.0)

    def answer(request: RecordedRequest) -> Reply:
        asked = sum(message["role"] == "assistant" for message in request.messages)
        steps: Sequence[Reply] = (
            call("Read", {"file_path": request_draft(request)}),
            call("Write", {"file_path": request_draft(request), "content": claims_text(Claims(claim=(own,)))}),
        )
        return steps[asked] if asked < 2 else say("Done.")

    with serving(knowing_nothing(answer)) as server:
        place = Place(tmp_path, server)
        if leaves == "nothing":
            place.folder.claims_file.write_bytes(COMMENT)
        claims = await place.prepare()

    if leaves == "nothing":
        assert [claim.id for claim in claims.claim] == ["mine"]
        assert not claims.claim[0].confirmed
    else:
        assert [claim.id for claim in claims.claim] == [claim.id for claim in CLAIMS.claim]


async def test_checksum_counts_only_if_it_is_stated(tmp_path: Path) -> None:
    stated, invented = "a" * 64, "b" * 64
    data = (Data(path="one.csv", sha256=stated), Data(path="two.csv", sha256=invented))
    with serving(ScriptedModel(fill_means, data)) as server:
        place = Place(tmp_path, server)
        (tmp_path / "robust-means" / "CHECKSUMS").write_text(f"{stated.upper()}  one.csv\n")
        claims = await place.prepare()

    assert [(one.path, one.sha256) for one in claims.data] == [("one.csv", stated), ("two.csv", "")]
    assert any("two.csv: neither the paper nor the repository" in line for line in place.said)


async def test_missing_model_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with serving([]) as server:
        place = Place(tmp_path, server)
        del place.env["ANTHROPIC_API_KEY"], place.env["ANTHROPIC_BASE_URL"]
        with pytest.raises(ConfigError, match="--no-model"):
            await place.prepare()


async def test_used_up_money_ends_with_its_own_code(tmp_path: Path) -> None:
    with serving(ScriptedModel(fill_means)) as server:
        place = Place(tmp_path, server)
        with pytest.raises(BudgetError, match="--max-usd"):
            await place.prepare(max_usd=1e-9)


async def test_provider_that_fails_is_tried_again_three_times(tmp_path: Path) -> None:
    pauses: list[float] = []

    async def no_sleep(seconds: float) -> None:
        pauses.append(seconds)

    with serving([HttpError(500)] * 4) as server:
        place = Place(tmp_path, server)
        place.write_settings("[retry]\nmax_tries = 1\n")
        with pytest.raises(PanpanError, match="after 4 failed runs"):
            await place.prepare(sleep=no_sleep)

    assert pauses == [5.0, 20.0, 60.0]


async def test_request_that_is_wrong_is_not_sent_again(tmp_path: Path) -> None:
    with serving([HttpError(400)]) as server:
        place = Place(tmp_path, server)
        with pytest.raises(PanpanError, match="did not come to an end"):
            await place.prepare()


SNEAKY = "open(chr(46) * 2 + '/claims' + '.toml', 'w').write('broken')"


async def test_model_changes_the_clone_and_nothing_else_of_the_folder(tmp_path: Path) -> None:
    def answer(request: RecordedRequest) -> Reply:
        folder = Path(request_draft(request)).parents[1]
        steps: Sequence[Reply] = (
            call("Write", {"file_path": str(folder / "source" / "fixed.py"), "content": "x = 1\n"}),
            call("Bash", {"command": f"echo 'x = 2' > fixed2.py; python3 -c \"{SNEAKY}\"", "description": "Fix"}),
            say("Fixed."),
        )
        return steps[sum(message["role"] == "assistant" for message in request.messages)]

    with serving(knowing_nothing(answer)) as server:
        place = Place(tmp_path, server)
        place.clone()
        before = place.folder.claims_file.read_bytes()
        await place.prepare()

    assert (place.folder.source / "fixed.py").read_text() == "x = 1\n"
    assert (place.folder.source / "fixed2.py").read_text() == "x = 2\n"
    assert place.folder.claims_file.read_bytes() == before


def that_edits_nothing(request: RecordedRequest) -> Reply:
    """Answer as a small model does: talk instead of editing, and know one command if it is asked for that alone."""
    asked = simply_asked(request)
    if not asked:
        return say("You could run experiment.py.")
    if asked == "trimmed mean":
        return say('{"command": "python3 experiment.py --seed 0", "before": "trimmed mean: 3.50"}')
    return say('{"command": "python3 experiment.py", "before": "trimmed mean"}')  # which is another row


async def test_small_model_is_asked_about_each_number_alone(tmp_path: Path) -> None:
    with serving(that_edits_nothing) as server:
        place = Place(tmp_path, server)
        claims = await place.prepare()
        requests = len(server.requests)
        again = await place.prepare()

    trimmed, bootstrap, _ = claims.claim
    assert (trimmed.command, trimmed.seed, trimmed.value) == ("python3 experiment.py --seed {seed}", 0, "3.50")
    assert trimmed.extract is not None
    assert re.search(trimmed.extract.output or "", "trimmed mean: 3.50\n")[1] == "3.50"  # type: ignore[index]
    assert bootstrap.command == ""
    assert (again, len(server.requests)) == (claims, requests)


@pytest.mark.parametrize(("model", "is_small"), [("local", True), (None, False)])
async def test_embedded_model_counts_as_small(tmp_path: Path, model: str | None, is_small: bool) -> None:
    with serving([]) as server:
        place = Place(tmp_path, server)
        runs = ModelRuns(place.folder, JourneyState(), ModelOptions(model=model), place.env, place.said.append)

        assert await runs.is_small() == is_small
