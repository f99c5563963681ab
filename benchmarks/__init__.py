"""Figures, measured side by side in one run; README.md says how they are taken."""
