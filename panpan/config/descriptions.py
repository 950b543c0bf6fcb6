"""Descriptions of settings: the strings below the fields of their models."""

import ast
import inspect
import textwrap
from collections.abc import Mapping
from functools import cache
from itertools import pairwise

from panpan.config.settings import Table


@cache
def descriptions(kind: type[Table]) -> Mapping[str, str]:
    """Return the string below each field of a model, on one line; inherited fields come first."""
    (class_,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(class_, ast.ClassDef)
    inherited = [descriptions(base) for base in kind.__bases__ if issubclass(base, Table)]
    return {name: text for one in inherited for name, text in one.items()} | {
        field.target.id: " ".join(below.value.value.split())
        for field, below in pairwise(class_.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    }
