"""The browser: pages as they are once their scripts have run, with no way out but the filtering proxy."""
