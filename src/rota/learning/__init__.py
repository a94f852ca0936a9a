"""Learn how networks should change while they train, from recordings or from training itself."""
