"""The paper's experiments, from data to tables and figures, one module each.

`python -m experiments census` runs one from a clone; they are not part of the package. Each module
has `run(output, progress) -> str`: it writes figures to `output` and returns its tables as text.
"""
