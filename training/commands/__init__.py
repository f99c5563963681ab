"""The commands of `arena train`, one module each. None imports torch before it runs."""
