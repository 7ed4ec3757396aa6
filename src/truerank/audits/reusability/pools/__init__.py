"""Pools: which documents are judged, by depth or by what is found, and who judges what."""
