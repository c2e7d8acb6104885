"""The paper's experiments, from data to tables and figures, one module each.

Each module has `run(output, progress) -> str`: it writes its figures and tables to `output` and
returns the tables as text.
"""
