package sandbox

import (
	"os"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

func TestGuardRefusesSignalsToTheExecutorAlone(t *testing.T) {
	t.Parallel()
	program, err := guard(41, 42)
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]bpf.RawInstruction, len(program))
	for i, f := range program {
		raw[i] = bpf.RawInstruction{Op: f.Code, Jt: f.Jt, Jf: f.Jf, K: f.K}
	}
	instructions, _ := bpf.Disassemble(raw)
	vm, err := bpf.NewVM(append(instructions, bpf.RetConstant{Val: 7}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		number, first uint32
		refused       bool
	}{
		{unix.SYS_KILL, 41, true},
		{unix.SYS_TGKILL, 41, true},
		{unix.SYS_TKILL, 42, true},
		{unix.SYS_TGKILL, 42, true},
		{unix.SYS_RT_SIGQUEUEINFO, 41, true},
		{unix.SYS_RT_TGSIGQUEUEINFO, 41, true},
		{unix.SYS_PIDFD_OPEN, 42, true},
		{unix.SYS_KILL, 43, false},
		{unix.SYS_KILL, ^uint32(0), false},
		{unix.SYS_GETPID, 41, false},
		{unix.SYS_READ, 42, false},
	} {
		data := make([]byte, 64) // struct seccomp_data, in the order of bytes that the library's machine reads
		for i := range 4 {
			data[i], data[16+i] = byte(c.number>>(24-8*i)), byte(c.first>>(24-8*i))
		}
		got, err := vm.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: unix.SECCOMP_RET_ERRNO | int(unix.EPERM), false: 7}[c.refused]; got != want {
			t.Errorf("call %d of %d: %#x, want %#x", c.number, c.first, got, want)
		}
	}
	if s := open(t); s.Report().Level != LevelOff {
		if r := run(t, s, Command{Script: "kill -0 $PPID; kill -0 $$ && echo self"}); r.Exit != 0 || os.Getpid() == 0 {
			t.Errorf("%+v %s", r, r.Output())
		}
	}
}
