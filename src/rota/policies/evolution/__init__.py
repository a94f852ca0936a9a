"""What becomes of a trial that reported?"""
