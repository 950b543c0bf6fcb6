"""The toy papers of `papers_with_faults`, and a model that prepares and explains their claims by script."""

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from panpan.repro.claims.claim import Claim, Claims, Data
from panpan.repro.claims.claims_file import claims_text, parse_claims
from tests.fakes.campaign import git
from tests.model_server import RecordedRequest, Reply, call, say

PAPERS = Path(__file__).with_name("papers_with_faults")
AUTUMN_OF_PAPER = "f105b96cd3b75b54b2cf990f8edf99970e90433224c4c828123d898b35cc8eb6"
SPRING = "7c8a4aff24a22c6c94c815ef0f7bacb5d666d6aab480e65da1e342350bd80313"
EXPLANATION = "I think that the code divides by all messages, and the paper by one less (votes.py, line 16)."
PREPARED = "I filled in the commands and the places of the numbers."

Fill = Callable[[Claim], Mapping[str, Any]]
"""Returns what a model adds to a claim, as TOML has it."""


def toy_repository(name: str, folder: Path) -> Path:
    """Copy the repository of a toy paper into a folder, and commit it."""
    target = folder / name
    shutil.copytree(PAPERS / name, target)
    git(target, "init", "-q", "-b", "main")
    git(target, "add", "--all")
    git(target, "commit", "-q", "-m", "first")
    return target


def fill_means(claim: Claim) -> Mapping[str, Any]:
    """Complete the claims of robust-means."""
    row = claim.row.lower()
    if "network" in row:
        return {
            "command": "python3 network.py",
            "extract": {"output": r"network: ([0-9.]+)"},
            "needs": {"gpus": 1},
        }
    name = "bootstrap mean" if "bootstrap" in row else "trimmed mean"
    seed = {"seed": 0} if "bootstrap" in row else {}
    return {"command": "python3 experiment.py --seed {seed}", "extract": {"output": rf"{name}: ([0-9.]+)"}, **seed}


def fill_votes(claim: Claim) -> Mapping[str, Any]:
    """Complete the claims of message-votes."""
    row = "majority" if "majority" in claim.row.lower() else "keyword"
    column = "accuracy" if "accuracy" in claim.column.lower() else "recall"
    extract = {"json": "results/metrics.json", "at": f"{row}.{column}", "scale": 100.0}
    return {"command": "python3 votes.py", "extract": extract}


def fill_levels(claim: Claim) -> Mapping[str, Any]:
    """Complete the claims of river-levels."""
    season = "spring" if "spring" in claim.row.lower() else "autumn"
    extract = {"csv": "levels.csv", "where": {"season": season}, "column": "mean"}
    return {"command": "python3 levels.py", "extract": extract}


class ScriptedModel:
    """Completes the draft of claims.toml, and explains what deviates.

    Args:
        fill: Completes a claim.
        data: Data that it adds.
        tamper: Changes the claims after that, as a model does that wants another result.
    """

    def __init__(
        self, fill: Fill, data: tuple[Data, ...] = (), tamper: Callable[[Claim], Claim] = lambda claim: claim
    ) -> None:
        self._fill = fill
        self._data = data
        self._tamper = tamper
        self.prompts: list[str] = []
        """First messages of its sessions."""

    def __call__(self, request: RecordedRequest) -> Reply:
        """Answer a request."""
        first = _text(request.messages[0])
        if len(request.messages) == 1:
            self.prompts.append(first)
        if "Explain each difference" in first:
            return say(EXPLANATION)
        (draft,) = {Path(found) for found in re.findall(r"The file (\S+) lists", first)}
        completed = self._completed(draft)
        if draft.read_text() == completed:
            return say(PREPARED)
        if "Read" in _calls_of_end(request):
            return call("Write", {"file_path": str(draft), "content": completed})
        return call("Read", {"file_path": str(draft)})

    def _completed(self, draft: Path) -> str:
        claims = parse_claims(draft.read_bytes())
        return claims_text(
            Claims(
                paper=claims.paper,
                data=(*claims.data, *(one for one in self._data if one not in claims.data)),
                claim=tuple(self._tamper(self._filled(claim)) for claim in claims.claim),
            )
        )

    def _filled(self, claim: Claim) -> Claim:
        if not re.search(r"\d", claim.value):
            return claim
        known = claim.model_dump(by_alias=True, exclude_defaults=True, mode="json")
        return Claim.model_validate({**known, **self._fill(claim)})


def _calls_of_end(request: RecordedRequest) -> list[str]:
    """Return the tools whose results are the end of a request."""
    if len(request.messages) < 2 or _text(request.messages[-1]):
        return []
    return [block.get("name", "") for block in request.messages[-2]["content"]]


def _text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)
