"""Section 5.3, the large example: `python -m experiments.large`."""

from bayeslink.cli import main

if __name__ == "__main__":
    main(["reproduce", "large"])
