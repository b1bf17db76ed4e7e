"""A run as a report: one page to attach to a ticket, a summary in Markdown, JUnit XML for CI."""
