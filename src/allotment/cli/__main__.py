"""`python -m allotment.cli` is `allot`, but that -m looks for modules in the current folder, before
anything here runs; `python -P -m` does not.
"""

from allotment.cli import main

if __name__ == "__main__":
    main()
