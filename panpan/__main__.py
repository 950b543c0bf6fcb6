"""`python -m panpan` is `panpan`."""

from panpan.cli.start import main

if __name__ == "__main__":
    main()
