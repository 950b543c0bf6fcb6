"""The pytest plug-in: a cassette in the place of a model, to test prompts, rules and agents."""
