"""Made-up people in two files, or several times in one, with the truth."""
