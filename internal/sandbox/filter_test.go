package sandbox

import (
	"encoding/binary"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// An arch is one of the two architectures with all of its calls.
type arch struct {
	name    string
	audit   uint32
	numbers map[string]uint32
}

// arches reads the numbers of all calls from the source of golang.org/x/sys, which is generated from the kernel's headers.
func arches(t testing.TB) []arch {
	t.Helper()
	dir, err := modulePath()
	if err != nil {
		t.Fatalf("looking for the source of golang.org/x/sys: %v", err)
	}
	line := regexp.MustCompile(`(?m)^\tSYS_(\w+)\s+= (\d+)$`)
	all := []arch{{name: "amd64", audit: unix.AUDIT_ARCH_X86_64}, {name: "arm64", audit: unix.AUDIT_ARCH_AARCH64}}
	for i := range all {
		source, err := os.ReadFile(filepath.Join(dir, "unix", "zsysnum_linux_"+all[i].name+".go"))
		if err != nil {
			t.Fatal(err)
		}
		all[i].numbers = map[string]uint32{}
		for _, m := range line.FindAllStringSubmatch(string(source), -1) {
			n, err := strconv.ParseUint(m[2], 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			all[i].numbers[strings.ToLower(m[1])] = uint32(n)
		}
		if len(all[i].numbers) < 300 {
			t.Fatalf("only %d calls found for %s", len(all[i].numbers), all[i].name)
		}
	}
	return all
}

var modulePath = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	return strings.TrimSpace(string(out)), err
})

// vm runs a filter as data.
type vm struct {
	t     testing.TB
	arch  arch
	inner *bpf.VM
}

func newVM(t testing.TB, a arch, o filterOptions) vm {
	t.Helper()
	program, err := filterCode(a.audit, o)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return vm{t, a, inner}
}

// answer is what the kernel would be told. The machine of x/net reads words in network order.
func (v vm) answer(auditArch, number uint32, args ...uint64) uint32 {
	v.t.Helper()
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offNumber:], number)
	binary.BigEndian.PutUint32(data[offArch:], auditArch)
	for i, arg := range args {
		binary.BigEndian.PutUint32(data[offArgs+8*i:], uint32(arg&0xffffffff))
		binary.BigEndian.PutUint32(data[offArgs+8*i+4:], uint32(arg>>32))
	}
	got, err := v.inner.Run(data)
	if err != nil {
		v.t.Fatal(err)
	}
	return uint32(got)
}

func (v vm) call(name string, args ...uint64) uint32 {
	v.t.Helper()
	number, ok := v.arch.numbers[name]
	if !ok {
		v.t.Fatalf("%s has no call %s", v.arch.name, name)
	}
	return v.answer(v.arch.audit, number, args...)
}

const (
	retAllow      = unix.SECCOMP_RET_ALLOW
	retKill       = unix.SECCOMP_RET_KILL_PROCESS
	retNotify     = unix.SECCOMP_RET_USER_NOTIF
	retPerm       = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	retNoSys      = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	retNoProtocol = unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)
	retNoType     = unix.SECCOMP_RET_ERRNO | uint32(unix.ESOCKTNOSUPPORT)
	retNoFamily   = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
)

func TestCallNumbers(t *testing.T) {
	t.Parallel()
	for _, a := range arches(t) {
		for name, c := range calls {
			number, there := a.numbers[name]
			want := absent
			if there {
				want = int(number)
			}
			got := c.amd64
			if a.name == "arm64" {
				got = c.arm64
			}
			if got != want {
				t.Errorf("%s has the number %d on %s in the table, and %d in x/sys", name, got, a.name, want)
			}
		}
		if a.numbers["file_setattr"] != lastCall {
			t.Errorf("the last call on %s is %d", a.name, a.numbers["file_setattr"])
		}
	}
	for name, c := range calls {
		if c.arm64 == absent && !slices.Contains([]string{"iopl", "ioperm"}, name) {
			t.Errorf("%s is said to be absent on arm64", name)
		}
	}
	ruled := slices.Sorted(maps.Keys(filterRules(filterOptions{Broker: true})))
	if named := slices.Sorted(maps.Keys(calls)); !slices.Equal(ruled, named) {
		t.Errorf("rules are about\n%v\nand numbers are there for\n%v", ruled, named)
	}
	fixed := slices.Sorted(slices.Values(slices.Concat(refusedCalls, missingCalls)))
	if once := slices.Compact(slices.Clone(fixed)); len(once) != len(fixed) {
		t.Errorf("a call stands twice in %v", fixed)
	}
}

// Every number is answered by the rule of its name or retAllow, whatever way the search takes.
func TestEveryNumber(t *testing.T) {
	t.Parallel()
	for _, a := range arches(t) {
		v := newVM(t, a, filterOptions{Broker: true})
		ruled := map[uint32]string{}
		for name := range calls {
			if n, ok := a.numbers[name]; ok {
				ruled[n] = name
			}
		}
		for n := range uint32(lastCall + 1) {
			name, has := ruled[n]
			got := v.answer(a.audit, n)
			switch {
			case !has && got != retAllow:
				t.Errorf("%s: call %d: %#x, no rule is about it", a.name, n, got)
			case slices.Contains(refusedCalls, name) && got != retPerm, slices.Contains(missingCalls, name) && got != retNoSys:
				t.Errorf("%s: %s: %#x", a.name, name, got)
			}
		}
		for _, n := range []uint32{lastCall + 1, lastCall + 2, 512, 547, 1000, 0xffff, x32Bit - 1} {
			if got := v.answer(a.audit, n); got != retNoSys {
				t.Errorf("%s: unknown call %d: %#x", a.name, n, got)
			}
		}
		high := map[string]uint32{"amd64": retKill, "arm64": retNoSys}[a.name]
		for _, n := range []uint32{x32Bit, x32Bit + 41, x32Bit + 520, 0x80000000, 0xffffffff} {
			if got := v.answer(a.audit, n); got != high {
				t.Errorf("%s: call %#x: %#x", a.name, n, got)
			}
		}
		for _, foreign := range []uint32{0, unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, unix.AUDIT_ARCH_ARMEB, a.audit ^ 1, ^a.audit} {
			if got := v.answer(foreign, 0); got != retKill {
				t.Errorf("%s: architecture %#x: %#x", a.name, foreign, got)
			}
		}
	}
	if _, err := filter(unix.AUDIT_ARCH_I386, filterOptions{}); err == nil {
		t.Error("a filter for i386")
	}
}

// A question is a call and the answer it must get.
type question struct {
	call string
	args []uint64
	want uint32
}

const dirt = 0xdeadbeef << 32 // in the upper half of an argument that the kernel cuts to an int

func TestAnswers(t *testing.T) {
	t.Parallel()
	minus := func(n int32) uint64 { return uint64(uint32(n)) }
	questions := []question{
		{"read", nil, retAllow},
		{"execve", nil, retAllow},
		{"fchmodat", nil, retAllow},
		{"kill", []uint64{minus(-1), 9}, retAllow}, // Landlock's matter
		{"landlock_create_ruleset", nil, retAllow},
		{"landlock_restrict_self", nil, retAllow},
		{"statmount", nil, retAllow},
		{"mseal", nil, retAllow},
		{"pidfd_open", nil, retAllow},
		{"bind", nil, retAllow},
		{"accept4", nil, retAllow},
		{"ptrace", []uint64{0}, retPerm},
		{"mount_setattr", nil, retPerm},
		{"open_tree_attr", nil, retPerm},
		{"clone3", nil, retNoSys},
		{"io_uring_setup", nil, retNoSys},
		{"listns", nil, retNoSys}, // newer than the list

		{"clone", []uint64{uint64(unix.SIGCHLD)}, retAllow},
		{"clone", []uint64{unix.CLONE_VM | unix.CLONE_VFORK | uint64(unix.SIGCHLD)}, retAllow},
		{"clone", []uint64{unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_SYSVSEM |
			unix.CLONE_SETTLS | unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_CLEARTID}, retAllow},
		{"clone", []uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, retPerm},
		{"clone", []uint64{dirt | unix.CLONE_NEWNS}, retPerm},

		{"personality", []uint64{0}, retAllow},
		{"personality", []uint64{0xffffffff}, retAllow},
		{"personality", []uint64{0x40000}, retAllow},
		{"personality", []uint64{0x400000}, retPerm}, // READ_IMPLIES_EXEC
		{"personality", []uint64{0x440000}, retPerm},

		{"ioctl", []uint64{0, unix.TCGETS}, retAllow},
		{"ioctl", []uint64{0, unix.TIOCSTI}, retPerm},
		{"ioctl", []uint64{0, dirt | unix.TIOCSTI}, retPerm},
		{"ioctl", []uint64{0, dirt | unix.TIOCLINUX}, retPerm},

		{"prctl", []uint64{unix.PR_SET_NAME}, retAllow},
		{"prctl", []uint64{unix.PR_SET_NO_NEW_PRIVS, 1}, retAllow},
		{"prctl", []uint64{unix.PR_SET_DUMPABLE, 1}, retAllow},
		{"prctl", []uint64{unix.PR_SET_DUMPABLE, 0}, retPerm},
		{"prctl", []uint64{dirt | unix.PR_SET_DUMPABLE, 0}, retPerm},
		{"prctl", []uint64{unix.PR_SET_MM, unix.PR_SET_MM_EXE_FILE}, retPerm},

		{"seccomp", []uint64{unix.SECCOMP_SET_MODE_STRICT, 0}, retAllow},
		{"seccomp", []uint64{unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC}, retAllow},
		{"seccomp", []uint64{unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER}, retPerm},
		{"seccomp", []uint64{dirt | unix.SECCOMP_SET_MODE_FILTER, dirt | unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_TSYNC}, retPerm},

		{"prlimit64", []uint64{0, unix.RLIMIT_CORE, 1 << 40, 0}, retAllow},
		{"prlimit64", []uint64{1234, unix.RLIMIT_CORE, 0, 1 << 40}, retAllow},
		{"prlimit64", []uint64{1234, unix.RLIMIT_CORE, 1 << 40, 0}, retPerm},
		{"prlimit64", []uint64{1234, unix.RLIMIT_CORE, 0x1000, 0}, retPerm},
		{"setpriority", []uint64{unix.PRIO_PROCESS, 0, 5}, retAllow},
		{"setpriority", []uint64{unix.PRIO_PGRP, 0, 5}, retAllow},
		{"setpriority", []uint64{unix.PRIO_PROCESS, 1234, 5}, retPerm},
		{"setpriority", []uint64{unix.PRIO_USER, 0, 5}, retPerm},
		{"ioprio_set", []uint64{1, 0, 0}, retAllow},
		{"ioprio_set", []uint64{2, 7, 0}, retPerm},
		{"ioprio_set", []uint64{dirt | ioprioUser, 0, 0}, retPerm},
		{"sched_setaffinity", []uint64{0}, retAllow},
		{"sched_setaffinity", []uint64{dirt}, retAllow},
		{"sched_setaffinity", []uint64{1234}, retPerm},
		{"sched_setscheduler", []uint64{1234}, retPerm},
		{"sched_setparam", []uint64{1234}, retPerm},
		{"sched_setattr", []uint64{1234}, retPerm},
		{"move_pages", []uint64{1234}, retPerm},

		{"socketpair", []uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0}, retAllow},
		{"socketpair", []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET, 0}, retAllow},
		{"socketpair", []uint64{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK, 0}, retPerm},
		{"socketpair", []uint64{unix.AF_UNIX, unix.SOCK_RAW, 0}, retPerm},
		{"socketpair", []uint64{unix.AF_TIPC, unix.SOCK_STREAM, 0}, retNoFamily},

		{"setsockopt", []uint64{3, unix.SOL_SOCKET, unix.SO_REUSEADDR}, retAllow},
		{"setsockopt", []uint64{3, unix.IPPROTO_TCP, unix.TCP_NODELAY}, retAllow},
		{"setsockopt", []uint64{3, unix.IPPROTO_TCP, unix.TCP_FASTOPEN}, retAllow}, // of a server
		{"setsockopt", []uint64{3, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT}, retPerm},
		{"setsockopt", []uint64{3, dirt | unix.IPPROTO_TCP, dirt | unix.TCP_ULP}, retPerm},
		{"setsockopt", []uint64{3, unix.IPPROTO_TCP, unix.TCP_REPAIR}, retPerm},
		{"setsockopt", []uint64{3, unix.IPPROTO_IP, unix.IP_TOS}, retAllow},
		{"setsockopt", []uint64{3, unix.IPPROTO_IP, unix.IP_OPTIONS}, retPerm},
		{"setsockopt", []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY}, retAllow},
		{"setsockopt", []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_RTHDR}, retPerm},
		{"setsockopt", []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_2292RTHDR}, retPerm},

		{"sendto", []uint64{3, 0, 0, unix.MSG_NOSIGNAL, 1 << 40, 16}, retAllow},
		{"sendto", []uint64{3, 0, 0, unix.MSG_FASTOPEN | unix.MSG_NOSIGNAL, 1 << 40, 16}, retPerm},
		{"sendto", []uint64{3, 0, 0, dirt | unix.MSG_FASTOPEN, 1 << 40, 16}, retPerm},
		{"sendmsg", []uint64{3, 1 << 40, unix.MSG_NOSIGNAL}, retAllow},
		{"sendmsg", []uint64{3, 1 << 40, unix.MSG_FASTOPEN}, retPerm},
		{"sendmmsg", []uint64{3, 1 << 40, 1, 0}, retAllow},
		{"sendmmsg", []uint64{3, 1 << 40, unix.MSG_FASTOPEN, 0}, retAllow}, // a count
		{"sendmmsg", []uint64{3, 1 << 40, 1, unix.MSG_FASTOPEN}, retPerm},
	}
	for _, a := range arches(t) {
		for _, o := range []filterOptions{{}, {Broker: true}, {Datagrams: true}, {Broker: true, Datagrams: true}} {
			v := newVM(t, a, o)
			for _, q := range questions {
				if got := v.call(q.call, q.args...); got != q.want {
					t.Errorf("%s %+v: %s(%#x) = %#x, want %#x", a.name, o, q.call, q.args, got, q.want)
				}
			}
			want := uint32(retAllow)
			if o.Broker {
				want = retNotify
			}
			if got := v.call("connect"); got != want {
				t.Errorf("%s %+v: connect: %#x", a.name, o, got)
			}
		}
	}
	for _, name := range []string{"fork", "vfork"} {
		if got := newVM(t, arches(t)[0], filterOptions{}).call(name); got != retAllow {
			t.Errorf("%s: %#x", name, got)
		}
	}
}
