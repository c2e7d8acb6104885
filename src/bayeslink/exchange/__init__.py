"""Other tools' pairs, settings and tables, read and written."""
