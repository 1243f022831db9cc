"""Strategies for PyPTO: each a knob of the catalogue in `opratchet.flow.pypto`, or a rewrite of it."""
