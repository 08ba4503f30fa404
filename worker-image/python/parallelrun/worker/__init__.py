"""The worker process: runs the user's entry script for one agent (docs/worker-protocol.md)."""
