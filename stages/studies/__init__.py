"""Studies outside the chain: each answers one question by the chain's own stages; nothing imports them."""
