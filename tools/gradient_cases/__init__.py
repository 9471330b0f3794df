"""Cases of single operators and short chains; one file per family, see framework.py."""
