"""API keys of a session: those of `panpan login`, and their redaction."""

from panpan.config.known_secrets import known_secrets
from panpan.config.locations import panpan_home
from panpan.config.stored_keys import StoredKeys
from panpan.session.command import Terminal
from panpan.session.models import SessionModels
from panpan.system.text.redact import Redactor


def stored_keys(terminal: Terminal) -> StoredKeys:
    """Return the stored keys of the session, else those of the panpan home."""
    models = terminal.session.find(SessionModels)
    if models is not None:
        return models.setup.loaded.keys
    return StoredKeys(panpan_home(terminal.env, terminal.session.info.cwd))


def session_redactor(terminal: Terminal) -> Redactor:
    """Return the redactor of all secrets of the session."""
    return Redactor(known_secrets(terminal.env, terminal.session.settings, stored_keys(terminal)))
