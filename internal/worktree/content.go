package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"weak"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

const (
	// keepFile is the size in bytes up to which a changed file's content is kept; the
	// gate refuses files long before.
	keepFile = 8 << 20
	// hashFile is the size in bytes above which a file's content is not even hashed: a file with a hole in it costs
	// its maker nothing, and reading a terabyte of zeros would hold the run for an hour.
	hashFile = 1 << 30
	// keepChange bounds the contents of one change.
	keepChange = 64 << 20
)

// A content is what a file held when it was read. The tree knows contents by their hash
// for as long as a change or the first snapshot holds them.
type content struct{ bytes []byte }

// read hashes a file or link and keeps its bytes when they are at most limit. The
// state's kind says what it is; its size and link count become those of the opened file.
func (t *Tree) read(dir int, name string, s *state, limit int64) error {
	if s.kind == KindSymlink {
		target, err := readlinkAt(dir, name)
		if err != nil {
			return err
		}
		t.hold(s, target)
		return nil
	}
	file, st, err := openRegular(dir, name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	s.size, s.links = st.Size, uint64(st.Nlink) //nolint:unconvert // 32 bits on arm64
	if st.Size <= limit {
		data := make([]byte, st.Size)
		if _, err := io.ReadFull(file, data); err != nil {
			return changing(err)
		}
		if n, _ := file.Read(make([]byte, 1)); n != 0 {
			return changing(nil)
		}
		t.hold(s, data)
		return nil
	}
	if st.Size > hashFile {
		s.hash, s.data = unread(&st), nil
		return nil
	}
	hasher := plumbing.NewHasher(plumbing.BlobObject, st.Size)
	n, err := io.Copy(hasher, io.LimitReader(&interruptible{t.stop, file}, st.Size+1))
	if err != nil {
		return err
	}
	if n != st.Size {
		return changing(nil)
	}
	s.hash, s.data = hasher.Sum(), nil
	return nil
}

// unread stands for the hash of a file that is too large to be read. It is another one whenever the file was written.
func unread(st *unix.Stat_t) plumbing.Hash {
	return plumbing.ComputeHash(plumbing.AnyObject, fmt.Appendf(nil, "%+v", identityOf(st)))
}

// changing is the error of a file that is written while it is read: everything a
// command started should be dead by now.
func changing(err error) error {
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return err
	}
	return errors.New("is being written while it is read; a command has left a process behind")
}

// interruptible lets a long read end with its context.
type interruptible struct {
	ctx context.Context //nolint:containedctx // lives for one read
	r   io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	if i.ctx != nil && i.ctx.Err() != nil {
		return 0, i.ctx.Err()
	}
	return i.r.Read(p)
}

func (t *Tree) hold(s *state, data []byte) {
	s.size = int64(len(data))
	s.hash = plumbing.ComputeHash(plumbing.BlobObject, data)
	s.data = &content{data}
	t.heldMu.Lock()
	t.held[s.hash] = weak.Make(s.data)
	t.heldMu.Unlock()
}

// Content returns the bytes of a side (a link's target for links): of a new side while its
// Change is in use, of an old side from the base commit. A *TooLargeError when it is more
// than was kept.
func (t *Tree) Content(s Side) ([]byte, error) {
	switch {
	case s.Kind == KindSubmodule:
		return []byte("Subproject commit " + s.Hash + "\n"), nil // as git shows it
	case s.Hash == "":
		return nil, nil
	}
	hash := plumbing.NewHash(s.Hash)
	t.heldMu.Lock()
	kept, ok := t.held[hash]
	t.heldMu.Unlock()
	if ok {
		if c := kept.Value(); c != nil {
			return c.bytes, nil
		}
	}
	if s.Size > keepFile {
		return nil, &TooLargeError{Size: s.Size, Limit: keepFile}
	}
	data, err := t.repo.blob(hash, keepFile)
	if err != nil {
		return nil, fmt.Errorf("read the content %s: %w", s.Hash, err)
	}
	return data, nil
}

// wanted returns the bytes a path should have: from its state, or from the base commit.
func (t *Tree) wanted(path string, s *state) ([]byte, error) {
	if s.data != nil {
		return s.data.bytes, nil
	}
	if b := t.base.lookup(path); b != nil && b.hash == s.hash {
		return t.repo.blob(s.hash, maxRead)
	}
	return nil, &TooLargeError{Path: path, Size: s.size, Limit: keepFile}
}
