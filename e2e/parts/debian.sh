# Makes base.tar in the current folder: a minimal Debian as `docker import` takes it.
# Runs in a mount namespace of its own, so that no mount outlives it.
set -eu
suite=$1 mirror=$2
mount --make-rprivate /
debootstrap --variant=minbase "$suite" root "$mirror"
rm -rf root/var/cache/apt/archives/*.deb root/var/lib/apt/lists/*
# As Debian's own images have it: nobody waits for the disk when packages are installed.
echo force-unsafe-io > root/etc/dpkg/dpkg.cfg.d/docker-apt-speedup
tar -C root --numeric-owner -cf base.tar .
rm -rf root
