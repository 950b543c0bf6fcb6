"""For those who test their prompts, rules and agents with pytest: cassettes in the place of a model."""
