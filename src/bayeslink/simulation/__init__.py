"""Made-up people in two files, with the truth."""
