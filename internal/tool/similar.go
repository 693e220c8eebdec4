package tool

// A profile counts the pairs of neighbouring bytes of a text: two texts are alike as far as they share pairs.
type profile struct {
	pairs map[[2]byte]int
	total int
}

// profileLimit bounds what of a text is compared, in bytes.
const profileLimit = 200

func grams(s string) profile {
	s = s[:min(len(s), profileLimit)]
	p := profile{pairs: make(map[[2]byte]int, len(s))}
	for i := 0; i+1 < len(s); i++ {
		p.pairs[[2]byte{s[i], s[i+1]}]++
		p.total++
	}
	return p
}

// like is the share of pairs that both texts have (Dice's coefficient), from 0 to 1; linear in s.
func (p profile) like(s string) float64 {
	s = s[:min(len(s), profileLimit)]
	if len(s) < 2 || p.total == 0 {
		return 0
	}
	other := len(s) - 1
	if min(other, p.total)*3 < max(other, p.total) { // cannot reach a half
		return 0
	}
	used := make(map[[2]byte]int, 16)
	common := 0
	for i := 0; i+1 < len(s); i++ {
		pair := [2]byte{s[i], s[i+1]}
		if have := p.pairs[pair]; have > 0 && used[pair] < have {
			used[pair]++
			common++
		}
	}
	return 2 * float64(common) / float64(other+p.total)
}
