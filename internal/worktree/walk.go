package worktree

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// maxWorkers bounds the parallel walk: beyond this the kernel's locks cost more than
// another processor brings.
const maxWorkers = 8

func workers() int { return min(runtime.GOMAXPROCS(0), maxWorkers) }

// A walk visits folders of a worktree in parallel. A folder's visit may add its
// subfolders; each folder is visited by exactly one worker.
type walk struct {
	root  int // descriptor of the worktree
	visit func(w *worker, task task) error

	mu    sync.Mutex
	wake  sync.Cond
	tasks []task
	busy  int
	err   error
}

// A task is a folder to visit.
type task struct {
	folder *folder
	fresh  bool // the folder is not in the first snapshot
}

// A worker is one goroutine of a walk, with the scratch memory of its visits.
type worker struct {
	buf   []byte // of getdents
	seen  []bool // names of the folder being visited
	added []task
	found found
}

func (w *walk) run(ctx context.Context, first task) ([]*worker, error) {
	w.wake.L = &w.mu
	w.tasks = append(w.tasks, first)
	crew := make([]*worker, workers())
	stop := context.AfterFunc(ctx, func() { w.fail(ctx.Err()) })
	defer stop()
	var group sync.WaitGroup
	for i := range crew {
		crew[i] = &worker{buf: make([]byte, 1<<16)}
		group.Go(func() { w.work(crew[i]) })
	}
	group.Wait()
	return crew, w.err
}

func (w *walk) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.wake.Broadcast()
}

func (w *walk) work(me *worker) {
	for {
		w.mu.Lock()
		for len(w.tasks) == 0 && w.busy > 0 && w.err == nil {
			w.wake.Wait()
		}
		if len(w.tasks) == 0 || w.err != nil {
			w.wake.Broadcast()
			w.mu.Unlock()
			return
		}
		next := w.tasks[len(w.tasks)-1]
		w.tasks = w.tasks[:len(w.tasks)-1]
		w.busy++
		w.mu.Unlock()

		err := w.visit(me, next)
		if err != nil {
			w.fail(err)
		}
		w.mu.Lock()
		w.busy--
		w.tasks = append(w.tasks, me.added...)
		me.added = me.added[:0]
		if len(w.tasks) > 0 || w.busy == 0 {
			w.wake.Broadcast()
		}
		w.mu.Unlock()
	}
}

// marks returns n cleared marks.
func (w *worker) marks(n int) []bool {
	if cap(w.seen) < n {
		w.seen = make([]bool, n)
	}
	w.seen = w.seen[:n]
	clear(w.seen)
	return w.seen
}

// inFolder opens the task's folder around f.
func (w *walk) inFolder(path string, f func(dir int, st *unix.Stat_t) error) error {
	dir, st, err := openReadable(w.root, path)
	if err != nil {
		return pathError("look into the folder", path, err)
	}
	defer func() { _ = unix.Close(dir) }()
	return f(dir, &st)
}
