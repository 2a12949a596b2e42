"""Passes over traced graphs."""
