"""Tables, figures and the self-contained page that every audit reports with."""
