"""Numbers as people and programs write them, such as `1,234.5`, `83.1 %`, `1.2e-3` and `83.1 ± 0.3`.

The rule: what is not clearly one number is none. Values are decimals, so that the digits that were written count.
"""

import re
from collections.abc import Iterable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal

from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

EXACT = Context(prec=1_000, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""Context in which sums, differences and products of numbers that are read here are exact."""

_MAX_CHARS = 200
_MOST_BEFORE, _MOST_BEHIND = 250, 400
"""Most digits before and behind the point, about as many as numbers have that computers calculate with."""

_ALIKE = {
    **dict.fromkeys(map(ord, "\u2212\u2010\u2011\u2012\u2013\u2014\ufe63\uff0d"), "-"),
    **dict.fromkeys(map(ord, "\u00a0\u2007\u2009\u202f"), "\u2009"),
    ord("\u2019"): "'",
    ord("\uff05"): "%",
}
"""Characters that mean the same: signs, narrow blanks between groups of digits, and so on."""
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")

_NUMBER = compile_late(
    r"""
    (?P<sign> [+-] )?
    (?:
        (?P<grouped> [1-9][0-9]{0,2} (?P<mark> [,'_\u2009] ) [0-9]{3} (?: (?P=mark) [0-9]{3} )* )
        (?: \. (?P<rest> [0-9]* ) )?
      | (?P<dotted> [1-9][0-9]{0,2} (?: \. [0-9]{3} )+ ) , (?P<tail> [0-9]* )
      | (?P<plain> [0-9]+ (?: [.,] [0-9]* )? | [.,] [0-9]+ )
    )
    (?:
        [eE] (?P<exponent> [+-]? [0-9]{1,4} )
      | \s* [x\u00d7\u00b7*] \s* 10
        (?: (?: \^ | \*\* ) \{? (?P<power> [+-]? [0-9]{1,4} ) \}? | (?P<signed> [+-] [0-9]{1,4} ) )
    )?
    \s* %?
    (?: \s* (?: ± | \+/- | \+- ) .* | \s* \( .* \) )?
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """A number with the digits that were written."""

    value: Decimal

    @property
    def step(self) -> Decimal:
        """One unit of the last digit that was written: 0.01 of "3.50"."""
        return Decimal((0, (1,), _exponent(self.value)))

    @property
    def digits(self) -> str:
        """Significant digits without sign, point and leading zeros: 350 of "3.50"."""
        return "".join(map(str, self.value.as_tuple().digits)).lstrip("0")


def read_number(text: str) -> WrittenNumber | None:
    """Return the number that a text is; None if it is none, or not finite.

    A comma before three digits groups thousands, unless the number begins with 0. What follows as a spread, `± 0.3` or
    `(0.3)`, is left out, and so is a percent sign.
    """
    if len(text) > _MAX_CHARS:
        return None
    found = _NUMBER.fullmatch(_plain(text.strip()))
    if found is None:
        return None
    if found["grouped"]:
        digits = re.sub("[^0-9]", "", found["grouped"]) + f".{found['rest'] or ''}"
    elif found["dotted"]:
        digits = f"{found['dotted'].replace('.', '')}.{found['tail']}"
    else:
        digits = found["plain"].replace(",", ".")
    exponent = found["exponent"] or found["power"] or found["signed"] or "0"
    value = Decimal(f"{found['sign'] or ''}{digits}e{exponent}")
    if value.adjusted() > _MOST_BEFORE or _exponent(value) < -_MOST_BEHIND:
        return None
    return WrittenNumber(value)


def _plain(text: str) -> str:
    text = text.translate(_ALIKE)
    return re.sub(r"(?<=10)[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+", lambda raised: f"^{raised[0].translate(_RAISED)}", text)


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int), "only finite numbers are made here"
    return exponent


_MOST_ZEROS = 8
_MOST_MORE = 100
"""Most digits that are tried to tell numbers apart, many more than programs calculate with."""


def shown_number(value: Decimal, like: WrittenNumber, *, more: int = 2) -> str:
    """Return a measured number for readers.

    Args:
        value: The number.
        like: The claimed one.
        more: Most digits behind those of the claimed one.
    """
    step = _exponent(like.step)
    if (value and not -_MOST_ZEROS <= value.adjusted() <= _MOST_ZEROS) or step > 0:
        return f"{value:.{max(4 + more, 6)}g}"
    places = max(-step + more, 0)
    text = f"{value:.{places}f}"
    least = len(text) - places + max(-step, 0) if places else len(text)
    while len(text) > least and text.endswith("0"):
        text = text[:-1]
    return text.removesuffix(".")


def shown_apart(values: Iterable[Decimal], like: WrittenNumber, *, each: bool = False) -> Sequence[str]:
    """Return measured numbers for readers, each once, with as many digits as tell them from the claimed one.

    Args:
        values: The numbers, in any order.
        like: The claimed one.
        each: True if the digits must tell them from each other, too.
    """
    distinct, claimed, texts = sorted(set(values)), shown_number(like.value, like), list[str]()
    for more in range(2, _MOST_MORE):
        texts = [shown_number(value, like, more=more) for value in distinct]
        is_mixed = any(text == claimed and value != like.value for text, value in zip(texts, distinct, strict=True))
        if not is_mixed and (not each or len(set(texts)) == len(texts)):
            break
    return list(dict.fromkeys(texts))
