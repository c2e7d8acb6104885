"""m and u: patterns in, weights out."""
