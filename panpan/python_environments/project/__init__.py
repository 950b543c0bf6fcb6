"""What a project asks for of its environment, as its manifests say."""
