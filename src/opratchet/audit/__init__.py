"""The audit of a run that was recorded: is everything in its folder what its ledger says, and can the ledger be right?"""
