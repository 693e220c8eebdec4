package sandbox

// Names of layers, as the report prints them and as the escape suite removes them.
const (
	layerUser       = "dedicated user"
	layerNoCaps     = "no capabilities"
	layerNoPrivs    = "no new privileges"
	layerUserNS     = "user namespace"
	layerPIDNS      = "pid namespace"
	layerMountNS    = "mount namespace"
	layerIPCNS      = "ipc namespace"
	layerNetworkNS  = "network namespace"
	layerFiles      = "landlock files"
	layerTCP        = "landlock tcp"
	layerScopes     = "landlock scopes"
	layerFilter     = "system call filter"
	layerBroker     = "connect broker"
	layerDumpable   = "closed memory"
	layerCgroup     = "cgroup"
	layerLimits     = "resource limits"
	layerWatch      = "watch over limits"
	layerSweep      = "sweep"
	layerEnviron    = "clean environment"
	layerDescriptor = "closed descriptors"
)
