"""`opratchet selftest integrity`: small kernels that cheat, and honest twins of them, taken through the real gates."""
