"""Study: what each operator costs on English; study.py says how."""
