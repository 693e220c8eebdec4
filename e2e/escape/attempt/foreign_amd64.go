//nolint:gosec // bare system calls are what this program is for
package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// socketCode is socket(AF_INET, SOCK_STREAM, 0) through int 0x80, then exit(42) when it gave a descriptor, else exit(1). The
// instructions mean the same in 32-bit and 64-bit mode.
var socketCode = []byte{
	0xb8, 0x67, 0x01, 0x00, 0x00, // mov eax, 359
	0xbb, 0x02, 0x00, 0x00, 0x00, // mov ebx, 2
	0xb9, 0x01, 0x00, 0x00, 0x00, // mov ecx, 1
	0x31, 0xd2, // xor edx, edx
	0xcd, 0x80, // int 0x80
	0xbb, 0x2a, 0x00, 0x00, 0x00, // mov ebx, 42
	0x85, 0xc0, // test eax, eax
	0x79, 0x05, // jns +5
	0xbb, 0x01, 0x00, 0x00, 0x00, // mov ebx, 1
	0xb8, 0x01, 0x00, 0x00, 0x00, // mov eax, 1
	0xcd, 0x80, // int 0x80
}

var foreignPrograms = map[string][]byte{"i386": program32(socketCode), "int80": program64(socketCode)}

const (
	loadAt   = 0x08048000
	pageSize = 0x1000
)

func program32(code []byte) []byte {
	const headers = 52 + 32
	h := elf.Header32{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS32), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_386), Version: 1, Entry: loadAt + headers, Phoff: 52, Ehsize: 52, Phentsize: 32, Phnum: 1,
	}
	size := uint32(headers + len(code))
	p := elf.Prog32{Type: uint32(elf.PT_LOAD), Vaddr: loadAt, Paddr: loadAt, Filesz: size, Memsz: size, Flags: uint32(elf.PF_R | elf.PF_X), Align: pageSize}
	return image(h, p, code)
}

func program64(code []byte) []byte {
	const headers = 64 + 56
	h := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Entry: loadAt + headers, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	}
	size := uint64(headers + len(code))
	p := elf.Prog64{Type: uint32(elf.PT_LOAD), Vaddr: loadAt, Paddr: loadAt, Filesz: size, Memsz: size, Flags: uint32(elf.PF_R | elf.PF_X), Align: pageSize}
	return image(h, p, code)
}

func image(parts ...any) []byte {
	var b bytes.Buffer
	for _, part := range parts {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			panic(err) // fixed sizes
		}
	}
	return b.Bytes()
}

// foreignX32 opens a socket through the x32 table, which has the numbers of this one with one bit more.
func foreignX32([]string) verdict {
	const x32 = 0x40000000
	err := inFork(unix.SYS_SOCKET|x32, [3]uintptr{unix.AF_INET, unix.SOCK_STREAM, 0})
	switch {
	case err == nil:
		return escaped("got a socket by x32")
	case errors.Is(err, unix.ENOSYS):
		return untested("this kernel has no x32")
	}
	return refused("%v", err)
}
