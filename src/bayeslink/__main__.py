"""`python -m bayeslink`: the command line, where its folder is not on the path."""

from bayeslink.cli import main

if __name__ == "__main__":
    main(prog_name="bayeslink")
