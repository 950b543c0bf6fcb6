"""Start to `--version`, beside a Python that imports click and nothing else."""

from collections.abc import Iterator

from benchmarks.command import bench
from benchmarks.figure import Figure, ratio

TITLE = "start to --version"


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    ours, beside = [], []
    with bench() as place:
        place.panpan("--version")  # the first run compiles
        for _ in range(runs):
            beside.append(place.python("import click").wall_s * 1000)
            ours.append(place.panpan("--version").wall_s * 1000)
    version = Figure("panpan --version", "ms", ours)
    click = Figure('python -c "import click"', "ms", beside)
    yield from (version, click, ratio("the one as a multiple of the other", version, click, at_most=1.5))
