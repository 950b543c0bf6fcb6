"""Tools that know what code means, by way of language servers."""
