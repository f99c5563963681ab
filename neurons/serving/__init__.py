"""The process that serves an arena: API, calendar, or both."""
