package redact

// A net finds many words in one pass over the text (Aho and Corasick, "Efficient
// string matching", 1975): time is linear in the text whatever the number of
// words and however they overlap. Children hang in lists instead of tables of
// 256, since nearly every node has one child: a value of 8 KiB would otherwise
// cost megabytes. Only the root, where almost all time is spent, has a table.
type net struct {
	nodes []node // nodes[0] is the root
	root  [256]int32
	fold  [256]byte // what a byte of the text counts as
}

type node struct {
	child, sibling int32  // 0: none
	fail           int32  // the node of the longest proper suffix that is also in the net
	depth          int32  // bytes from the root
	length         int32  // of the longest word that ends here, 0: none
	kinds          uint32 // of all words that end here
	char           byte
}

// A word is something to look for. Its kinds are bits that mean something to
// the caller.
type word struct {
	text  string
	kinds uint32
}

// newNet builds a net. With fold, capitals A–Z count as small letters, and the
// words must be in small letters.
func newNet(fold bool, words []word) *net {
	n := &net{nodes: make([]node, 1)}
	for i := range n.fold {
		n.fold[i] = byte(i)
		if fold && 'A' <= i && i <= 'Z' {
			n.fold[i] += 'a' - 'A'
		}
	}
	for _, w := range words {
		n.insert(w)
	}
	n.link()
	return n
}

func (n *net) insert(w word) {
	at := int32(0)
	for i := range len(w.text) {
		next := n.childOf(at, w.text[i])
		if next == 0 {
			next = int32(len(n.nodes)) //nolint:gosec // a process's environment is far below 2 GiB
			n.nodes = append(n.nodes, node{
				sibling: n.nodes[at].child, depth: n.nodes[at].depth + 1, char: w.text[i],
			})
			n.nodes[at].child = next
			if at == 0 {
				n.root[w.text[i]] = next
			}
		}
		at = next
	}
	if at != 0 {
		n.nodes[at].length = n.nodes[at].depth
		n.nodes[at].kinds |= w.kinds
	}
}

// link sets the failure links, nearest to the root first.
func (n *net) link() {
	queue := make([]int32, 0, len(n.nodes))
	for k := n.nodes[0].child; k != 0; k = n.nodes[k].sibling {
		queue = append(queue, k)
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for k := n.nodes[at].child; k != 0; k = n.nodes[k].sibling {
			fail := n.step(n.nodes[at].fail, n.nodes[k].char)
			n.nodes[k].fail = fail
			n.nodes[k].kinds |= n.nodes[fail].kinds
			if n.nodes[k].length == 0 {
				n.nodes[k].length = n.nodes[fail].length
			}
			queue = append(queue, k)
		}
	}
}

func (n *net) childOf(at int32, c byte) int32 {
	k := n.nodes[at].child
	for k != 0 && n.nodes[k].char != c {
		k = n.nodes[k].sibling
	}
	return k
}

// step is the state after one more byte, already folded.
func (n *net) step(at int32, c byte) int32 {
	for at != 0 {
		if k := n.childOf(at, c); k != 0 {
			return k
		}
		at = n.nodes[at].fail
	}
	return n.root[c]
}

// empty reports whether there is nothing to look for.
func (n *net) empty() bool { return len(n.nodes) == 1 }

// scan calls hit for every place where a word ends, with the offset after its
// last byte.
func (n *net) scan(s string, hit func(end int, at *node)) {
	at := int32(0)
	for i := range len(s) {
		c := n.fold[s[i]]
		if at == 0 {
			at = n.root[c]
		} else {
			at = n.step(at, c)
		}
		if at != 0 && n.nodes[at].length > 0 {
			hit(i+1, &n.nodes[at])
		}
	}
}
