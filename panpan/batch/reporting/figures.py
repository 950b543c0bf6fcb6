"""Figures of a campaign's results: pass rates with their intervals, and totals.

The rule: a rate is of attempts that the verify command judged. Errors and cancelled attempts say nothing about the
model, so they are counted beside it.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from statistics import quantiles

from panpan.batch.store.records import Result, Spent, Task
from panpan.batch.store.wording import value_text
from panpan.types.dataclass import dataclass

_Z = 1.959964
"""Quantile of the normal distribution for an interval of 95 %."""

LETTERS: Mapping[str, str] = {"passed": "P", "failed": "F", "done": "D", "error": "E", "cancelled": "C"}
"""Letter of each status in the reports."""
WAITING, MISSING = "W", "·"
"""Letters of attempts that wait for a person, and that have no result yet."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Attempts that passed, of those that were judged."""

    passed: int
    judged: int

    @property
    def share(self) -> float:
        """Share that passed; 0 if none was judged."""
        return self.passed / self.judged if self.judged else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of 95 %; 0 to 1 if none was judged."""
        n = self.judged
        if not n:
            return 0.0, 1.0
        shrunk = 1 + _Z**2 / n
        middle = (self.share + _Z**2 / (2 * n)) / shrunk
        half = _Z / shrunk * sqrt(self.share * (1 - self.share) / n + _Z**2 / (4 * n**2))
        return max(0.0, middle - half), min(1.0, middle + half)

    @property
    def words(self) -> str:
        """The rate for readers, such as `3 of 8, 38 % (14-69 %)`."""
        if not self.judged:
            return "not judged"
        low, high = (100 * end for end in self.interval)
        return f"{self.passed} of {self.judged}, {100 * self.share:.0f} % ({low:.0f}-{high:.0f} %)"


def rate_of(results: Iterable[Result]) -> Rate:
    """Return the pass rate of results."""
    judged = [result.status == "passed" for result in results if result.status in ("passed", "failed")]
    return Rate(sum(judged), len(judged))


def rates_by_axis(results: Sequence[Result]) -> Mapping[str, Mapping[str, Rate]]:
    """Return the pass rate for each value of each axis, in the order in which they come; and of the tasks as `task`."""
    groups: dict[str, dict[str, list[Result]]] = {}
    for result in results:
        for axis, value in (("task", result.task), *((name, value_text(one)) for name, one in result.axes.items())):
            groups.setdefault(axis, {}).setdefault(value, []).append(result)
    rates = {axis: {value: rate_of(found) for value, found in values.items()} for axis, values in groups.items()}
    return {axis: values for axis, values in rates.items() if any(rate.judged for rate in values.values())}


def total_spent(results: Iterable[Result]) -> Spent:
    """Return what the results took together."""
    return sum((result.spent for result in results), Spent())


@dataclass(frozen=True, slots=True)
class Spread:
    """Distribution of a figure over attempts."""

    values: Sequence[float]
    """Sorted."""

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """Lower quartile, median and upper quartile."""
        if len(self.values) == 1:
            return self.values[0], self.values[0], self.values[0]
        low, middle, high = quantiles(self.values, n=4, method="inclusive")
        return low, middle, high

    def bins(self, count: int) -> Sequence[tuple[float, float, int]]:
        """Return begin, end and number of values of bins of the same width; one bin if all values are the same."""
        low, high = self.values[0], self.values[-1]
        if low == high:
            return [(low, high, len(self.values))]
        width = (high - low) / count
        counts = [0] * count
        for value in self.values:
            counts[min(int((value - low) / width), count - 1)] += 1
        return [(low + width * at, low + width * (at + 1), number) for at, number in enumerate(counts)]


def spread_of(values: Iterable[float | None]) -> Spread | None:
    """Return the distribution of the values that are known; None if there are none."""
    known = sorted(value for value in values if value is not None)
    return Spread(known) if known else None


def results_by_task(results: Iterable[Result]) -> Mapping[str, Mapping[int, Result]]:
    """Return the results by the id of their task and the number of the attempt."""
    found: dict[str, dict[int, Result]] = {}
    for result in results:
        found.setdefault(result.task_id, {})[result.attempt] = result
    return found


def axes_of(tasks: Iterable[Task]) -> Sequence[str]:
    """Return the names of all axes, in the order in which they come."""
    return list(dict.fromkeys(name for task in tasks for name in task.axes))
