"""Section 5.2, the simulation study: `python -m experiments.simulation`."""

from bayeslink.cli import main

if __name__ == "__main__":
    main(["reproduce", "simulation"])
