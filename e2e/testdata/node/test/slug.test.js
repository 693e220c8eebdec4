import assert from 'node:assert/strict'
import { test } from 'node:test'

import { slug } from '../src/slug.js'

test('one blank becomes a dash', () => {
  assert.equal(slug('Hello world'), 'hello-world')
})
