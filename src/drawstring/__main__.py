"""`python -m drawstring`: the same as the command `drawstring`."""

from drawstring.cli import main

if __name__ == "__main__":
    main()
