"""Prices in cents."""


def discounted(price, percent):
    """Return the price after a discount of percent, the discount rounded half up."""
    return price - price * percent // 100
