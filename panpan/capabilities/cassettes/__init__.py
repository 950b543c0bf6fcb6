"""Conversations recorded with the model's stream, and played again. See docs/adr/0010.

`Recording` writes each record of the log, each request and reply at the provider, each answer of the user, and where
turns begin and end. Secrets are redacted in whole blocks before these are cut into pieces again. `Replay` replaces
the provider: it compares each request in its canonical form with the recorded one and plays the reply if they agree in
what the mode demands. If nothing may run it replaces the tools, too: the hooks see everything, but what they add
comes from the cassette. What the user did between turns is done again. A replay has a home of its own, so no setting
counts.

With real tools, the gate and the sandbox are those of any session. Questions are answered with yes if the call ran in
the recording, and never for protected places, paths outside, or what the user's rules keep: a file grants nothing.
"""
