"""opratchet: makes operators (compute kernels) faster and never lets one slip.

The rooms of the package, lowest first: `ledger`, `operator`, `edit`, `profile`, `backend`, `lab`, `judge`,
`propose`, `flow`, `engine`, `report`, `cli`. Heavy libraries load only where they are used, so importing
this package costs nothing.
"""

__version__ = "0.1.0"
