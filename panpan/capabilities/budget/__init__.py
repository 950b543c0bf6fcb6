"""The notice to the model that the budget is nearly spent."""
