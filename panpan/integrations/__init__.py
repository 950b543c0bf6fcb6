"""Ways into panpan for evaluation harnesses: Inspect, Harbor and SWE-bench. Nothing else of panpan imports them."""
