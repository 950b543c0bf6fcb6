"""Transcripts of other programs, and exports of panpan's own, as sessions that go on."""
