"""Who may link whom: priors, fits, post-hoc blocks, decisions."""
