"""`python -m allotment.cli` is `allot`."""

from allotment.cli import main

if __name__ == "__main__":
    main()
