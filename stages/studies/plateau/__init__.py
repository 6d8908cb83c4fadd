"""Study: what decides how soon a run leaves the plateau, the operator or the spread of its first scores?"""
