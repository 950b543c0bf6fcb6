import json
import subprocess
import sys
from pathlib import Path

import pytest

from panpan.app import BUILTIN
from panpan.config.locations import Locations
from panpan.config.settings import Settings, Table, settings_type
from panpan.config.sources import load_settings
from panpan.errors import ConfigError

OWN = {kind.settings_model for kind in BUILTIN if issubclass(kind.settings_model, Table)}


def test_features_have_the_tables_that_are_found() -> None:
    found = {name: type(value) for name, value in settings_type()() if isinstance(value, Table) and type(value).table}

    assert found == {kind.table: kind for kind in OWN}


CLOSED = [kind for kind in OWN if kind.model_config.get("extra") == "forbid"]


@pytest.mark.parametrize("kind", sorted(CLOSED, key=lambda kind: kind.table))
def test_table_is_checked_where_it_was_written(kind: type[Table], tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(f"# first line\n[{kind.table}]\nno_such_key = 1\n")
    locations = Locations.find(tmp_path, {"PANPAN_HOME": str(tmp_path)})

    with pytest.raises(ConfigError, match=rf"settings\.toml:3: there is no setting {kind.table}\.no_such_key"):
        load_settings(tmp_path, {}, {}, locations)


def test_table_keeps_values_set_before_its_feature_was_known() -> None:
    for kind in OWN & {type(value) for _, value in Settings() if isinstance(value, Table)}:
        assert Settings()[kind] == kind()


def test_settings_are_read_without_the_features() -> None:
    code = "import sys, json; from panpan.config.sources import load_settings; print(json.dumps(sorted(sys.modules)))"
    code = code.replace("print", "from panpan.config.settings import settings_type; settings_type()(); print")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    features = [name for name in json.loads(done.stdout) if name.startswith("panpan.capabilities.")]
    assert {name.split(".")[-1] for name in features if name.count(".") > 2} == {"settings"}
