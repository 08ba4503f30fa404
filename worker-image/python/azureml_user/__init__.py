"""The package that entry scripts know from Azure ML's runtime."""
