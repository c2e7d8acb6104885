"""What people judged: verdicts and labels."""
