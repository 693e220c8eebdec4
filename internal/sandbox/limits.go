package sandbox

import "time"

// Limits bound what one command may use. A zero field means the default.
type Limits struct {
	Memory    int64         `json:"memory"`     // bytes of all processes of a command together; default 4 GiB
	Processes int           `json:"processes"`  // processes of a command at one time; default 512
	FileSize  int64         `json:"file_size"`  // bytes of one file that a command writes; default 1 GiB
	Disk      int64         `json:"disk"`       // bytes of worktree and private folders together; default 4 GiB
	OpenFiles int           `json:"open_files"` // descriptors of one process; default 8192
	CPU       time.Duration `json:"cpu"`        // processor time of all processes of a command together; default 1 h
	Output    int64         `json:"output"`     // bytes a command may print; default 128 MiB
}
