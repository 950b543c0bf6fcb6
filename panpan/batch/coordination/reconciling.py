"""The attempts of a campaign as its folder has them: with a result, begun, waiting for a person, or still to do."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from panpan.batch.coordination.schedule import Attempt
from panpan.batch.store.folder import AttemptFolder, CampaignFolder
from panpan.batch.store.records import Key, Needs, Result, Task
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a campaign's attempts when a run begins."""

    results: Mapping[Key, Result]
    begun: Sequence[Attempt]
    """Without a result, and with a folder. Those that wait for a person are among them."""
    fresh: Sequence[Attempt]
    """Not begun, in the order in which they run: the first attempt of all tasks, then the second."""
    waiting: Mapping[Key, Needs]
    """Those of `begun` that wait for a person."""


@dataclass(frozen=True, slots=True)
class Asking:
    """An attempt that waits for a person."""

    task: Task
    attempt: int
    needs: Needs

    @property
    def label(self) -> str:
        """Name as it is typed."""
        return self.task.attempt_label(self.attempt)


def standing_of(folder: CampaignFolder, attempts: int) -> Standing:
    """Return the state of all attempts, after bringing the index of results up to date.

    Folders are listed, but only files of attempts without a line in the index are read.

    Args:
        folder: The campaign's folder; only the process that holds its lease may do this.
        attempts: Attempts at each task.

    Raises:
        ConfigError: A file is damaged.
        OutputError: The index cannot be written.
    """
    indexed = _indexed(folder)
    unlisted = [one for one in folder.attempts() if one.key not in indexed]
    found = indexed | _results_of(unlisted)
    if len(found) != len(indexed) or _lines(folder) != len(found):  # a line is lost, torn or there twice
        folder.rewrite_results(list(found.values()))
    left = {one.key: one for one in unlisted if one.key not in found}
    tasks = folder.tasks()
    every = [Attempt(task, number) for number in range(1, attempts + 1) for task in tasks]
    begun = [one for one in every if one.key in left]
    waits = [one.key for one in begun if left[one.key].is_waiting]
    waiting = {key: needs for key in waits if (needs := left[key].needs()) is not None}
    return Standing(
        results={one.key: found[one.key] for one in every if one.key in found},
        begun=begun,
        fresh=[one for one in every if one.key not in found and one.key not in left],
        waiting=waiting,
    )


def reopen_errors(folder: CampaignFolder) -> None:
    """Take back the results of attempts that ended with an error, so that they go on where they were.

    An attempt whose files were removed keeps its result. A kill in between leaves each result as it was, or taken back.

    Args:
        folder: The campaign's folder; only the process that holds its lease may do this.

    Raises:
        ConfigError: A file is damaged.
        OutputError: A file cannot be written.
    """
    results = known_results(folder)
    errors = [key for key, result in results.items() if result.status == "error" and _may_go_on(folder.attempt(*key))]
    if not errors:
        return
    for key in errors:
        attempt = folder.attempt(*key)
        if (state := attempt.state()) is not None:
            attempt.write_state(state.model_copy(update={"ended_by": None, "message": "", "failures": 0}))
    # before the results' own files: those that are left then come back into it
    folder.rewrite_results([result for key, result in results.items() if key not in errors])
    for key in errors:
        folder.attempt(*key).forget_result()


def _may_go_on(attempt: AttemptFolder) -> bool:
    state = attempt.state()
    return state is None or not state.base or attempt.workspace.is_dir()


def known_results(folder: CampaignFolder) -> Mapping[Key, Result]:
    """Return all results, also those that are not in the index yet. It writes nothing.

    Raises:
        ConfigError: A file is damaged.
    """
    indexed = _indexed(folder)
    return indexed | _results_of(one for one in folder.attempts() if one.key not in indexed)


def waiting_attempts(folder: CampaignFolder, tasks: Sequence[Task]) -> Iterator[Asking]:
    """Yield the attempts that wait for a person, in the order of the tasks.

    Raises:
        ConfigError: A file of an attempt is damaged.
    """
    begun: dict[str, list[AttemptFolder]] = {}
    for attempt in folder.attempts():
        if attempt.is_waiting:
            begun.setdefault(attempt.task_id, []).append(attempt)
    for task in tasks:
        for attempt in begun.get(task.id, ()):
            if (needs := attempt.needs()) is not None:
                yield Asking(task, attempt.number, needs)


def _results_of(attempts: Iterable[AttemptFolder]) -> dict[Key, Result]:
    return {result.key: result for one in attempts if (result := one.result()) is not None}


def _indexed(folder: CampaignFolder) -> dict[Key, Result]:
    found = dict[Key, Result]()
    for result in folder.results():
        found.setdefault(result.key, result)
    return found


def _lines(folder: CampaignFolder) -> int:
    try:
        return folder.results_file.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0
