"""The pytest plug-in: tests of prompts, rules and agents with a cassette for a model."""
