"""What the integration tests share: a workspace for one job, and the command run in it."""
