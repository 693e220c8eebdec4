package sandbox

type sharedFiles struct{}

func noteShared(bool) *sharedFiles { return nil }
func (*sharedFiles) remove()       {}

func (l Limits) withDefaults() Limits { return l }

func gitConfig(string, Owner) error { return nil }
