"""Tools outside the pipeline. No other package imports the tools."""
