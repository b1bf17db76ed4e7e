"""What summaries save, what they lose, and what search and load bring back; see README.md here."""
