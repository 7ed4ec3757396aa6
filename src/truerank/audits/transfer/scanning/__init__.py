"""The scan: judged documents scored in every version, and where the scores fall apart."""
