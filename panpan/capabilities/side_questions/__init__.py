"""Side questions: `/btw` asks the model one thing, and neither question nor answer enters the conversation."""
