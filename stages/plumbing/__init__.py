"""What every stage runs on and no result depends on: settings, observations, jobs, files."""
