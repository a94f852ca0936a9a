"""Evolution: the review of trials after their reports."""
