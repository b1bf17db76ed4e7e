"""Troubleshooting of TLS certificates as a graph: six checks in parallel, a verdict, an approved remediation."""
