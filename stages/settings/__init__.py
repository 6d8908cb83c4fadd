"""The check of params.yaml before anything runs: stage `settings`."""
