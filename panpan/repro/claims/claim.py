"""The claims of a paper as `claims.toml` has them, checked.

[paper]
title = "Robust means of toys"
source = "paper.pdf"

[environment]
kind = "uv"

[[data]]
path = "data/toys.csv"
sha256 = "…"

[[claim]]
id = "table-1/trimmed-mean"
table = "Table 1"
row = "trimmed mean"
column = "value"
value = "3.50"
tolerance = { absolute = 0.01 }
command = "python experiment.py --seed {seed}"
extract = { output = "trimmed mean: ([0-9.]+)" }
seed = 0
confirmed = true
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints

from panpan.batch.definition.campaign import Table, Text


class Paper(Table):
    """`[paper]`: the source of the numbers."""

    title: str = ""
    source: str = ""
    """A file beside claims.toml, or an address."""
    sha256: str = ""
    """SHA-256 of the file from which the claims were read; hex."""


class Environment(Table):
    """`[environment]`: the programs that commands find."""

    kind: Literal["none", "uv"] = "none"
    """uv: a Python environment of its own for each run, from the project's files; none: what is on the machine."""
    python: Text | None = None
    """Version of Python for uv."""
    setup: Text | None = None
    """A line for `/bin/sh` with which each run begins, in its own copy of the files and with the network."""
    setup_timeout_s: float = Field(default=1_800.0, gt=0, le=86_400)


class Data(Table):
    """`[[data]]`: a file or folder that commands read and that is no part of the repository."""

    path: Text
    """Relative to the repository."""
    sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """Checksum that the paper or its repository states for a file; empty if it states none."""
    url: str = ""
    version: str = ""
    licence: str = ""


class Needs(Table):
    """Things that a run needs. Where they are missing, the claim is not run, and that is said."""

    gpus: int = Field(default=0, ge=0, le=64)
    memory_gb: float = Field(default=0.0, ge=0)
    disk_gb: float = Field(default=0.0, ge=0)
    hours: float = Field(default=0.0, ge=0)
    """Estimate of the time of one run. Runs of more than an hour begin only if the user allows that much."""
    programs: tuple[Text, ...] = Field(default=(), strict=False)
    """Programs on PATH."""
    files: tuple[Text, ...] = Field(default=(), strict=False)
    """Files relative to the repository, such as data that must be asked for."""
    network: bool = False
    """True if the command itself reads from the network."""


class Tolerance(Table):
    """Distance that a number may have; at most one of the fields. With none: half a unit of the last written digit."""

    absolute: float | None = Field(default=None, ge=0)
    """In the unit of the claim."""
    relative: float | None = Field(default=None, ge=0)
    """Part of the claimed value, such as 0.01."""
    runs: int | None = Field(default=None, ge=2, le=1_000)
    """The claimed value has to lie in the interval that so many runs with different seeds give."""
    exact: bool = False
    """The same digits."""


def _as_tolerance(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f"is a number; write {{ absolute = {value} }} or {{ relative = {value} }}")
    return {"exact": True} if value == "exact" else value


Pattern = Annotated[str, StringConstraints(min_length=1)]
"""Not stripped: blanks at its ends count."""


class Extract(Table):
    """Place of the number after a run; exactly one of `output`, `json`, `csv`, `file`."""

    model_config = ConfigDict(serialize_by_alias=True)  # or a check that was written could not be read

    output: Pattern | None = None
    """Pattern (`re` syntax) with one group for the number, in what the command printed; the last match counts."""
    json_file: Text | None = Field(default=None, alias="json")
    """JSON file, relative to the folder of the run."""
    at: Text | None = None
    """Place in the JSON: keys and indexes with dots, such as `test.accuracy` or `folds.0.f1`."""
    csv: Text | None = None
    """CSV file with a head."""
    where: Mapping[str, str] = Field(default_factory=dict)
    """Values of columns that choose the row."""
    column: Text | None = None
    file: Text | None = None
    """Text file."""
    match: Pattern | None = None
    """Pattern with one group for the number in that file; the last match counts."""
    scale: float = 1.0
    """Factor from the number that is found to the unit of the claim, such as 100 for percent."""

    @property
    def kind(self) -> Literal["json", "csv", "text"]:
        """Kind of place: a JSON or CSV file, or a text in which a pattern is looked for."""
        return "json" if self.json_file is not None else "csv" if self.csv is not None else "text"

    @property
    def path(self) -> str:
        """File that it reads, relative to the folder of the run; empty for what the command printed."""
        return self.json_file or self.csv or self.file or ""


def _as_text(value: Any) -> Any:
    return value if isinstance(value, str) else repr(value) if type(value) in (int, float) else value


class Claim(Table):
    """`[[claim]]`: one number of the paper."""

    id: Text = Field(max_length=200)
    table: str = ""
    """Such as "Table 1"."""
    row: str = ""
    column: str = ""
    value: Annotated[str, BeforeValidator(_as_text)] = ""
    """As it is written, so that its digits count; empty or words where the paper gives no number."""
    unit: str = ""
    spread: float | None = Field(default=None, ge=0)
    """The spread that the paper gives, such as 0.3 of "83.1 ± 0.3"."""
    tolerance: Annotated[Tolerance, BeforeValidator(_as_tolerance)] = Tolerance.model_construct()
    command: str = ""
    """A line for `/bin/sh`, run at the top of the repository; `{seed}` is the seed."""
    timeout_s: float = Field(default=3_600.0, gt=0, le=86_400 * 7)
    extract: Extract | None = None
    seed: int | None = None
    """The seed that the paper or its repository names."""
    seeds: tuple[int, ...] = Field(default=(), strict=False)
    """Seeds for several runs; 0, 1, 2 and so on if none are given."""
    needs: Needs = Needs.model_construct()
    not_reproducible: str = ""
    """Reason that nobody can run it, such as data that was withdrawn; written by a person."""
    quote: str = ""
    """The line of the paper that was read."""
    page: int | None = None
    confirmed: bool = False
    """True once a person has said that the paper says so, and that the command is the right one."""

    @property
    def takes_seed(self) -> bool:
        """True if its command takes a seed."""
        return "{seed}" in self.command


class Claims(Table):
    """A whole `claims.toml`."""

    version: Literal[1] = 1
    paper: Paper = Paper.model_construct()
    environment: Environment = Environment.model_construct()
    data: tuple[Data, ...] = Field(default=(), strict=False)
    claim: tuple[Claim, ...] = Field(default=(), strict=False)


Verdict: TypeAlias = Literal["reproduced", "within spread", "deviates", "not run", "not reproducible"]
