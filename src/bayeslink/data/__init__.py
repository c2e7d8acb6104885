"""Files and tables in: records, ids, text as it is."""
