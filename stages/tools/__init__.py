"""Tools outside the chain. Nothing imports them."""
