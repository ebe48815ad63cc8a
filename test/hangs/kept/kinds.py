"""Kinds kept back from whoever works on the judge."""
KINDS = {}
