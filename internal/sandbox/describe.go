package sandbox

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// describe puts together what was reached.
func (s *Sandbox) describe(e *executor, why string) Report {
	r := Report{Limits: s.order.Limits, Names: slices.Clone(s.names), Layers: namespaceLayers(e.order, why)}
	r.Layers = append(r.Layers, e.ready.Layers...)
	r.Layers = append(
		r.Layers,
		Layer{Name: layerLimits, State: state(!removed(layerLimits)), Why: "file size, open files, processor time, no core dumps"},
		Layer{Name: layerWatch, State: state(!removed(layerWatch)), Why: "memory, processes, disk, processor time of all processes together"},
		Layer{Name: layerEnviron, State: state(!removed(layerEnviron)), Why: "nothing of the caller's variables but toolchain folders and certificates"},
		Layer{Name: layerDumpable, State: state(!removed(layerDumpable)), Why: "no process of the same user can read the executor's memory"},
		Layer{Name: layerDescriptor, State: state(!removed(layerDescriptor)), Why: "only 0, 1 and 2"},
	)
	on := func(name string) bool {
		return slices.ContainsFunc(r.Layers, func(l Layer) bool { return l.Name == name && l.State == "on" })
	}
	if s.options.Mode == Off {
		r.Level = LevelOff
		r.Open = []string{"the sandbox is off: commands can read what their user can read on this machine, and reach the network"}
		return r
	}
	if !on(layerFiles) {
		r.Weak = append(r.Weak, "files outside of the worktree can be read: the kernel gives no Landlock (Linux 5.13 or later, with landlock among the security modules: lsm=landlock,…)")
	}
	if !on(layerFilter) || !on(layerBroker) {
		r.Weak = append(r.Weak, "the network is open: the system call filter with notifications cannot be installed (Linux 5.9 or later, not under an emulated kernel)")
	}
	if !on(layerNoCaps) || !on(layerNoPrivs) {
		r.Weak = append(r.Weak, "commands keep rights of the caller: capabilities could not be dropped")
	}
	if !on(layerUser) && !on(layerPIDNS) && !on(layerFiles) {
		r.Weak = append(r.Weak, "memory of other processes can be read: neither a user of their own, nor namespaces, nor Landlock")
	}
	r.Level = level(on, len(r.Weak) > 0)
	r.Open = append(append([]string{}, r.Weak...), s.open(on, e.ready.ABI)...)
	return r
}

func state(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func level(on func(string) bool, weak bool) string {
	namespaces := on(layerMountNS) && on(layerPIDNS)
	switch {
	case weak:
		return LevelWeak
	case on(layerUser) && namespaces:
		return LevelFull
	case namespaces:
		return LevelNamespaces
	case on(layerUser):
		return LevelUser
	}
	return LevelRules
}

// namespaceLayers are the layers the action has asked the kernel for.
func namespaceLayers(o *order, why string) []Layer {
	if why == "" && !o.Namespaces {
		why = "not asked for"
	}
	var layers []Layer
	for _, name := range []string{layerUserNS, layerPIDNS, layerMountNS, layerIPCNS, layerNetworkNS} {
		l := Layer{Name: name, State: state(o.Namespaces && !removed(name)), Why: why}
		switch {
		case name == layerUserNS && o.Namespaces && !o.UserNS:
			l.State, l.Why = "off", "root needs none"
		case name == layerNetworkNS && o.Namespaces && o.Open:
			l.State, l.Why = "off", "the network is open for these commands"
		}
		layers = append(layers, l)
	}
	return layers
}

// open is what this combination of layers leaves open.
func (s *Sandbox) open(on func(string) bool, abi int) []string {
	var open []string
	say := func(format string, args ...any) { open = append(open, fmt.Sprintf(format, args...)) }
	if s.options.Network.Open {
		say("the network is open for these commands")
	}
	say("whether files outside exist, their sizes and times: no layer hides them")
	if !on(layerMountNS) {
		if on(layerUser) {
			say("chmod, utime and xattr on files outside that any user may change")
		} else {
			say("chmod, utime and xattr on files of the caller's own user outside of the worktree")
		}
		say("/dev/shm is shared with the machine; what a command leaves there is removed after it")
	}
	if !on(layerPIDNS) {
		say("command lines of other processes can be read")
	}
	if !on(layerNetworkNS) && !s.options.Network.Open {
		say("a command can listen on this machine's addresses")
	}
	switch {
	case on(layerScopes):
	case on(layerPIDNS) || on(layerUser):
		say("a command can end its own executor, and itself with it: Landlock version 6 is needed, this kernel has %d", abi)
	default:
		say("signals to processes of the caller's own user: Landlock version 6 is needed, this kernel has %d", abi)
	}
	if on(layerFiles) && abi < 3 && !on(layerMountNS) && !on(layerUser) {
		say("files of the caller's own user outside can be truncated: Landlock version 3 is needed, this kernel has %d", abi)
	}
	if !on(layerCgroup) {
		say("memory and processor time are measured, not reserved: a command can slow the machine down until its limit ends it")
	}
	return open
}

// resolve looks up the listed host:port pairs and says what they resolve to. What does not resolve cannot be reached.
func resolve(allow []string) (targets []target, names []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, listed := range allow {
		host, portText, err := net.SplitHostPort(listed)
		port, portErr := strconv.ParseUint(portText, 10, 16)
		if err != nil || portErr != nil {
			names = append(names, listed+": not host:port")
			continue
		}
		var addresses []netip.Addr
		if literal, err := netip.ParseAddr(host); err == nil {
			addresses = []netip.Addr{literal}
		} else if addresses, err = net.DefaultResolver.LookupNetIP(ctx, "ip", host); err != nil {
			names = append(names, fmt.Sprintf("%s: does not resolve here (%v)", listed, err))
			continue
		}
		var texts []string
		for _, address := range addresses {
			t := target{Name: host, Address: netip.AddrPortFrom(address.Unmap(), uint16(port))} // #nosec G115 -- parsed as 16 bits
			if !slices.Contains(targets, t) {
				targets = append(targets, t)
				texts = append(texts, t.Address.String())
			}
		}
		if len(texts) > 0 && texts[0] != listed {
			names = append(names, listed+": "+strings.Join(texts, ", "))
		}
	}
	return targets, names
}

// hostsFile is the private /etc/hosts.
func hostsFile(targets []target) string {
	var b strings.Builder
	b.WriteString("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	seen := map[string]bool{}
	for _, t := range targets {
		line := t.Address.Addr().String() + "\t" + t.Name + "\n"
		if _, err := netip.ParseAddr(t.Name); err != nil && t.Name != "localhost" && !seen[line] {
			seen[line] = true
			b.WriteString(line)
		}
	}
	return b.String()
}
