"""Docker and bubblewrap behind one interface."""
