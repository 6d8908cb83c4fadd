"""Tables, figures, HTML and LaTeX: stage `report`."""
