"""Texts as numbers that are the same on every machine."""

import numpy as np

from bayeslink.kernels import kernel


@kernel("u8[::1](i8[::1],u1[::1])")
def hash_texts(offsets, characters):
    """A 64-bit hash of each text (FNV-1a, then the finaliser of splitmix64)."""
    out = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(out)):
        x = np.uint64(0xCBF29CE484222325)
        for at in range(offsets[i], offsets[i + 1]):
            x = (x ^ np.uint64(characters[at])) * np.uint64(0x100000001B3)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        out[i] = x ^ (x >> np.uint64(31))
    return out
