"""A session's model in the likeness of a recorded one: as much of panpan, and as large a window."""

from dataclasses import replace

from panpan.capabilities.cassettes.recorded_steps import ModelChanged
from panpan.session.setup import Setup


def like(setup: Setup, model: ModelChanged) -> Setup:
    """Return a setup whose model is given what another one was given."""
    settings = setup.loaded.settings
    compaction = settings.compaction.model_copy(update={"window_tokens": model.window_tokens})
    loaded = replace(setup.loaded, settings=settings.model_copy(update={"compaction": compaction}))
    return with_profile(replace(setup, loaded=loaded), model.profile)


def with_profile(setup: Setup, name: str) -> Setup:
    """Return a setup whose model is given as much of panpan as the profile of this name says."""
    if setup.profile.name == name:
        return setup
    from panpan.capabilities.local_model.warm_up import embedded_profile

    profile = embedded_profile().model  # the one other that there is
    return replace(setup, model=replace(setup.model, profile=profile))
