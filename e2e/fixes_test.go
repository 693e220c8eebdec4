package e2e

import "issuesmith/e2e/model"

// The three target repositories have one mistake each, which their own tests do not
// show. A repair changes the source and adds the test that was missing.

const (
	pythonTitle = "A discount of 15% on 999 is one cent too small"
	pythonBody  = "`discounted(999, 15)` returns 850. The discount is 149.85 cents, rounded half up 150, so 849 is right."

	pythonSource = `"""Prices in cents."""


def discounted(price, percent):
    """Return the price after a discount of percent, the discount rounded half up."""
    return price - (2 * price * percent + 100) // 200
`
	pythonTest = `import unittest

from pricing.discount import discounted


class DiscountTest(unittest.TestCase):
    def test_whole_cents(self):
        self.assertEqual(discounted(1000, 10), 900)

    def test_no_discount(self):
        self.assertEqual(discounted(1234, 0), 1234)

    def test_half_up(self):
        self.assertEqual(discounted(999, 15), 849)
        self.assertEqual(discounted(1001, 10), 901)


if __name__ == "__main__":
    unittest.main()
`
	nodeSource = `// slug turns a title into the last part of an address.
export function slug(title) {
  return title.toLowerCase().replaceAll(' ', '-')
}
`
	nodeTest = `import assert from 'node:assert/strict'
import { test } from 'node:test'

import { slug } from '../src/slug.js'

test('one blank becomes a dash', () => {
  assert.equal(slug('Hello world'), 'hello-world')
})

test('every blank becomes a dash', () => {
  assert.equal(slug('A b c'), 'a-b-c')
})
`
	goSource = `// Package window works on the last values of a series.
package window

// Last returns the last n values, or all when there are fewer.
func Last(values []int, n int) []int {
	if n > len(values) {
		return values
	}
	return values[len(values)-n:]
}
`
	goTest = `package window

import (
	"slices"
	"testing"
)

func TestFewer(t *testing.T) {
	if got := Last([]int{1, 2}, 5); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

func TestLast(t *testing.T) {
	if got := Last([]int{1, 2, 3}, 2); !slices.Equal(got, []int{2, 3}) {
		t.Errorf("got %v", got)
	}
}
`
)

const summary = "The discount is rounded half up now; a test holds it."

// look is the turn that reads what is going to be written.
func look() model.Turn { return model.Read("pricing/discount.py", "tests/test_discount.py") }

// first puts a turn before a conversation's others.
func first(t model.Turn, c model.Conversation) model.Conversation {
	c.Turns = append([]model.Turn{t}, c.Turns...)
	return c
}

// repaired is an attempt that solves the Python issue.
func repaired() model.Conversation {
	return model.Conversation{Turns: []model.Turn{
		look(),
		model.Write("pricing/discount.py", pythonSource),
		model.Write("tests/test_discount.py", pythonTest),
		model.Submit(summary),
	}}
}

// wrong is an attempt whose repair, one cent off always, its own test refutes: right for
// the example alone.
func wrong() model.Conversation {
	return model.Conversation{Turns: []model.Turn{
		look(),
		model.Edit("pricing/discount.py", "// 100", "// 100 - 1"),
		model.Write("tests/test_discount.py", pythonTest),
		model.Submit("Rounded the other way."),
	}}
}

// optional is a conversation that may happen or not.
func optional(c model.Conversation) model.Conversation {
	c.Cut = true
	return c
}

// before is an attempt that solves the issue and calls f when its n-th turn is asked for.
func before(n int, f func(), c model.Conversation) model.Conversation {
	c.Turns[n] = c.Turns[n].After(func(model.Request) { f() })
	return c
}
