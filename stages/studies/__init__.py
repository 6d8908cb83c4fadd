"""Studies beside the chain: each asks one question by the chain's own stages; nothing imports them."""
