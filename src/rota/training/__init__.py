"""Real training: networks that grow while they train, and the recordings they leave."""
