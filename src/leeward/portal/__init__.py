"""The portal: researchers ask, custodians decide, the budget holds.

Pages and an interface for programs over `queries`, `release` and `verify`. It draws no noise and counts nothing: what
is charged, answered and kept is the ledger's, and whatever is done here can be repeated and audited on the command
line.
"""
