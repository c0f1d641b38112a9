#!/bin/bash
# box.sh ROOT OUT SCRIPT GROUP - runs SCRIPT as a service of a systemd that has nothing else to do than the packages' units
#
# In namespaces of its own (the caller's unshare(1) makes them): an overlay over this machine's files, into which ROOT is
# copied, a cgroup called GROUP, and only the units in there. What SCRIPT prints is in OUT/log.
# It stays until it is killed.
set -e
root=$1 out=$2 script=$3 group=$4
mount --make-rprivate /
mount -t tmpfs tmpfs "$out/box"
mkdir "$out"/box/{upper,work,root,cgroup}
box=$out/box/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$out/box/upper,workdir=$out/box/work" "$box"
mount -t proc proc "$box/proc"
mount --rbind /sys "$box/sys"
mount --rbind /dev "$box/dev"
mount -t tmpfs -o mode=755 tmpfs "$box/run"
mkdir -p "$box$out"
mount --bind "$out" "$box$out"
mount -t cgroup2 cgroup2 "$out/box/cgroup"
mkdir "$out/box/cgroup/$group"
echo $$ > "$out/box/cgroup/$group/cgroup.procs"

cp -r "$root"/. "$box"
mkdir "$box/units"
cp "$box"/usr/lib/systemd/system/tracefan-* "$box/units"
for target in basic sysinit shutdown; do
	printf '[Unit]\nDescription=%s\nDefaultDependencies=no\n' $target > "$box/units/$target.target"
done
cat > "$box/units/go.target" << E
[Unit]
DefaultDependencies=no
Wants=tracefan-reader@default.service go.service
E
cat > "$box/units/go.service" << E
[Unit]
DefaultDependencies=no
After=tracefan-reader@default.service tracefan-router@default.service
[Service]
Type=oneshot
Environment=SYSTEMD_UNIT_PATH=/units
ExecStart=/bin/bash $script
StandardOutput=file:$out/log
StandardError=inherit
E
mkdir -p "$box/etc/systemd/system.conf.d"
printf '[Manager]\nDefaultStandardOutput=file:%s/units\nDefaultStandardError=inherit\nShowStatus=no\n' "$out" \
	> "$box/etc/systemd/system.conf.d/box.conf"
exec unshare --cgroup bash -c '
	umount -R "$1/sys/fs/cgroup" 2> /dev/null || true
	mount -t cgroup2 cgroup2 "$1/sys/fs/cgroup"
	chroot "$1" systemd-sysusers > /dev/null
	exec chroot "$1" env -i container=box SYSTEMD_UNIT_PATH=/units SYSTEMD_LOG_TARGET=console PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		/lib/systemd/systemd --unit=go.target' box "$box"
