"""ParallelRun's Python side: what runs inside a worker process."""

# The release of the agent that this package came with; docs/worker-protocol.md.
RELEASE = "0.1.0"
