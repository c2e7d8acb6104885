"""Section 5.1, the Italian census: `python -m experiments.census`."""

from bayeslink.cli import main

if __name__ == "__main__":
    main(["reproduce", "census"])
