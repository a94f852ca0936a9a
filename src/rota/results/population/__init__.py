"""What came of a population: its files, and its figures of merit."""
