"""What asks the user something and takes the keys meanwhile."""
