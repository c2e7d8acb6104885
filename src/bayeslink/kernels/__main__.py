"""`python -m bayeslink.kernels`: compile now what a linkage needs, not on the first run."""

import sys

from bayeslink.kernels import prepare

prepare(lambda message: sys.stderr.write(f"bayeslink: {message}\n"), lambda message: None)
