"""The one HTTP door of a sandbox, and the recorder."""
