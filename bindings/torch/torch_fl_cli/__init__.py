"""The command `torch-fl`. A package of its own: it must answer when torch or the adapter do not import."""
