"""How good a model is: k samples a problem through the race's own sandbox and strict scorer."""
