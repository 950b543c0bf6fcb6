"""Runs of a model at a step of a reproduction: one session of a headless panpan, over all its runs.

The rule: the session's id and each message are on the disk before panpan starts, and the session's log says which
messages the model has. So a kill at any moment leads to the same message again or to none.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from uuid import uuid4

import anyio
from anyio import to_thread

from panpan.batch.attempts.panpan_run import PANPAN, Again, Asked, Halted, NextStep, Over, judge, run_panpan
from panpan.batch.attempts.protection import protecting_flags
from panpan.batch.attempts.session_runs import GO_ON
from panpan.batch.faces.following import called_in
from panpan.batch.store.records import Needs
from panpan.batch.store.wording import shortened
from panpan.config.locations import Locations
from panpan.config.sources import load_settings
from panpan.errors import AnswerNeededError, BudgetError, ConfigError, PanpanError
from panpan.integrations.headless import headless_command, lines_of
from panpan.models.factory import resolve_from
from panpan.repro.journey.reproduction_folder import JourneyState, ModelWork, ReproductionFolder
from panpan.session.stored.finding import log_of_id
from panpan.session.stored.progress import SessionProgress, progress_of
from panpan.system.files.canonical import canonical_path
from panpan.types.dataclass import dataclass

MAX_FAILURES = 3
_PAUSES_S = (5.0, 20.0, 60.0)
_YES = ("y", "yes")
_MAX_HEAD_CHARS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """Choices of the user for the model."""

    model: str | None = None
    """As `--model` takes it; None: as in the settings."""
    max_usd: float | None = None
    """Most US dollars for all steps together; None for no limit."""
    answer: str | None = None
    """Answer to the question at which an earlier run stopped."""
    says_yes: bool = False
    """True if calls are allowed that would be asked about."""
    panpan: Sequence[str] = PANPAN
    """Command line that starts panpan."""
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep


class ModelRuns:
    """The sessions of a reproduction.

    Args:
        folder: The folder of the reproduction.
        state: The state as it is on the disk.
        options: Choices of the user.
        env: The environment of panpan.
        say: Gets a line for people.
    """

    def __init__(
        self,
        folder: ReproductionFolder,
        state: JourneyState,
        options: ModelOptions,
        env: Mapping[str, str],
        say: Callable[[str], None],
    ) -> None:
        self.state = state
        self._folder = folder
        self._options = options
        self._env = env
        self._say = say
        self._workspace = canonical_path(folder.source if folder.source.exists() else folder.path)

    def work(self, step: str, about: str) -> ModelWork | None:
        """Return the work at a step if it is about the same."""
        found = self.state.work.get(step)
        return found if found is not None and found.about == about else None

    async def is_small(self) -> bool:
        """True if the model is too small for work with many tools and long messages, as the embedded one is."""
        return await to_thread.run_sync(self._is_small)

    def _is_small(self) -> bool:
        from panpan.app import kinds_of  # imports every capability

        locations = Locations.find(self._workspace, self._env)
        overrides = {} if self._options.model is None else {"model": self._options.model}
        try:
            loaded = load_settings(self._workspace, self._env, overrides, locations)
            return resolve_from(loaded, self._env, kinds=kinds_of(loaded, locations)).profile.fits_window
        except PanpanError:  # a run will say it
            return False

    async def ask(self, step: str, about: str, message: str, flags: Sequence[str] = ()) -> str:
        """Bring a step's session to the answer to a message, and return the answer.

        A message that the session was sent before is not sent again.

        Args:
            step: The step.
            about: Digest of what it is about; another one begins another session.
            message: For the model.
            flags: Flags of panpan for this step.

        Raises:
            AnswerNeededError: The model, or a call of it, waits for the user.
            BudgetError: The money is used up.
            ConfigError: There is no model, or panpan cannot start.
            PanpanError: It failed.
        """
        work = self.work(step, about)
        if work is None:
            work = ModelWork(session_id=str(uuid4()), about=about)
        if message not in work.prompts:
            work = work.model_copy(update={"prompts": (*work.prompts, message), "has_ended": False})
        elif work.has_ended:
            return work.text
        work = await self._answered(work)
        await self._note(step, work)
        while True:
            ended = await self._run(step, work, flags)
            if ended.has_ended:
                return ended.text
            work = ended

    async def _answered(self, work: ModelWork) -> ModelWork:
        """Return the work with the user's answer to its question."""
        if work.needs is None:
            return work
        if (await self._progress(work)).prompts > len(work.prompts):  # the user answered in the session itself
            return work.model_copy(update={"needs": None})
        answer = self._options.answer
        if answer is None:
            raise _question(self._folder, work.needs)
        allowed = work.needs.allowed_with if answer.strip().lower() in _YES else ()
        prompts = (*work.prompts, f"You asked the user, who answered: {answer}\nGo on until the task is done.")
        return work.model_copy(update={"needs": None, "flags": (*work.flags, *allowed), "prompts": prompts})

    async def _run(self, step: str, work: ModelWork, flags: Sequence[str]) -> ModelWork:
        sent = (await self._progress(work)).prompts
        if sent >= len(work.prompts):
            by_hand = ("",) * (sent - len(work.prompts))
            work = await self._note(step, work.model_copy(update={"prompts": (*work.prompts, *by_hand, GO_ON)}))
        argv = headless_command(
            work.prompts[sent],
            command=self._options.panpan,
            model=self._options.model,
            session_id=work.session_id,
            flags=(*self._flags(step), *flags, *work.flags, *protecting_flags(self._folder.path)),
        )
        events = self._folder.path / f"{step}.jsonl"
        end = await run_panpan(
            argv, folder=self._workspace, env=self._env, events=events, timeout_s=None, hear=partial(self._tell, step)
        )
        if end.exit_code == ConfigError.exit_code and not (await self._progress(work)).prompts:
            raise ConfigError(f"{end.message}; or use --no-model, and complete {self._folder.claims_file} yourself")
        progress = await self._progress(work)
        model = await to_thread.run_sync(_model_of, events)
        work = work.model_copy(update={"usd": progress.spent.usd, "has_ended": False, "model": model or work.model})
        if progress.prompts < len(work.prompts) and end.exit_code == 0:
            return await self._note(step, work)  # the next message is still to be sent
        return await self._after(step, work, judge(end, stops_at_questions=True, knows_unfinished=True))

    def _tell(self, step: str, line: str) -> None:
        """Say each call of the model as it comes, since its work may take minutes."""
        for title in called_in(line):
            self._say(f"{step}: {shortened(title)}")

    def _flags(self, step: str) -> Sequence[str]:
        words = ["--permission-mode", "auto", "--when-asked", "stop", "--unfinished", "unclear"]
        others = [work.usd or 0.0 for name, work in self.state.work.items() if name != step]
        if self._options.max_usd is not None:
            left = self._options.max_usd - sum(others)
            if left <= 0:
                raise BudgetError(f"the {self._options.max_usd:g} dollars are used up; give more with --max-usd")
            words += ["--max-budget-usd", f"{left:.12f}".rstrip("0")]
        if self._options.says_yes:
            words += ["--yes"]
        return (*words, "--end-with-parent")

    async def _after(self, step: str, work: ModelWork, next_step: NextStep) -> ModelWork:
        """Write how a run ended, and return the work; raise if it cannot go on by itself."""
        match next_step:
            case Over(ended_by="answer", message=text):
                return await self._note(step, work.model_copy(update={"has_ended": True, "text": text}))
            case Over(ended_by="budget", message=message):
                await self._note(step, work)
                raise BudgetError(f"{message}; the same command with a larger --max-usd goes on")
            case Over(message=message):
                await self._note(step, work)
                raise PanpanError(f"the model did not come to an end at the step {step}: {message}")
            case Asked(needs=needs):
                await self._note(step, work.model_copy(update={"needs": needs}))
                raise _question(self._folder, needs)
            case Halted(message=message):
                await self._note(step, work)
                raise PanpanError(f"the step {step} was asked to end: {message}; the same command goes on")
            case Again(message=message, pause_s=pause_s):
                failures = work.failures + 1
                work = await self._note(step, work.model_copy(update={"failures": failures}))
                if failures > MAX_FAILURES:
                    again = work.model_copy(update={"failures": 0})
                    await self._note(step, again)
                    raise PanpanError(f"{message} (after {failures} failed runs); the same command tries again")
                self._say(f"{step}: {shortened(message)}; again")
                await self._options.sleep(max(_PAUSES_S[failures - 1], pause_s))
                return work

    async def _note(self, step: str, work: ModelWork) -> ModelWork:
        self.state = self.state.model_copy(update={"work": {**self.state.work, step: work}})
        await to_thread.run_sync(self._folder.write_state, self.state)
        return work

    async def _progress(self, work: ModelWork) -> SessionProgress:
        return await to_thread.run_sync(self._read_progress, work.session_id)

    def _read_progress(self, session_id: str) -> SessionProgress:
        return progress_of(log_of_id(Locations.find(self._workspace, self._env), session_id))


def _model_of(events: Path) -> str:
    """Return the model that the first run of a file of events names; empty if it names none."""
    try:
        with events.open(encoding="utf-8", errors="replace") as file:
            head = file.readline(_MAX_HEAD_CHARS)
    except OSError:
        return ""
    return next((str(line.get("model") or "") for line in lines_of(head) if line.get("subtype") == "init"), "")


def _question(folder: ReproductionFolder, needs: Needs) -> AnswerNeededError:
    said = "\n".join(filter(None, (needs.text, f"choices: {' | '.join(needs.choices)}" if needs.choices else "")))
    again = "yes" if needs.allowed_with else "TEXT"
    return AnswerNeededError(
        f"{said}\nanswer with: panpan reproduce {folder.path} --answer {again}",
        kind="permission" if needs.kind == "permission" else "question",
        question=needs.text,
        choices=needs.choices,
        allowed_with=needs.allowed_with,
    )
