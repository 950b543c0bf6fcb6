"""Questions of the model to the user."""
