"""One command for each experiment of the paper; the code is in `bayeslink.reproduce`."""
