"""`graphagent check`: finds graphs, has them validated, and reports in the form that a reader or a CI wants."""
