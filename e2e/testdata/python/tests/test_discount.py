import unittest

from pricing.discount import discounted


class DiscountTest(unittest.TestCase):
    def test_whole_cents(self):
        self.assertEqual(discounted(1000, 10), 900)

    def test_no_discount(self):
        self.assertEqual(discounted(1234, 0), 1234)


if __name__ == "__main__":
    unittest.main()
