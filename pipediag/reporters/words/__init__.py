"""Names, quantities and sentences, the same in every report."""
