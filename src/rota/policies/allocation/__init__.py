"""Which trials on this idle slot, for how many steps?"""
