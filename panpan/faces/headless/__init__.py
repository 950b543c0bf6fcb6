"""The face without a terminal: text, one JSON object, or a stream of JSON lines."""
