"""What several stages use. Nothing here imports a stage."""
