"""Checks of `panpan doctor`: the embedded model."""

from collections.abc import Iterable

from panpan.capabilities.local_model.server import MODEL_NAME
from panpan.capabilities.local_model.weight_store import embedded_store, require_machine
from panpan.cli_kit.doctor import SMALL_MODEL, Check, FeatureChecks, Machine, Status
from panpan.errors import ConfigError


def check_small_model(machine: Machine) -> Iterable[Check]:
    """Yield the state of the model; the hash of its weights is compared when it is used."""
    if machine.loaded is None:
        return
    try:
        store = embedded_store(machine.env)
        store.require_ready()
        require_machine()
    except ConfigError as exc:
        status: Status = "broken" if machine.model_kind == "local" else "optional"
        yield Check(SMALL_MODEL, status, "cannot be used", str(exc))
    else:
        yield Check(SMALL_MODEL, "ok", f"{store.path}; use --model {MODEL_NAME}")


CHECKS: FeatureChecks = {"model": check_small_model}
