"""The report's tables and figures, and its two forms: one HTML file, and LaTeX."""
