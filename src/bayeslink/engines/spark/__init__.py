"""The same engine with its work done on a Spark cluster: identical results, to the byte.

What is costly (level tables, counts of patterns, the search) is done in pieces, by whomever
(`threads.Workers`). Here pieces are tasks of Spark: the same code on the same arrays (`sending`),
given out by `cluster`. Records of Spark's own tables are read there, too (`frames`): what comes to
the driver is ids, distinct values, and a number for each cell.
"""
