"""A toy paper for checks: a repository with an experiment, and claims about its numbers."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from panpan.repro.checking.check import CheckOptions, check
from panpan.repro.checking.results import CheckReport, Judgement
from panpan.repro.claims.claim import Claim, Claims, Data, Environment
from panpan.repro.claims.claims_file import claims_text
from panpan.repro.claims.confirmations import Confirmations
from tests.fakes.campaign import git, make_repository

EXPERIMENT = """
import json, sys
seed = int(sys.argv[1])
data = open("data/toys.csv").read().split() if "--data" in sys.argv else ["2"]
print("mean:", sum(map(float, data)) / len(data) + seed / 10)
with open("metrics.json", "w") as file:
    json.dump({"accuracy": 0.5 + seed / 100}, file)
"""
MEAN = {"output": "mean: ([0-9.]+)"}
ACCURACY = {"json": "metrics.json", "at": "accuracy"}


def claim(id_: str, value: str, **fields: Any) -> Claim:
    given = {"command": "python3 experiment.py {seed}", "extract": MEAN, "confirmed": True, **fields}
    return Claim.model_validate({"id": id_, "value": value, **given})


class CheckedPaper:
    """A repository that holds claims.toml.

    Args:
        folder: An empty folder.
        files: Files beside the experiment.
        is_repository: False if it has no git.
    """

    def __init__(self, folder: Path, files: Mapping[str, str] | None = None, *, is_repository: bool = True) -> None:
        self.folder = folder.resolve() / "paper"
        every = {"experiment.py": EXPERIMENT, ".gitignore": "data/\n", **(files or {})}
        if is_repository:
            make_repository(self.folder, every)
        else:
            for name, text in every.items():
                self.put(name, text)
        self.env = {"PATH": os.environ["PATH"], "PANPAN_HOME": str(folder.resolve() / "home")}
        self.told: list[str] = []

    def put(self, name: str, text: str) -> None:
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def claim(
        self, *claims: Claim, data: Sequence[Mapping[str, Any]] = (), environment: Mapping[str, Any] | None = None
    ) -> None:
        """Write claims.toml."""
        made = Claims(
            claim=claims,
            data=tuple(Data.model_validate(one) for one in data),
            environment=Environment.model_validate(environment or {}),
        )
        self.put("claims.toml", claims_text(made))
        self.confirm(*(one for one in claims if one.confirmed))

    def confirm(self, *claims: Claim) -> None:
        """Keep that the user has confirmed claims."""
        Confirmations(self.folder, Path(self.env["PANPAN_HOME"])).keep(claims)

    async def check(self, **options: Any) -> CheckReport:
        return await check(self.folder, CheckOptions(**{"env": self.env, **options}), notify=self.told.append)

    async def judged(self, *claims: Claim, **options: Any) -> Judgement:
        """Check claims, and return the judgement of the first."""
        self.claim(*claims)
        return (await self.check(**options)).judgements[0]

    @property
    def results(self) -> Path:
        return self.folder / "repro-results"

    @property
    def begun(self) -> int:
        """Runs that have begun so far, in all campaigns."""
        return sum(1 for _ in self.results.glob("campaign/*/*/state/*/attempt-*/attempt.json"))

    def status(self) -> str:
        """Return all that git tells of the repository."""
        return "\n".join(
            git(self.folder, *words) for words in (("status", "--short", "--ignored"), ("worktree", "list"))
        )
